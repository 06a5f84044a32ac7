"""Exact search over trees of univariate splits."""
