"""Solutions go back into the model."""
