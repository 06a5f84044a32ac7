"""A page on this machine on which a tree is edited by hand: ``mipforest explore``."""
