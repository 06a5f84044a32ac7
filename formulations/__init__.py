"""The papers' models, one module each, found through the entry-point group ``mipforest.formulations``."""
