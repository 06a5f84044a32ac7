r"""Vector walks: the best split of both sides of a threshold in one pass over each feature.

Let the rows of a set stand in the order of a feature, and let P(t) be the weight of class k minus that of class l among
the first t. A split after the first t rows whose left leaf predicts k and whose right leaf predicts l, or the other way
round, is right for

.. math::  T_l + P(t) \quad \text{or} \quad T_k - P(t),

where T are the weights of the classes in the set. So one running sum, its maximum and its minimum give the least loss
of a split on the feature for two classes; t = 0 and the end stand for one leaf. Rows of equal value are not parted: a
penalty is subtracted before the maximum and added before the minimum.

**Vectors.** The order is cut into 32 chunks of equal length, and slot ``s * 32 + l`` holds row s of chunk l. Vector s
has the s-th row of every chunk: each of 32 lanes of 16 bits walks its own chunk, and at the end the lanes are joined by
the prefix sums of their totals. **Membership is a comparison**: ``rank[g, f]`` holds the rank in feature f of the row
in each slot of the order of g, so that the walk over g of the rows below a threshold of f reads memory in sequence and
branches nowhere.

**Squared loss.** With sums w of weights and s of weighted targets of the first t rows, and W and S of the set, a split
gains :math:`d^2 W / (w (W - w))`, where :math:`d = s - w S / W`. These are doubles in 8 lanes, and the gain needs true
sums: one pass finds the sums of every lane, from which a second one starts and compares gains by their cross products.

LLVM lowers ``<32 x i16>`` to whatever the processor has: AVX-512, AVX2, NEON, or plain registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

#: Rows that a vector holds, one from each chunk.
LANES = 32

#: Most weight of a chunk: running sums of 16 bits stay away from the penalty and from the ends of their range.
MOST_OF_A_CHUNK = 8191

#: What is subtracted between rows of equal value, and where a running maximum begins.
PENALTY, _NONE = 16384, 24576

_I16, _I32, _I64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)
_SHORT, _LONG = ir.VectorType(_I16, LANES), ir.VectorType(_I32, LANES)

#: Rows of a vector of doubles, and how many the number of slots is a multiple of.
WIDE_LANES = 8
TWO_WIDE = 2 * WIDE_LANES

_DOUBLE = ir.DoubleType()
_WIDE, _RANKS = ir.VectorType(_DOUBLE, WIDE_LANES), ir.VectorType(_I16, WIDE_LANES)

_State = Sequence[Any]


def _short(value: int) -> ir.Constant:
    return ir.Constant(_SHORT, [value] * LANES)


def _long(value: int) -> ir.Constant:
    return ir.Constant(_LONG, [value] * LANES)


def _splat(b: Any, value: Any, kind: Any = _SHORT) -> Any:
    """Return a vector of one number."""
    if isinstance(value.type, ir.IntType):
        value = b.trunc(value, _I16)
    undefined = ir.Constant(kind, ir.Undefined)
    one = b.insert_element(undefined, value, ir.Constant(_I32, 0))
    return b.shuffle_vector(one, undefined, _lanes([0] * kind.count))


def _lanes(numbers: Sequence[int]) -> ir.Constant:
    """Return numbers of lanes, for a shuffle."""
    return ir.Constant(ir.VectorType(_I32, len(numbers)), list(numbers))


def _greater(b: Any, x: Any, y: Any) -> Any:
    return b.select(b.icmp_signed(">", x, y), x, y)


def _less(b: Any, x: Any, y: Any) -> Any:
    return b.select(b.icmp_signed("<", x, y), x, y)


def _call(b: Any, name: str, result: Any, argument: Any) -> Any:
    function = b.module.globals.get(name) or ir.Function(
        b.module, ir.FunctionType(result, [argument.type]), name
    )
    return b.call(function, [argument])


def _total(b: Any, lanes: Any) -> Any:
    """Return the sum of all lanes."""
    return b.sext(_call(b, "llvm.vector.reduce.add.v32i32", _I32, b.sext(lanes, _LONG)), _I64)


def _joined(b: Any, total: Any, greatest: Any, least: Any) -> tuple[Any, Any]:
    """Return the greatest and the least sum of a walk from the total, greatest and least sum of each lane."""
    zero = _long(0)
    inclusive, shift = b.sext(total, _LONG), 1
    while shift < LANES:
        mask = [LANES - shift + lane for lane in range(LANES)]
        inclusive = b.add(inclusive, b.shuffle_vector(zero, inclusive, ir.Constant(_LONG, mask)))
        shift *= 2
    before = b.shuffle_vector(
        zero, inclusive, ir.Constant(_LONG, [LANES - 1 + lane for lane in range(LANES)])
    )
    greatest, least = b.sext(greatest, _LONG), b.sext(least, _LONG)
    # A lane without a position between two values has none: it holds what the running maximum began with, penalised.
    greatest = b.select(b.icmp_signed("<", greatest, _long(-MOST_OF_A_CHUNK)), _long(-(2**29)), greatest)
    least = b.select(b.icmp_signed(">", least, _long(MOST_OF_A_CHUNK)), _long(2**29), least)
    high = _call(b, "llvm.vector.reduce.smax.v32i32", _I32, b.add(greatest, before))
    low = _call(b, "llvm.vector.reduce.smin.v32i32", _I32, b.add(least, before))
    return b.sext(high, _I64), b.sext(low, _I64)


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

    def load(self, k: int, i: Any, kind: Any = _SHORT) -> Any:
        """Return vector i of array k."""
        vectors = self.b.bitcast(self._data[k], kind.as_pointer())
        loaded = self.b.load(self.b.gep(vectors, [i]))
        loaded.align = 8 if kind is _WIDE else 2
        return loaded

    def store(self, at: int, value: Any) -> None:
        """Write a number into the last array."""
        self.b.store(value, self.b.gep(self._data[-1], [ir.Constant(_I64, at)]))


@intrinsic  # type: ignore[untyped-decorator]
def walk_both(
    _context: Any, rank: Any, walk: Any, penalty: Any, steps: Any, below: Any, first: Any, out: Any
) -> Any:
    """Walk the rows with rank < ``below`` and those with rank >= ``first``.

    Parameters
    ----------
    rank, walk, penalty
        (N,) uint16, int16 and int16: rank, signed weight and penalty by slot.
    steps, below, first
        Number of vectors, and the ranks.
    out
        (8,) int64: greatest and least sum of the left rows, then of the right ones, written.
    """
    signature = types.void(rank, walk, penalty, types.int64, types.int64, types.int64, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        e, b = _Emitter(context, builder, signature, arguments), builder
        left_of, right_from, zero = _splat(b, e[4]), _splat(b, e[5]), _short(0)

        def body(i: Any, s: _State) -> _State:
            ranks, weights, penalties = e.load(0, i), e.load(1, i), e.load(2, i)
            left = b.add(s[0], b.select(b.icmp_unsigned("<", ranks, left_of), weights, zero))
            right = b.add(s[3], b.select(b.icmp_unsigned(">=", ranks, right_from), weights, zero))
            return [
                left,
                _greater(b, s[1], b.sub(left, penalties)),
                _less(b, s[2], b.add(left, penalties)),
                right,
                _greater(b, s[4], b.sub(right, penalties)),
                _less(b, s[5], b.add(right, penalties)),
            ]

        lanes = _loop(b, e[3], [zero, _short(-_NONE), _short(_NONE)] * 2, body)
        for side in (0, 1):
            high, low = _joined(b, *lanes[3 * side : 3 * side + 3])
            e.store(2 * side, high)
            e.store(2 * side + 1, low)
        return context.get_dummy_value()

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator]
def sums_of_both(_context: Any, rank: Any, walk: Any, steps: Any, below: Any, first: Any, out: Any) -> Any:
    """Add up signed weights and their sizes on both sides; as :func:`walk_both`.

    ``out`` gets the sum and the sum of sizes of the left rows, then of the right ones.
    """
    signature = types.void(rank, walk, types.int64, types.int64, types.int64, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        e, b = _Emitter(context, builder, signature, arguments), builder
        left_of, right_from, zero = _splat(b, e[3]), _splat(b, e[4]), _short(0)

        def body(i: Any, s: _State) -> _State:
            ranks, weights = e.load(0, i), e.load(1, i)
            left = b.select(b.icmp_unsigned("<", ranks, left_of), weights, zero)
            right = b.select(b.icmp_unsigned(">=", ranks, right_from), weights, zero)
            sizes = [_greater(b, x, b.sub(zero, x)) for x in (left, right)]
            return [b.add(s[0], left), b.add(s[1], sizes[0]), b.add(s[2], right), b.add(s[3], sizes[1])]

        for k, lanes in enumerate(_loop(b, e[2], [zero] * 4, body)):
            e.store(k, _total(b, lanes))
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
        (N,) uint16 and int16: rank, class, weight and penalty by slot.
    steps, first, beyond, up, down
        Number of vectors, the ranks, and the classes.
    out
        (8,) int64: greatest and least sum, written.
    """
    signature = types.void(rank, label, weight, penalty, *[types.int64] * 5, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        e, b = _Emitter(context, builder, signature, arguments), builder
        lowest, highest, plus, minus = (_splat(b, e[j]) for j in (5, 6, 7, 8))
        zero = _short(0)

        def body(i: Any, s: _State) -> _State:
            ranks, labels, weights, penalties = (e.load(j, i) for j in range(4))
            inside = b.and_(b.icmp_unsigned(">=", ranks, lowest), b.icmp_unsigned("<", ranks, highest))
            total = b.add(s[0], b.select(b.and_(inside, b.icmp_signed("==", labels, plus)), weights, zero))
            total = b.sub(total, b.select(b.and_(inside, b.icmp_signed("==", labels, minus)), weights, zero))
            return [
                total,
                _greater(b, s[1], b.sub(total, penalties)),
                _less(b, s[2], b.add(total, penalties)),
            ]

        high, low = _joined(b, *_loop(b, e[4], [zero, _short(-_NONE), _short(_NONE)], body))
        e.store(0, high)
        e.store(1, low)
        return context.get_dummy_value()

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator]
def weight_of_class(
    _context: Any, rank: Any, label: Any, weight: Any, steps: Any, first: Any, beyond: Any, k: Any
) -> Any:
    """Return the weight of class k among the rows with ``first <= rank < beyond``; as :func:`walk_classes`."""
    signature = types.int64(rank, label, weight, *[types.int64] * 4)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        e, b = _Emitter(context, builder, signature, arguments), builder
        lowest, highest, own = (_splat(b, e[j]) for j in (4, 5, 6))
        zero = _short(0)

        def body(i: Any, s: _State) -> _State:
            ranks, labels, weights = (e.load(j, i) for j in range(3))
            inside = b.and_(b.icmp_unsigned(">=", ranks, lowest), b.icmp_unsigned("<", ranks, highest))
            return [b.add(s[0], b.select(b.and_(inside, b.icmp_signed("==", labels, own)), weights, zero))]

        return _total(b, _loop(b, e[3], [zero], body)[0])

    return signature, generate


