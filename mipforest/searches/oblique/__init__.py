"""Exact search for trees of hyperplane splits whose loss is a sum over leaves, with a price for each feature used.

The search branches on boxes of hyperplanes: :mod:`~mipforest.searches.oblique.search` says how, and proves its bound.
"""
