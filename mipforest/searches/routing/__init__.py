"""Exact search over the routings of samples, for trees whose nodes are convex problems."""
