r"""Vector walks: the best split of both sides of a threshold in one pass over each feature.

Let the rows of a set stand in the order of a feature, and let P(t) be the weight of class k minus that of class l among
the first t. A split after the first t rows whose left leaf predicts k and whose right leaf predicts l, or the other way
round, is right for

.. math::  T_l + P(t) \quad \text{or} \quad T_k - P(t),

where T are the weights of the classes in the set. So one running sum, its maximum and its minimum give the least loss
of a split on the feature for two classes; t = 0 and the end stand for one leaf. Rows of equal value are not parted: a
penalty is subtracted before the maximum and added before the minimum.

**Vectors.** The order is cut into L chunks of equal length, and slot ``s * L + l`` holds row s of chunk l. Vector s has
the s-th row of every chunk: each of its L lanes walks its own chunk, and at the end the lanes are joined by the prefix
sums of their totals. Weights are whole numbers in 32 lanes of 16 bits or 16 lanes of 32 bits, or doubles in 8 lanes: by
the type of the arrays that hold them. **Membership is a comparison**: ``rank[g, f]`` holds the rank in feature f of the
row in each slot of the order of g, so that the walk over g of the rows below a threshold of f reads memory in sequence
and branches nowhere.

**Squared loss.** With sums w of weights and s of weighted targets of the first t rows, and W and S of the set, a split
gains :math:`d^2 W / (w (W - w))`, where :math:`d = s - w S / W`. These are doubles in 8 lanes, and the gain needs true
sums: one pass finds the sums of every lane, from which a second one starts and compares gains by their cross products.

LLVM lowers vectors to whatever the processor has: AVX-512, AVX2, NEON, or plain registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from mipforest.arrays import IntArray
from mipforest.searches import kernel

#: Rows that a vector holds, one from each chunk, by the type of the weights.
LANES = {np.dtype(np.int16): 32, np.dtype(np.int32): 16, np.dtype(np.float64): 8}

#: Most weight of a chunk, or of all rows: running sums stay away from the penalty and from the ends of their range.
MAX_CHUNK_WEIGHT, MAX_WEIGHT = 8191, 2**29 - 1

#: Bytes of the vectors of all types.
BYTES_OF_VECTORS = 64

#: Words of bits that are counted at a time.
WORDS_AT_A_TIME = 8

#: Classes whose weights are added up in one pass.
CLASSES_AT_A_TIME = 4

#: What is subtracted between rows of equal value, by the type of the weights.
PENALTY = {np.dtype(np.int16): 2**14, np.dtype(np.int32): 2**30, np.dtype(np.float64): np.inf}

_I16, _I32, _I64, _DOUBLE = ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.DoubleType()

#: Rows of a vector of the squared loss, and how many the number of slots is a multiple of.
WIDE_LANES = 8
TWO_WIDE = 2 * WIDE_LANES

_WIDE = ir.VectorType(_DOUBLE, WIDE_LANES)

_State = Sequence[Any]


def _lanes(numbers: Sequence[int]) -> ir.Constant:
    """Return numbers of lanes, for a shuffle."""
    return ir.Constant(ir.VectorType(_I32, len(numbers)), list(numbers))


def _splat(b: Any, value: Any, kind: Any) -> Any:
    """Return a vector of one number."""
    if isinstance(value.type, ir.IntType) and value.type.width > kind.element.width:
        value = b.trunc(value, kind.element)
    undefined = ir.Constant(kind, ir.Undefined)
    one = b.insert_element(undefined, value, ir.Constant(_I32, 0))
    return b.shuffle_vector(one, undefined, _lanes([0] * kind.count))


def _call(b: Any, name: str, result: Any, arguments: Sequence[Any]) -> Any:
    function = b.module.globals.get(name) or ir.Function(
        b.module, ir.FunctionType(result, [argument.type for argument in arguments]), name
    )
    return b.call(function, arguments)


def _sums_before(b: Any, lanes: Any, zero: Any, add: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """Return the sums of the lanes in front of each lane, and those up to each lane."""
    L, inclusive, shift = lanes.type.count, lanes, 1
    while shift < L:
        mask = [L - shift + lane for lane in range(L)]
        inclusive = add(inclusive, b.shuffle_vector(zero, inclusive, _lanes(mask)))
        shift *= 2
    return b.shuffle_vector(zero, inclusive, _lanes([L - 1 + lane for lane in range(L)])), inclusive


class _Weights:
    """Vectors of weights: of whole numbers of 16 or 32 bits, or of doubles."""

    def __init__(self, builder: Any, kind: Any) -> None:
        self.b, dtype = builder, np.dtype(str(kind.dtype))
        self.is_whole, self.lanes = dtype.kind == "i", LANES[dtype]
        element = {"int16": _I16, "int32": _I32, "float64": _DOUBLE}[dtype.name]
        #: Vectors of weights, and of their sums over lanes.
        self.kind = ir.VectorType(element, self.lanes)
        self.sums = ir.VectorType(_I32, self.lanes) if self.is_whole else self.kind
        # A running maximum begins below every penalised sum.
        self.none = -PENALTY[dtype] * 1.5 if self.is_whole else -np.inf
        self.least_sum = -MAX_CHUNK_WEIGHT if element is _I16 else -MAX_WEIGHT

    def constant(self, value: float, kind: Any = None) -> Any:
        kind = kind or self.kind
        return ir.Constant(kind, [int(value) if self.is_whole else value] * self.lanes)

    def add(self, x: Any, y: Any) -> Any:
        return self.b.add(x, y) if self.is_whole else self.b.fadd(x, y)

    def subtract(self, x: Any, y: Any) -> Any:
        return self.b.sub(x, y) if self.is_whole else self.b.fsub(x, y)

    def greater(self, x: Any, y: Any) -> Any:
        more = self.b.icmp_signed(">", x, y) if self.is_whole else self.b.fcmp_ordered(">", x, y)
        return self.b.select(more, x, y)

    def less(self, x: Any, y: Any) -> Any:
        less = self.b.icmp_signed("<", x, y) if self.is_whole else self.b.fcmp_ordered("<", x, y)
        return self.b.select(less, x, y)

    def widened(self, lanes: Any) -> Any:
        """Return lanes as they are summed."""
        return self.b.sext(lanes, self.sums) if lanes.type != self.sums else lanes

    def narrowed(self, sums: Any) -> Any:
        """Return sums as weights are: the nearest to them between -1 and the greatest of these."""
        if not self.is_whole or self.kind == self.sums:
            return sums
        least, most = self.constant(-1, self.sums), self.constant(2**15 - 1, self.sums)
        clipped = self.b.select(self.b.icmp_signed("<", sums, least), least, sums)
        clipped = self.b.select(self.b.icmp_signed(">", clipped, most), most, clipped)
        return self.b.trunc(clipped, self.kind)

    def limits(self, samples: Any, N: Any) -> tuple[Any, list[Any]]:
        """Return the number of all samples, and how many of its own a lane has counted at splits with N on both sides.

        Parameters
        ----------
        samples
            Number of them in each lane.
        N
            Whole number of 64 bits.
        """
        b, zero = self.b, self.constant(0, self.sums)
        before, inclusive = _sums_before(b, self.widened(samples), zero, self.add)
        n = b.extract_element(inclusive, ir.Constant(_I32, self.lanes - 1))
        least = b.trunc(N, _I32) if self.is_whole else b.sitofp(N, _DOUBLE)
        ends = [_splat(b, value, self.sums) for value in (least, self.subtract(n, least))]
        return n, [self.narrowed(self.subtract(end, before)) for end in ends]

    def is_between(self, x: Any, ends: Sequence[Any]) -> Any:
        """Return where lanes are in an interval."""
        compare = self.b.icmp_signed if self.is_whole else self.b.fcmp_ordered
        return self.b.and_(compare("<=", ends[0], x), compare("<=", x, ends[1]))

    def number(self, value: Any) -> Any:
        """Return a number as the last array of a call holds it."""
        return self.b.sext(value, _I64) if self.is_whole else value

    def total(self, lanes: Any) -> Any:
        """Return the sum of all lanes."""
        if self.is_whole:
            name = f"llvm.vector.reduce.add.v{self.lanes}i32"
            return self.number(_call(self.b, name, _I32, [self.widened(lanes)]))
        _, inclusive = _sums_before(self.b, lanes, self.constant(0), self.add)
        return self.b.extract_element(inclusive, ir.Constant(_I32, self.lanes - 1))

    def joined(self, total: Any, greatest: Any, least: Any) -> tuple[Any, Any]:
        """Return the greatest and the least sum of a walk from the total, greatest and least sum of each lane."""
        b, zero = self.b, self.constant(0, self.sums)
        before, _ = _sums_before(b, self.widened(total), zero, self.add)
        greatest, least = self.widened(greatest), self.widened(least)
        if self.is_whole:
            # A lane without a position between two values holds what its maximum began with, or a penalised sum.
            lowest, far = self.constant(self.least_sum, self.sums), self.constant(2**30, self.sums)
            highest = self.constant(-self.least_sum, self.sums)
            greatest = b.select(b.icmp_signed("<", greatest, lowest), b.sub(zero, far), greatest)
            least = b.select(b.icmp_signed(">", least, highest), far, least)
        ends = []
        for name, lanes in (("max", self.add(greatest, before)), ("min", self.add(least, before))):
            prefix, element = (f"s{name}", "i32") if self.is_whole else (f"f{name}", "f64")
            intrinsic_name = f"llvm.vector.reduce.{prefix}.v{self.lanes}{element}"
            ends.append(self.number(_call(b, intrinsic_name, self.sums.element, [lanes])))
        return ends[0], ends[1]


def _loop(b: Any, steps: Any, first: _State, body: Callable[[Any, _State], _State]) -> _State:
    """Emit ``for i in range(steps): state = body(i, state)``; return the state at its end."""
    before = b.block
    head, inside, end = (b.function.append_basic_block(name) for name in ("head", "inside", "end"))
    b.branch(head)
    b.position_at_end(head)
    i = b.phi(_I64)
    state = [b.phi(value.type) for value in first]
    i.add_incoming(ir.Constant(_I64, 0), before)
    for phi, value in zip(state, first, strict=True):
        phi.add_incoming(value, before)
    b.cbranch(b.icmp_signed("<", i, steps), inside, end)
    b.position_at_end(inside)
    after = body(i, state)
    last = b.block
    i.add_incoming(b.add(i, ir.Constant(_I64, 1)), last)
    for phi, value in zip(state, after, strict=True):
        phi.add_incoming(value, last)
    b.branch(head)
    b.position_at_end(end)
    return state


class _Emitter:
    """Loads of vectors from the arrays of a call, and stores of numbers into its last one."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.b, self._data = builder, []
        for kind, argument in zip(signature.args, arguments, strict=True):
            is_array = isinstance(kind, types.Array)
            self._data.append(make_array(kind)(context, builder, argument).data if is_array else argument)

    def __getitem__(self, k: int) -> Any:
        return self._data[k]

    def vector(self, k: int, lanes: int) -> Any:
        """Return the type of vectors of array k."""
        return ir.VectorType(self._data[k].type.pointee, lanes)

    def load(self, k: int, i: Any, lanes: int) -> Any:
        """Return vector i of array k."""
        kind = self.vector(k, lanes)
        vectors = self.b.bitcast(self._data[k], kind.as_pointer())
        loaded = self.b.load(self.b.gep(vectors, [i]))
        loaded.align = 8 if kind.element is _DOUBLE else kind.element.width // 8
        return loaded

    def store(self, at: int, value: Any) -> None:
        """Write a number into the last array."""
        self.b.store(value, self.b.gep(self._data[-1], [ir.Constant(_I64, at)]))


