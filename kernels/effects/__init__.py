"""Effects: what the model predicts as one feature, or two, change."""
