"""Explainers in MLflow: saved or logged as models that its tools load and serve. MLflow imports this module to load them."""

from leafledger.pipeline.serving.mlflow_model import ServedExplainer, _load_pyfunc, log_explainer, save_explainer

__all__ = ["ServedExplainer", "_load_pyfunc", "log_explainer", "save_explainer"]
