"""scikit-learn's models, and skops's files of them."""
