"""Data sets of OpenML.org, by name or number, through scikit-learn's client and cache."""

from __future__ import annotations

import warnings
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError

from sklearn.datasets import fetch_openml, get_data_home

from mipforest.data.dataset import Dataset
from mipforest.data.encoding import Scaling
from mipforest.data.table import Missing
from mipforest.data.target import Task
from mipforest.errors import DataError


def load_openml(
    reference: str,
    *,
    target: str | None = None,
    task: Task | None = None,
    scaling: Scaling = "minmax",
    missing: Missing = "error",
) -> Dataset:
    """Load a data set from OpenML.

    What was fetched once is kept in scikit-learn's data folder (``SCIKIT_LEARN_DATA``) and needs no
    network again. Warnings of OpenML, such as several active versions, are among the notes.

    Parameters
    ----------
    reference
        ``NAME`` (oldest active version), ``NAME@VERSION`` or the data set's number ``ID``.
    target
        Column to predict; OpenML's default target if not given.
    task, scaling, missing
        As for :meth:`Dataset.from_frame`.

    Raises
    ------
    DataError
        If OpenML cannot be reached, has no such data set, or the data set is sparse or has no single target.
    """
    query = _query(reference)
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            bunch = fetch_openml(
                **query, target_column=target or "default-target", as_frame=True, parser="auto"
            )
    except HTTPError as error:
        raise DataError(
            f"OpenML answered {error.code} ({error.reason}) for {reference!r}; check the name on openml.org, "
            "or try again later"
        ) from error
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise DataError(
            f"OpenML cannot be reached ({reason}); check the network, or save the data set as .csv "
            f"and load that file. Data sets fetched before are kept in {get_data_home()} and need no network"
        ) from error
    except KeyError as error:
        raise DataError(
            f"the OpenML data set {reference!r} has no usable column {target!r} ({error.args[0]})"
        ) from error
    except ValueError as error:
        raise DataError(f"the OpenML data set {reference!r} cannot be loaded: {error}") from error
    notes = [f"OpenML: {' '.join(str(warning.message).split())}" for warning in said]
    name = f"openml:{bunch.details['name']}@{bunch.details['version']}"
    return Dataset.from_frame(
        bunch.frame,
        _target_of(bunch, reference),
        name=name,
        task=task,
        scaling=scaling,
        missing=missing,
        notes=notes,
    )


def _query(reference: str) -> dict[str, Any]:
    """Turn ``NAME``, ``NAME@VERSION`` or ``ID`` into arguments of scikit-learn's client."""
    name, at, version = reference.strip().rpartition("@")
    if not at:
        name, version = version, ""
    if not name or (at and not version.isdecimal()):
        raise DataError(
            f"cannot read 'openml:{reference}'; write openml:NAME, openml:NAME@VERSION or openml:ID"
        )
    if at:
        return {"name": name, "version": int(version)}
    return {"data_id": int(name)} if name.isdecimal() else {"name": name}


def _target_of(bunch: Any, reference: str) -> str:
    names = list(bunch.target_names)
    if len(names) != 1:
        columns = ", ".join(map(str, bunch.frame.columns))
        raise DataError(
            f"the OpenML data set {reference!r} has {len(names)} default targets, one is needed; "
            f"name the column to predict (--target), one of: {columns}"
        )
    return str(names[0])
