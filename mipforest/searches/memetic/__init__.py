"""Alternating and memetic search for univariate trees: every split in turn, and a population of trees."""
