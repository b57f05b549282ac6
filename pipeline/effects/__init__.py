"""Effects of features on predictions: partial dependence, rows' own curves, accumulated local effects, Friedman's H."""
