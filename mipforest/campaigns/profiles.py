"""Distributions that compare settings over many instances.

Source: E. Dolan, J. Moré, *Benchmarking optimization software with performance profiles*, Mathematical Programming 91
(2002). Distances from the best value, with differences in the place of ratios, are those of the OLCT experiments.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from mipforest.arrays import FloatArray

#: Costs below it count as it: times of a few milliseconds tell the machine's mood, not the setting.
LEAST_TIME = 0.01


@dataclass(frozen=True, eq=False)
class Distribution:
    """Share of instances up to a value, as a step function that is continuous from the right.

    Attributes
    ----------
    setting
        Whose it is.
    values
        (k,) finite values, ascending.
    shares
        (k,) share of all instances with at most that value.
    """

    setting: str
    values: FloatArray
    shares: FloatArray

    @classmethod
    def of(cls, setting: str, found: FloatArray) -> Distribution:
        """Take the values of all instances; infinite or NaN where there is none."""
        finite = np.sort(found[np.isfinite(found)])
        return cls(setting, finite, np.arange(1, len(finite) + 1) / max(len(found), 1))

    def at(self, value: float) -> float:
        """Return the share of instances with at most this value."""
        count = int(np.searchsorted(self.values, value, side="right"))
        return float(self.shares[count - 1]) if count else 0.0

    @property
    def last(self) -> float:
        """Share of instances that have a value at all."""
        return float(self.shares[-1]) if len(self.shares) else 0.0


def instance_table(cells: pd.DataFrame, column: str) -> pd.DataFrame:
    """Lay a column out: one row per instance (data and seed), one column per setting, in the suite's order.

    Instances that some setting has not come to yet are left out; where a setting failed, the value is missing.
    """
    waiting = cells.loc[cells["state"] == "waiting", ["data", "seed"]].apply(tuple, axis=1)
    instances = cells[["data", "seed"]].apply(tuple, axis=1)
    compared = cells[~instances.isin(set(waiting))]
    order = list(dict.fromkeys(cells["setting"]))
    table = compared.pivot_table(
        index=["data", "seed"], columns="setting", values=column, aggfunc="first", dropna=False
    )
    return table.reindex(columns=order).dropna(how="all")


def performance_profiles(costs: pd.DataFrame, least: float = 0.0) -> list[Distribution]:
    """Return the distribution of each setting's cost over the least cost of any setting, per instance.

    Parameters
    ----------
    costs
        One row per instance, one column per setting; NaN or infinite where it was not solved. Instances that no
        setting solved count in the shares.
    least
        Costs below it count as it.
    """
    values = costs.to_numpy(dtype=float)
    values = np.where(np.isnan(values), np.inf, np.maximum(values, least))
    best = values.min(axis=1, keepdims=True)
    ratio = np.divide(values, best, out=np.full_like(values, np.inf), where=np.isfinite(best) & (best > 0))
    # A cost of nothing is the best there is: any other is infinitely many times as large.
    ratio[(values == 0) & (best == 0)] = 1.0
    ratio[~np.isfinite(values)] = np.inf
    return [Distribution.of(str(name), ratio[:, k]) for k, name in enumerate(costs.columns)]


def distances_from_best(values: pd.DataFrame) -> list[Distribution]:
    """Return the distribution of each setting's distance from the largest value of any setting, per instance."""
    table = values.to_numpy(dtype=float)
    best = np.nanmax(table, axis=1, keepdims=True) if len(table) else table
    return [Distribution.of(str(name), (best - table)[:, k]) for k, name in enumerate(values.columns)]


def distributions(values: pd.DataFrame) -> list[Distribution]:
    """Return the distribution of each setting's values; NaN where there is none."""
    return [Distribution.of(str(name), values[name].to_numpy(dtype=float)) for name in values.columns]
