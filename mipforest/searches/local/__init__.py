"""Local search for trees of any depth (Dunn 2018): node after node is optimised, from many starts."""