def _before(b: Any, lanes: Any) -> tuple[Any, Any]:
    """Return the sums of the lanes in front of each lane, and the sum of all in every lane."""
    L = WIDE_LANES
    zero, inclusive, shift = ir.Constant(_WIDE, [0.0] * L), lanes, 1
    while shift < L:
        shifted = b.shuffle_vector(zero, inclusive, _lanes([L - shift + lane for lane in range(L)]))
        inclusive = b.fadd(inclusive, shifted)
        shift *= 2
    before = b.shuffle_vector(zero, inclusive, _lanes([L - 1 + lane for lane in range(L)]))
    return before, b.shuffle_vector(inclusive, zero, _lanes([L - 1] * L))


@intrinsic  # type: ignore[untyped-decorator]
def walk_squared(
    _context: Any, rank: Any, weight: Any, target: Any, penalty: Any, steps: Any, below: Any, first: Any, least: Any,
    out: Any,
) -> Any:  # fmt: skip
    """Find the greatest gain of a split for the rows with rank < ``below`` and for those with rank >= ``first``.

    Parameters
    ----------
    rank, weight, target, penalty
        (N,) uint16, doubles and int16: rank, weight, weighted target and penalty by slot, of 8 lanes.
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
        e, b = _Emitter(context, builder, signature, arguments), builder
        left_of, right_from = _splat(b, e[5], _RANKS), _splat(b, e[6], _RANKS)
        zero, one = (ir.Constant(_WIDE, [x] * WIDE_LANES) for x in (0.0, 1.0))
        no_penalty = ir.Constant(_RANKS, [0] * WIDE_LANES)

        def members(i: Any) -> list[list[Any]]:
            """Weight and weighted target of a vector's rows on both sides."""
            ranks, values = e.load(0, i, _RANKS), [e.load(k, i, _WIDE) for k in (1, 2)]
            sides = b.icmp_unsigned("<", ranks, left_of), b.icmp_unsigned(">=", ranks, right_from)
            return [[b.select(side, value, zero) for value in values] for side in sides]

        def vectors_of(i: Any) -> tuple[Any, Any]:
            return b.shl(i, ir.Constant(_I64, 1)), b.add(b.shl(i, ir.Constant(_I64, 1)), ir.Constant(_I64, 1))

        def add(i: Any, s: _State) -> _State:
            both = [[value for side in members(j) for value in side] for j in vectors_of(i)]
            return [b.fadd(x, b.fadd(*pair)) for x, *pair in zip(s, *both, strict=True)]

        begin, means, weights, smallest = [], [], [], []
        sums = [_before(b, lanes) for lanes in _loop(b, e[4], [zero] * 4, add)]
        for side in (0, 1):
            (before, total), (before_target, total_target) = sums[2 * side], sums[2 * side + 1]
            begin += [before, before_target, zero, one, zero, one]
            # Without weight this is not a number, and compares with nothing.
            means.append(b.fdiv(total_target, total))
            weights.append(total)
            smallest.append(
                b.fmul(b.fmul(total, _splat(b, e[7], _WIDE)), ir.Constant(_WIDE, [0.5] * WIDE_LANES))
            )
            for k, lanes in enumerate((total, total_target)):
                e.store(3 * side + k, b.extract_element(lanes, ir.Constant(_I32, 0)))

        def compare(i: Any, s: _State) -> _State:
            # Two vectors, each with a best of its own: to compare with the best is what takes longest.
            after = list(s)
            for at, j in enumerate(vectors_of(i)):
                allowed = b.icmp_signed("==", e.load(3, j, _RANKS), no_penalty)
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
            gains, shift = greater(b.fdiv(kept[0], kept[1]), b.fdiv(kept[2], kept[3])), WIDE_LANES // 2
            while shift:
                other = b.shuffle_vector(
                    gains, gains, _lanes([(lane + shift) % WIDE_LANES for lane in range(WIDE_LANES)])
                )
                gains = greater(gains, other)
                shift //= 2
            e.store(3 * side + 2, b.extract_element(b.fmul(gains, weights[side]), ir.Constant(_I32, 0)))
        return context.get_dummy_value()

    return signature, generate
