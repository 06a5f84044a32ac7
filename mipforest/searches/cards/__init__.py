"""Exact searches for score cards of least log-loss: their bounds are those of the log-loss itself, not of tangents."""
