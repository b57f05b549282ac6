"""Pictures of attributions: what a notebook holds of them, and what can be drawn."""
