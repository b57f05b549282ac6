"""Q-SHAP: the exact decomposition of R² over the features of a tree ensemble."""