@intrinsic  # type: ignore[untyped-decorator]
def add_rows(
    _context: Any, order: Any, begin: Any, end: Any, by: Any, below: Any, first: Any, wide: Any, width: Any, block: Any,
    sums: Any,
) -> Any:  # fmt: skip
    """Add a vector of statistics of the rows in some places of an order to sums: of two parts, without branches.

    Parameters
    ----------
    order, begin, end
        Rows in their order, and their places.
    by, below, first
        Ranks of all rows; those of the one part are below the one, and those of the other from the other one on.
    wide, width, block
        (n, W) statistics, whole numbers of 32 bits or doubles; W, and the first one of the vector.
    sums
        (2, W) of both parts.
    """
    whole = types.int64
    signature = types.void(order, whole, whole, by, whole, whole, wide, whole, whole, sums)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        e, b, w = _Emitter(context, builder, signature, arguments), builder, _Weights(builder, wide)
        ranks = ir.VectorType(_I32, w.lanes)
        left_of, right_from, zero = _splat(b, e[4], ranks), _splat(b, e[5], ranks), w.constant(0)

        def vector(array: Any, place: Any) -> Any:
            return b.bitcast(b.gep(array, [place]), w.kind.as_pointer())

        align = w.kind.element.width // 8 if w.is_whole else 8
        at = [vector(e[9], e[8]), vector(e[9], b.add(e[7], e[8]))]

        def body(i: Any, s: _State) -> _State:
            row = b.sext(b.load(b.gep(e[0], [b.add(e[1], i)])), _I64)
            rank = _splat(b, b.load(b.gep(e[3], [row])), ranks)
            values = b.load(vector(e[6], b.add(b.mul(row, e[7]), e[8])), align=align)
            sides = b.icmp_signed("<", rank, left_of), b.icmp_signed(">=", rank, right_from)
            return [w.add(x, b.select(side, values, zero)) for x, side in zip(s, sides, strict=True)]

        found = _loop(b, b.sub(e[2], e[1]), [b.load(place, align=align) for place in at], body)
        for lanes, place in zip(found, at, strict=True):
            b.store(lanes, place, align=align)
        return context.get_dummy_value()

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator]
def walk_both(
    _context: Any, rank: Any, walk: Any, penalty: Any, steps: Any, below: Any, first: Any, out: Any
) -> Any:
    """Walk the rows with rank < ``below`` and those with rank >= ``first``.

    Parameters
    ----------
    rank, walk, penalty
        (N,) rank (without a sign), signed weight and penalty by slot.
    steps, below, first
        Number of vectors, and the ranks.
    out
        (8,) int64 or doubles: greatest and least sum of the left rows, then of the right ones, written.
    """
    signature = types.void(rank, walk, penalty, types.int64, types.int64, types.int64, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        e, b, w = _Emitter(context, builder, signature, arguments), builder, _Weights(builder, walk)
        ranks_of = e.vector(0, w.lanes)
        left_of, right_from, zero = _splat(b, e[4], ranks_of), _splat(b, e[5], ranks_of), w.constant(0)

        def body(i: Any, s: _State) -> _State:
            ranks, weights, penalties = (e.load(k, i, w.lanes) for k in range(3))
            left = w.add(s[0], b.select(b.icmp_unsigned("<", ranks, left_of), weights, zero))
            right = w.add(s[3], b.select(b.icmp_unsigned(">=", ranks, right_from), weights, zero))
            return [
                left,
                w.greater(s[1], w.subtract(left, penalties)),
                w.less(s[2], w.add(left, penalties)),
                right,
                w.greater(s[4], w.subtract(right, penalties)),
                w.less(s[5], w.add(right, penalties)),
            ]

        lanes = _loop(b, e[3], [zero, w.constant(w.none), w.constant(-w.none)] * 2, body)
        for side in (0, 1):
            high, low = w.joined(*lanes[3 * side : 3 * side + 3])
            e.store(2 * side, high)
            e.store(2 * side + 1, low)
        return context.get_dummy_value()

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator]
def walk_both_sized(
    _context: Any, rank: Any, walk: Any, size: Any, penalty: Any, steps: Any, below: Any, first: Any, sized_below: Any,
    sized_first: Any, least: Any, out: Any,
) -> Any:  # fmt: skip
    """As :func:`walk_both`, over splits with a least number of samples in both of their leaves.

    Parameters
    ----------
    size
        (N,) number of samples by slot, of the type of the weights.
    sized_below, sized_first
        Samples are those of the rows with rank < ``sized_below``, and with rank >= ``sized_first``.
    least
        Least number of samples.
    out
        Greatest and least sum of the left rows, then of the right ones: see :func:`found_split`. Then the number of
        samples on both sides.
    """
    i = types.int64
    signature = types.void(rank, walk, size, penalty, i, i, i, i, i, i, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        e, b, w = _Emitter(context, builder, signature, arguments), builder, _Weights(builder, walk)
        ranks_of = e.vector(0, w.lanes)
        ends_of, zero = [_splat(b, e[k], ranks_of) for k in range(5, 9)], w.constant(0)

        def members(ranks: Any, below: Any, first: Any) -> tuple[Any, Any]:
            return b.icmp_unsigned("<", ranks, below), b.icmp_unsigned(">=", ranks, first)

        def count(i: Any, s: _State) -> _State:
            sizes, own = e.load(2, i, w.lanes), members(e.load(0, i, w.lanes), *ends_of[2:])
            return [w.add(x, b.select(inside, sizes, zero)) for x, inside in zip(s, own, strict=True)]

        begin, limits = [zero, w.constant(w.none), w.constant(-w.none), zero], []
        for side, lanes in enumerate(_loop(b, e[4], [zero] * 2, count)):
            n, ends = w.limits(lanes, e[9])
            e.store(4 + side, w.number(n))
            limits.append(ends)

        def body(i: Any, s: _State) -> _State:
            ranks, weights, sizes, penalties = (e.load(k, i, w.lanes) for k in range(4))
            own, counted, after = members(ranks, *ends_of[:2]), members(ranks, *ends_of[2:]), []
            for side in (0, 1):
                total, greatest, least, samples = s[4 * side : 4 * side + 4]
                total = w.add(total, b.select(own[side], weights, zero))
                samples = w.add(samples, b.select(counted[side], sizes, zero))
                fits = w.is_between(samples, limits[side])
                high = b.select(fits, w.subtract(total, penalties), begin[1])
                low = b.select(fits, w.add(total, penalties), begin[2])
                after += [total, w.greater(greatest, high), w.less(least, low), samples]
            return after

        lanes = _loop(b, e[4], begin * 2, body)
        for side in (0, 1):
            high, low = w.joined(*lanes[4 * side : 4 * side + 3])
            e.store(2 * side, high)
            e.store(2 * side + 1, low)
        return context.get_dummy_value()

    return signature, generate


@kernel
def found_split(greatest: float, itemsize: int) -> bool:
    """Return whether a sized walk has found a split, from the greatest sum and the size of the type of the weights.

    A walk without one has, of whole numbers, less than any sum of weights, and else minus infinity.
    """
    return greatest > -np.inf if itemsize == 8 else greatest >= -MAX_WEIGHT


@intrinsic  # type: ignore[untyped-decorator]
def sums_of_both(_context: Any, rank: Any, walk: Any, steps: Any, below: Any, first: Any, out: Any) -> Any:
    """Add up signed weights and their sizes on both sides; as :func:`walk_both`.

    ``out`` gets the sum and the sum of sizes of the left rows, then of the right ones.
    """
    signature = types.void(rank, walk, types.int64, types.int64, types.int64, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        e, b, w = _Emitter(context, builder, signature, arguments), builder, _Weights(builder, walk)
        ranks_of = e.vector(0, w.lanes)
        left_of, right_from, zero = _splat(b, e[3], ranks_of), _splat(b, e[4], ranks_of), w.constant(0)

        def body(i: Any, s: _State) -> _State:
            ranks, weights = e.load(0, i, w.lanes), e.load(1, i, w.lanes)
            left = b.select(b.icmp_unsigned("<", ranks, left_of), weights, zero)
            right = b.select(b.icmp_unsigned(">=", ranks, right_from), weights, zero)
            sizes = [w.greater(x, w.subtract(zero, x)) for x in (left, right)]
            return [w.add(x, y) for x, y in zip(s, (left, sizes[0], right, sizes[1]), strict=True)]

        for k, lanes in enumerate(_loop(b, e[2], [zero] * 4, body)):
            e.store(k, w.total(lanes))
        return context.get_dummy_value()

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator]
def walk_classes(
    _context: Any, rank: Any, label: Any, weight: Any, penalty: Any, steps: Any, first: Any, beyond: Any, up: Any,
    down: Any, out: Any,
) -> Any:  # fmt: skip
    """Walk class ``up`` against class ``down`` over the rows with ``first <= rank < beyond``.

    Parameters
    ----------
    rank, label, weight, penalty
        (N,) rank (without a sign), class (16 bits), weight and penalty by slot.
    steps, first, beyond, up, down
        Number of vectors, the ranks, and the classes.
    out
        (8,) int64 or doubles: greatest and least sum, written.
    """
    signature = types.void(rank, label, weight, penalty, *[types.int64] * 5, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        e, b, w = _Emitter(context, builder, signature, arguments), builder, _Weights(builder, weight)
        lowest, highest = (_splat(b, e[j], e.vector(0, w.lanes)) for j in (5, 6))
        plus, minus = (_splat(b, e[j], e.vector(1, w.lanes)) for j in (7, 8))
        zero = w.constant(0)

        def body(i: Any, s: _State) -> _State:
            ranks, labels, weights, penalties = (e.load(j, i, w.lanes) for j in range(4))
            inside = b.and_(b.icmp_unsigned(">=", ranks, lowest), b.icmp_unsigned("<", ranks, highest))
            is_up, is_down = (b.and_(inside, b.icmp_signed("==", labels, own)) for own in (plus, minus))
            total = w.subtract(w.add(s[0], b.select(is_up, weights, zero)), b.select(is_down, weights, zero))
            return [
                total,
                w.greater(s[1], w.subtract(total, penalties)),
                w.less(s[2], w.add(total, penalties)),
            ]

        high, low = w.joined(*_loop(b, e[4], [zero, w.constant(w.none), w.constant(-w.none)], body))
        e.store(0, high)
        e.store(1, low)
        return context.get_dummy_value()

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator]
def walk_classes_sized(
    _context: Any, rank: Any, label: Any, weight: Any, size: Any, penalty: Any, steps: Any, first: Any, beyond: Any,
    sized_first: Any, sized_beyond: Any, up: Any, down: Any, least: Any, out: Any,
) -> Any:  # fmt: skip
    """As :func:`walk_classes`, over splits with a least number of samples on both sides; see :func:`walk_both_sized`.

    Samples are those of the rows with ``sized_first <= rank < sized_beyond``.
    """
    signature = types.void(rank, label, weight, size, penalty, *[types.int64] * 8, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        e, b, w = _Emitter(context, builder, signature, arguments), builder, _Weights(builder, weight)
        ends_of = [_splat(b, e[j], e.vector(0, w.lanes)) for j in range(6, 10)]
        plus, minus = (_splat(b, e[j], e.vector(1, w.lanes)) for j in (10, 11))
        zero, none = w.constant(0), w.constant(w.none)

        def are_inside(ranks: Any, first: Any, beyond: Any) -> Any:
            return b.and_(b.icmp_unsigned(">=", ranks, first), b.icmp_unsigned("<", ranks, beyond))

        def count(i: Any, s: _State) -> _State:
            inside = are_inside(e.load(0, i, w.lanes), *ends_of[2:])
            return [w.add(s[0], b.select(inside, e.load(3, i, w.lanes), zero))]

        _, ends = w.limits(_loop(b, e[5], [zero], count)[0], e[12])

        def body(i: Any, s: _State) -> _State:
            ranks, labels, weights, sizes, penalties = (e.load(j, i, w.lanes) for j in range(5))
            inside = are_inside(ranks, *ends_of[:2])
            is_up, is_down = (b.and_(inside, b.icmp_signed("==", labels, own)) for own in (plus, minus))
            total = w.subtract(w.add(s[0], b.select(is_up, weights, zero)), b.select(is_down, weights, zero))
            samples = w.add(s[3], b.select(are_inside(ranks, *ends_of[2:]), sizes, zero))
            fits = w.is_between(samples, ends)
            high = b.select(fits, w.subtract(total, penalties), none)
            low = b.select(fits, w.add(total, penalties), w.constant(-w.none))
            return [total, w.greater(s[1], high), w.less(s[2], low), samples]

        lanes = _loop(b, e[5], [zero, none, w.constant(-w.none), zero], body)
        high, low = w.joined(*lanes[:3])
        e.store(0, high)
        e.store(1, low)
        return context.get_dummy_value()

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator]
def weights_of_classes(
    _context: Any, rank: Any, label: Any, weight: Any, steps: Any, first: Any, beyond: Any, k: Any, out: Any
) -> Any:
    """Add up the weights of :data:`CLASSES_AT_A_TIME` classes from k on among the rows with ``first <= rank < beyond``.

    As :func:`walk_classes`; ``out`` holds the weights of all classes.
    """
    signature = types.void(rank, label, weight, *[types.int64] * 4, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        e, b, w = _Emitter(context, builder, signature, arguments), builder, _Weights(builder, weight)
        lowest, highest = (_splat(b, e[j], e.vector(0, w.lanes)) for j in (4, 5))
        numbers = [b.add(e[6], ir.Constant(_I64, own)) for own in range(CLASSES_AT_A_TIME)]
        classes, zero = [_splat(b, own, e.vector(1, w.lanes)) for own in numbers], w.constant(0)

        def body(i: Any, s: _State) -> _State:
            ranks, labels, weights = (e.load(j, i, w.lanes) for j in range(3))
            inside = b.and_(b.icmp_unsigned(">=", ranks, lowest), b.icmp_unsigned("<", ranks, highest))
            weights = b.select(inside, weights, zero)
            return [
                w.add(total, b.select(b.icmp_signed("==", labels, own), weights, zero))
                for total, own in zip(s, classes, strict=True)
            ]

        for lanes, own in zip(_loop(b, e[3], [zero] * len(classes), body), numbers, strict=True):
            b.store(w.total(lanes), b.gep(e[7], [own]))
        return context.get_dummy_value()

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator]
def walk_squared(
    _context: Any, rank: Any, weight: Any, target: Any, penalty: Any, steps: Any, below: Any, first: Any, least: Any,
    out: Any,
) -> Any:  # fmt: skip
    """Find the greatest gain of a split for the rows with rank < ``below`` and for those with rank >= ``first``.

    Parameters
    ----------
    rank, weight, target, penalty
        (N,) rank (without a sign), doubles and int16: rank, weight, weighted target and penalty by slot, of 8 lanes.
    steps, below, first
        Half the number of vectors, and the ranks.
    least
        Half of the least weight of a row, a double: sums that differ by less differ by rounding.
    out
        (6,) doubles: weight, weighted target and gain of the left rows, then of the right ones, written.
    """
    signature = types.void(
        rank, weight, target, penalty, types.int64, types.int64, types.int64, types.float64, out
    )

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        e, b, L = _Emitter(context, builder, signature, arguments), builder, WIDE_LANES
        left_of, right_from = (_splat(b, e[k], e.vector(0, L)) for k in (5, 6))
        zero, one = (ir.Constant(_WIDE, [x] * L) for x in (0.0, 1.0))
        no_penalty = ir.Constant(e.vector(3, L), [0] * L)

        def members(i: Any) -> list[list[Any]]:
            """Weight and weighted target of a vector's rows on both sides."""
            ranks, values = e.load(0, i, L), [e.load(k, i, L) for k in (1, 2)]
            sides = b.icmp_unsigned("<", ranks, left_of), b.icmp_unsigned(">=", ranks, right_from)
            return [[b.select(side, value, zero) for value in values] for side in sides]

        def vectors_of(i: Any) -> tuple[Any, Any]:
            return b.shl(i, ir.Constant(_I64, 1)), b.add(b.shl(i, ir.Constant(_I64, 1)), ir.Constant(_I64, 1))

        def add(i: Any, s: _State) -> _State:
            both = [[value for side in members(j) for value in side] for j in vectors_of(i)]
            return [b.fadd(x, b.fadd(*pair)) for x, *pair in zip(s, *both, strict=True)]

        begin, means, weights, smallest = [], [], [], []
        sums = []
        for lanes in _loop(b, e[4], [zero] * 4, add):
            before, inclusive = _sums_before(b, lanes, zero, b.fadd)
            sums.append((before, b.shuffle_vector(inclusive, zero, _lanes([L - 1] * L))))
        for side in (0, 1):
            (before, total), (before_target, total_target) = sums[2 * side], sums[2 * side + 1]
            begin += [before, before_target, zero, one, zero, one]
            # Without weight this is not a number, and compares with nothing.
            means.append(b.fdiv(total_target, total))
            weights.append(total)
            smallest.append(b.fmul(b.fmul(total, _splat(b, e[7], _WIDE)), ir.Constant(_WIDE, [0.5] * L)))
            for k, lanes in enumerate((total, total_target)):
                e.store(3 * side + k, b.extract_element(lanes, ir.Constant(_I32, 0)))

        def compare(i: Any, s: _State) -> _State:
            # Two vectors, each with a best of its own: to compare with the best is what takes longest.
            after = list(s)
            for at, j in enumerate(vectors_of(i)):
                allowed = b.icmp_signed("==", e.load(3, j, L), no_penalty)
                for side, (weight, target) in enumerate(members(j)):
                    own, kept = 6 * side, 6 * side + 2 + 2 * at
                    w, t = b.fadd(after[own], weight), b.fadd(after[own + 1], target)
                    d = b.fsub(t, b.fmul(w, means[side]))
                    gain, by = b.fmul(d, d), b.fmul(w, b.fsub(weights[side], w))
                    more = b.fcmp_ordered(">", b.fmul(gain, after[kept + 1]), b.fmul(after[kept], by))
                    more = b.and_(more, b.and_(allowed, b.fcmp_ordered(">", by, smallest[side])))
                    after[own], after[own + 1] = w, t
                    after[kept] = b.select(more, gain, after[kept])
                    after[kept + 1] = b.select(more, by, after[kept + 1])
            return after

        def greater(x: Any, y: Any) -> Any:
            return b.select(b.fcmp_ordered(">", x, y), x, y)

        lanes = _loop(b, e[4], begin, compare)
        for side in (0, 1):
            _, _, *kept = lanes[6 * side : 6 * side + 6]
            gains, shift = greater(b.fdiv(kept[0], kept[1]), b.fdiv(kept[2], kept[3])), L // 2
            while shift:
                other = b.shuffle_vector(gains, gains, _lanes([(lane + shift) % L for lane in range(L)]))
                gains = greater(gains, other)
                shift //= 2
            e.store(3 * side + 2, b.extract_element(b.fmul(gains, weights[side]), ir.Constant(_I32, 0)))
        return context.get_dummy_value()

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator]
def count_common(_context: Any, rows: Any, mask: Any, begin: Any, end: Any) -> Any:
    """Return how many bits two sets have in common, from one word to another.

    Parameters
    ----------
    rows, mask
        (W,) words of both sets.
    begin, end
        Multiples of :data:`WORDS_AT_A_TIME`.
    """
    signature = types.int64(rows, mask, types.int64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        e, b, L = _Emitter(context, builder, signature, arguments), builder, WORDS_AT_A_TIME
        shift = ir.Constant(_I64, L.bit_length() - 1)
        first = b.lshr(e[2], shift)

        def body(i: Any, s: _State) -> _State:
            common = b.and_(e.load(0, b.add(first, i), L), e.load(1, b.add(first, i), L))
            return [b.add(s[0], _call(b, f"llvm.ctpop.v{L}i64", common.type, [common]))]

        kind = ir.VectorType(_I64, L)
        (lanes,) = _loop(b, b.sub(b.lshr(e[3], shift), first), [ir.Constant(kind, [0] * L)], body)
        return _call(b, f"llvm.vector.reduce.add.v{L}i64", _I64, [lanes])

    return signature, generate


@kernel
def choose_slots(
    ranks: Any, own: Any, first: int, beyond: int, n: int, lanes: int, steps: int, slots: IntArray, N: int, penalty: Any
) -> None:  # fmt: skip
    """Write the slots of the rows of a side in the order of a feature, by chunks of their own; -1 in empty ones.

    Parameters
    ----------
    ranks, own
        (lanes * steps,) ranks by slot, in the feature of the threshold and in that of the order.
    first, beyond
        Ranks of the side.
    n, lanes, steps
        Number of rows, and of lanes and vectors of the order.
    slots, N
        (N,) written, and how many there are.
    penalty
        (N,) 0 written behind the last row of each value.
    """
    for j in range(N):
        slots[j] = -1
    k, new, last = 0, 0, -1
    for lane in range(lanes):
        for slot in range(lane, min(steps, n - k) * lanes + lane, lanes):
            if first <= ranks[slot] < beyond:
                slots[new] = slot
                if last >= 0 and own[slots[last]] != own[slot]:
                    penalty[last] = 0
                last = new
                new += lanes
                if new >= N:
                    new = new % lanes + 1
        k += steps
    if last >= 0:
        penalty[last] = 0
