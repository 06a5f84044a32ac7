r"""Generated curves of which one interval tells the target: ``synthetic:curves``.

A curve is a random Fourier series on [0, 1],

.. math::

    x(u) = a_0 + \sum_{k=1}^{8} \tfrac1k \bigl(a_k \cos 2\pi k u + b_k \sin 2\pi k u\bigr), \qquad
    a_k, b_k \sim N(0, 1),

of which evenly spaced points are known. The target looks at its mean m over one interval only: it is 2 m where m is
above 0, and -m below, with normal noise. So a tree of depth 1 with one interval and linear leaves can tell it up to the
noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.errors import DataError, refuse_out_of_range

#: Number of waves in a curve.
_WAVES = 8


@dataclass(frozen=True, kw_only=True)
class CurveExperiment:
    """Options of ``synthetic:curves``.

    Attributes
    ----------
    n
        Number of curves.
    points
        Number of points at which a curve is known, 4 or more.
    begin, end
        The interval that tells the target, within 0 to 1.
    noise
        Standard deviation of the noise of the target.
    seed
        Seed of curves and noise.
    """

    n: int = 200
    points: int = 60
    begin: float = 0.3
    end: float = 0.45
    noise: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        ranges: dict[str, tuple[float, float]] = {
            "n": (2, 10**8),
            "points": (4, 10**4),
            "noise": (0, 10**6),
            "seed": (0, 2**63),
        }
        ranges |= {"begin": (0, 1), "end": (self.begin, 1)}
        refuse_out_of_range("synthetic:curves", self, ranges)
        if self.begin == self.end:
            raise DataError(f"synthetic:curves: begin and end are both {self.end}; choose a larger end")

    @property
    def at(self) -> FloatArray:
        """(points,) where the curves are known."""
        return np.linspace(0.0, 1.0, self.points)

    @property
    def features(self) -> list[str]:
        """Names of the features: ``x@`` and the place."""
        return [f"x@{place:.6g}" for place in self.at]

    def sample(self) -> tuple[FloatArray, FloatArray]:
        """Draw the (n, points) values of the curves, and the (n,) targets."""
        rng = np.random.default_rng([self.seed, 2])
        level = rng.standard_normal(self.n)
        waves = np.arange(1, _WAVES + 1)
        cosines, sines = (rng.standard_normal((self.n, _WAVES)) / waves for _ in range(2))
        turns = 2 * np.pi * waves
        X = (
            level[:, None]
            + cosines @ np.cos(np.outer(turns, self.at))
            + sines @ np.sin(np.outer(turns, self.at))
        )
        both = np.array([self.begin, self.end])
        in_cosine, in_sine = (
            np.sin(np.outer(turns, both)) / turns[:, None],
            -np.cos(np.outer(turns, both)) / turns[:, None],
        )
        length = self.end - self.begin
        mean = level + (cosines @ np.diff(in_cosine)[:, 0] + sines @ np.diff(in_sine)[:, 0]) / length
        y = np.where(mean > 0, 2 * mean, -mean)
        return X, y + self.noise * rng.standard_normal(self.n)
