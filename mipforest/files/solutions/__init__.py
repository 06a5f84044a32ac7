"""Solutions and starts of models, as files."""
