"""Q-SHAP: the exact decomposition of R^2 over the features of a tree ensemble."""
