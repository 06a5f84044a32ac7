"""Trees of univariate splits under limits on labels: Lagrange multipliers over the exact search."""
