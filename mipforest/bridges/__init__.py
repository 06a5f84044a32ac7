"""Rewritings of models for solvers that do not take them as they are; one per file."""
