"""Best univariate trees: the searches that people call, and how they keep constraints."""
