"""Calls through addresses: loops that are compiled once for all kinds of tables.

The compiler makes loops anew for every type of their arguments. Loops that know their tables by a few operations alone
take addresses instead: that of the tables, and those of the operations. Only the operations are compiled for each kind.

A named tuple of arrays and numbers is handed over as *words* of 8 bytes: those of which the compiler's own values are
made (of an array two that count references, here 0, then size, bytes of an entry, address, shape and strides; the bits
of a double). :func:`view` reads them back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from mipforest.arrays import IntArray
from mipforest.searches import compiled
from mipforest.searches.kernel_cache import KernelCache, kernel_folder

#: What operations behind addresses take beside whole numbers and doubles: words, and arrays of numbers to be written.
WORDS, NUMBERS = types.CPointer(types.int64), types.CPointer(types.float64)

#: Functions whose addresses are known: they stay.
_MADE: list[Any] = []

_I64, _DOUBLE = ir.IntType(64), ir.DoubleType()


class _Words:
    """Words with what they hold the addresses of: an array that is made of this keeps it."""

    def __init__(self, words: IntArray, value: tuple[Any, ...]) -> None:
        self.__array_interface__ = words.__array_interface__
        self.kept = words, value


def words_of(value: tuple[Any, ...]) -> IntArray:
    """Return a named tuple of arrays, numbers and such tuples as words; its arrays live as long as these."""
    return np.asarray(_Words(np.array(list(_flat(value)), np.int64), value))


def _flat(value: Any) -> Iterator[int]:
    if isinstance(value, tuple):
        for part in value:
            yield from _flat(part)
    elif isinstance(value, np.ndarray):
        yield from (0, 0, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides)
    elif isinstance(value, float):
        yield int(np.float64(value).view(np.int64))
    else:
        yield int(value)


def kind_of(value: Any) -> Any:
    """Return what tells the compiler's types of named tuples apart; these themselves take longer to find."""
    if isinstance(value, tuple):
        return type(value), *map(kind_of, value)
    if isinstance(value, np.ndarray):
        return value.dtype.char, value.ndim, value.flags.c_contiguous
    return type(value)


def view(kind: Any) -> Any:
    """Return a compiled function from words to the named tuple of a compiler's type that they were made of."""

    @intrinsic  # type: ignore[untyped-decorator]
    def read(_context: Any, words: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            value, _ = _read(builder, context.get_value_type(kind), arguments[0], 0)
            return value

        return kind(words), generate

    return read


def _read(builder: Any, kind: Any, words: Any, at: int) -> tuple[Any, int]:
    """Emit the value of a type from the words at a place; return it with the place behind it."""
    if isinstance(kind, (ir.LiteralStructType, ir.ArrayType)):
        parts = kind.elements if isinstance(kind, ir.LiteralStructType) else [kind.element] * kind.count
        value = ir.Constant(kind, ir.Undefined)
        for i, part in enumerate(parts):
            read, at = _read(builder, part, words, at)
            value = builder.insert_value(value, read, i)
        return value, at
    word = builder.load(builder.gep(words, [ir.Constant(_I64, at)]))
    if isinstance(kind, ir.PointerType):
        word = builder.inttoptr(word, kind)
    elif isinstance(kind, ir.DoubleType):
        word = builder.bitcast(word, kind)
    elif kind != _I64:
        word = builder.trunc(word, kind)
    return word, at + 1


@intrinsic  # type: ignore[untyped-decorator]
def call(_context: Any, address: Any, arguments: Any) -> Any:
    """Call what :func:`address_of` has returned the address of, with a tuple of arguments.

    Of arrays the address of their first entry is handed over. Returns the double that the function returns.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        given = []
        kinds = signature.args[1]
        for kind, value in zip(kinds, cgutils.unpack_tuple(builder, values[1], len(kinds)), strict=True):
            is_array = isinstance(kind, types.Array)
            given.append(make_array(kind)(context, builder, value).data if is_array else value)
        kind = ir.FunctionType(_DOUBLE, [value.type for value in given])
        return builder.call(builder.inttoptr(values[0], kind.as_pointer()), given)

    return types.float64(address, arguments), generate


def address_of(function: Callable[..., float], arguments: tuple[Any, ...], kinds: tuple[Any, ...]) -> int:
    """Return the address of a function for types of its arguments, compiled or loaded.

    Parameters
    ----------
    function
        Made within another one, for some kinds of named tuples; returns a double.
    arguments
        The compiler's types of its arguments: 64-bit whole numbers, doubles, :data:`WORDS` and :data:`NUMBERS`.
    kinds
        The compiler's types that it was made for: with its name, what tells its machine code from others'.
    """
    fast = compiled(function, no_cpython_wrapper=True)
    fast._cache = KernelCache(function, kernel_folder(), kinds)
    fast.compile(types.float64(*arguments))
    (made,) = fast.overloads.values()
    _MADE.append(fast)
    return int(made.library.get_pointer_to_function(made.fndesc.llvm_cfunc_wrapper_name))
