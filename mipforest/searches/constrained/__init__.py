"""Univariate trees that satisfy constraints, over the exact search."""
