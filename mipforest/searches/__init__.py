"""Tree searches: solvers that know the structure of a tree."""
