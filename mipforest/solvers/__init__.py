"""Solver plug-ins, and the contract between them and the package."""
