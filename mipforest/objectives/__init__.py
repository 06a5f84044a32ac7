"""What an objective charges: losses of leaves, losses and norms of branch nodes."""
