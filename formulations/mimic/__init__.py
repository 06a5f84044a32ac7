"""What a tree needs that mimics a tree ensemble: the ensemble's answers, splits that keep a gap, starts, a report."""
