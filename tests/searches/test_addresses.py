"""Operations behind addresses have the arrays and numbers of named tuples that were handed over as words."""

import gc
from typing import Any, NamedTuple

import numpy as np
from numba import njit, typeof, types

from mipforest.searches.addresses import NUMBERS, WORDS, address_of, call, view, words_of


class Inner(NamedTuple):
    values: Any
    masks: Any


class Outer(NamedTuple):
    number: int
    share: float
    flag: bool
    inner: Inner
    table: Any


def outer() -> Outer:
    inner = Inner(np.array([0.5, 1.5, 2.0]), np.array([[1, 0], [0, 1]], np.uint8))
    return Outer(7, -0.125, True, inner, np.arange(12, dtype=np.int16).reshape(3, 4))


@njit
def through(address, words, k, scale, written):
    return call(address, (words, k, scale, written))


def operation_on(kind):
    read = view(kind)

    def total(words, k, scale, written):
        own = read(words)
        own.inner.values[0] += 1.0
        written[1] = own.inner.values[0]
        rows, columns = own.table.shape
        sums = (
            own.number
            + (own.share if own.flag else 1.0)
            + scale * own.inner.values[2]
            + own.inner.masks[k, 1]
        )
        return sums + 100.0 * own.table[k, columns - 1] + 10_000.0 * rows

    arguments = WORDS, types.int64, types.float64, NUMBERS
    return address_of(total, arguments, (kind,))


def test_an_operation_reads_and_writes_what_the_words_stand_for():
    value, written = outer(), np.zeros(2)
    words, address = words_of(value), operation_on(typeof(value))
    assert (
        through(address, words, 1, 0.25, written) == 7 - 0.125 + 0.5 + 1 + 700.0 + 30_000.0
    )  # exact: eighths
    assert value.inner.values.tolist() == [1.5, 1.5, 2.0]
    assert written.tolist() == [0.0, 1.5]


def test_arrays_live_as_long_as_their_words():
    words, written = words_of(outer()), np.zeros(2)
    gc.collect()
    taken = [np.full(3, 9.0) for _ in range(1000)]  # would lie where the arrays were
    assert len(taken) == 1000
    assert through(operation_on(typeof(outer())), words, 1, 0.0, written) == 30_707.875  # exact: eighths
