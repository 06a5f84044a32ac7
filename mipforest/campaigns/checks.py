"""Reading tables of a TOML file: keys are known, values have their types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mipforest.campaigns.errors import CampaignError
from mipforest.errors import did_you_mean

#: What a value of a wrong type should have been.
_WORDS = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    dict: "a table",
    list: "a list",
    bool: "true or false",
}


def check_keys(where: str, table: Any, known: Mapping[str, type], required: tuple[str, ...] = ()) -> None:
    """Refuse keys that are unknown or missing, and values of another type.

    Parameters
    ----------
    where
        What the table is, for the message.
    table
        The table.
    known
        Type of the value of each key; ``float`` takes whole numbers too. The lists that :func:`several` reads
        are not checked here: their type is ``object``.
    required
        Keys that must be there.

    Raises
    ------
    CampaignError
        If something is not as it must be.
    """
    if not isinstance(table, dict):
        raise CampaignError(f"{where} is {table!r:.60}; it must be a table")
    for key, value in table.items():
        if key not in known:
            raise CampaignError(
                f"{where} has the key {key!r:.60}, which means nothing{did_you_mean(key, known)}; "
                f"known are {', '.join(known)}"
            )
        check_type(f"{where}: {key}", value, known[key])
    for key in required:
        if key not in table:
            raise CampaignError(f"{where} lacks the key {key!r}")


def check_type(where: str, value: Any, kind: type) -> None:
    """Refuse a value of another type; whole numbers are numbers, truth values are not.

    Raises
    ------
    CampaignError
        If the type is another one.
    """
    allowed: type | tuple[type, ...] = (int, float) if kind is float else kind
    a_number = kind in (int, float)
    if not isinstance(value, allowed) or (a_number and isinstance(value, bool)):
        raise CampaignError(f"{where} is {value!r:.60}; it must be {_WORDS[kind]}")


def several(where: str, value: Any, kind: type) -> tuple[Any, ...]:
    """Read one value, or a list of values that each make cells of their own.

    Raises
    ------
    CampaignError
        If a value has another type, stands twice, or there is none.
    """
    values = value if isinstance(value, list) else [value]
    if not values:
        raise CampaignError(f"{where} is an empty list; give one value at least")
    for number, entry in enumerate(values):
        check_type(where, entry, kind)
        if entry in values[:number]:
            raise CampaignError(f"{where} has {entry!r:.60} twice")
    return tuple(float(entry) for entry in values) if kind is float else tuple(values)


def parameter_value(where: str, value: Any) -> Any:
    """Read a hyperparameter: a number, a text, true or false, or a list of numbers per level or node.

    Raises
    ------
    CampaignError
        If it is something else.
    """
    if isinstance(value, list):
        for entry in value:
            check_type(where, entry, float)
        return tuple(value)
    if isinstance(value, int | float | str):
        return value
    raise CampaignError(f"{where} is {value!r:.60}; give a number, a text, or a list of numbers per level")
