"""Bounds proven from the data, or from a feasible tree, before the model is solved."""
