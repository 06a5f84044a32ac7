"""Trees found without a solver of the whole model: starts for it, and baselines."""
