"""Names of Pyomo components as blocks of a matrix form."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, product
from typing import Any

from mipforest.model.matrix import Block


def named_blocks(entries: Sequence[Any]) -> tuple[Block, ...]:
    """Give one block per run of entries of the same component, with its indices as labels.

    Parameters
    ----------
    entries
        Variables or constraints, in the order of their columns or rows.
    """
    blocks: list[Block] = []
    for _, run in groupby(entries, key=lambda entry: id(entry.parent_component())):
        members = list(run)
        blocks.append(_block(members, blocks[-1].stop if blocks else 0))
    return tuple(blocks)


def _block(members: Sequence[Any], start: int) -> Block:
    component = members[0].parent_component()
    name = component.name
    if not component.is_indexed():
        return Block(name, start, ())
    indices = [_as_tuple(member.index()) for member in members]
    axes = [tuple(dict.fromkeys(axis)) for axis in zip(*indices, strict=False)]
    if len({len(index) for index in indices}) == 1 and list(product(*axes)) == indices:
        labels = tuple(tuple(map(str, axis)) for axis in axes)
        return Block(name, start, tuple(map(len, axes)), labels)
    flat = tuple(f"{name}[{','.join(map(str, index))}]" for index in indices)
    return Block(name, start, (len(members),), None, flat)


def _as_tuple(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)
