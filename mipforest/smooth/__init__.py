"""Randomised trees: smooth models, stated once, and what solves them. They have no rows, and only local optima."""
