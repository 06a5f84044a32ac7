"""VITE: what a tree ensemble looks like inside, as tables and as a picture.

``vite("random-forest", data, depth=3).save("vite.svg")`` shows at which levels and nodes a forest splits on which
features and where, which samples it treats alike, and how sure it is of its predictions.
"""

from mipforest.vite.picture import Vite, vite

__all__ = ["Vite", "vite"]
