"""What the row loops need of the machine itself: four numbers at once, and the two halves of a number.

A *quad* is a tuple of four floats. Numba hands such a tuple on as four scalars and leaves joining them to a pass of
LLVM that it switches off, so these operations say it themselves: inside, a quad is one vector of four doubles, and
LLVM drops the taking apart and putting together between them. On machines with shorter registers it splits the vector.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

native: Any = intrinsic  # what compiled code calls has one argument less than what is written here

WIDTH = 4
_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_BITS = ir.IntType(64)
_QUAD: Any = types.UniTuple(types.float64, WIDTH)  # type: ignore[no-untyped-call]


def _is_flat(array: Any, *, writable: bool = False) -> bool:
    """Whether the operations can be compiled for an array: doubles one after the other."""
    is_flat = isinstance(array, types.Array) and array.ndim == 1 and array.layout == "C"
    return is_flat and array.dtype == types.float64 and (array.mutable or not writable)


def _lane(number: int) -> ir.Constant:
    return ir.Constant(ir.IntType(32), number)


def _vector(builder: Any, quad: Any) -> Any:
    vector = ir.Constant(_VECTOR, ir.Undefined)
    for k in range(WIDTH):
        vector = builder.insert_element(vector, builder.extract_value(quad, k), _lane(k))
    return vector


def _quad(context: Any, builder: Any, vector: Any) -> Any:
    quad = context.get_constant_undef(_QUAD)
    for k in range(WIDTH):
        quad = builder.insert_value(quad, builder.extract_element(vector, _lane(k)), k)
    return quad


def _place(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """Return the pointer to array[index : index + 4] of a contiguous array of doubles."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer())


def _load(builder: Any, place: Any) -> Any:
    vector = builder.load(place)
    vector.align = 8
    return vector


def _store(builder: Any, vector: Any, place: Any) -> None:
    builder.store(vector, place).align = 8


@native
def quad_at(_typing: Any, array: Any, index: Any) -> Any:
    """Return array[index : index + 4]; nothing checks the bounds, here and below."""
    if not _is_flat(array):
        return None

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature.args[0], arguments[0], arguments[1])
        return _quad(context, builder, _load(builder, place))

    return _QUAD(array, index), code


@native
def put(_typing: Any, array: Any, index: Any, quad: Any) -> Any:
    """Write a quad to array[index : index + 4]."""
    if not _is_flat(array, writable=True):
        return None

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature.args[0], arguments[0], arguments[1])
        _store(builder, _vector(builder, arguments[2]), place)
        return context.get_dummy_value()

    return types.void(array, index, quad), code


@native
def add_at(_typing: Any, array: Any, index: Any, quad: Any) -> Any:
    """Add a quad to array[index : index + 4]."""
    if not _is_flat(array, writable=True):
        return None

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature.args[0], arguments[0], arguments[1])
        _store(builder, builder.fadd(_load(builder, place), _vector(builder, arguments[2])), place)
        return context.get_dummy_value()

    return types.void(array, index, quad), code


@native
def times_at(_typing: Any, quad: Any, array: Any, index: Any) -> Any:
    """Return the quad times array[index : index + 4]."""
    if not _is_flat(array):
        return None

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature.args[1], arguments[1], arguments[2])
        return _quad(context, builder, builder.fmul(_vector(builder, arguments[0]), _load(builder, place)))

    return _QUAD(quad, array, index), code


@native
def plus(_typing: Any, left: Any, right: Any) -> Any:
    """Return the sum of two quads."""

    def code(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        left, right = (_vector(builder, quad) for quad in arguments)
        return _quad(context, builder, builder.fadd(left, right))

    return _QUAD(left, right), code


@native
def scaled(_typing: Any, quad: Any, factor: Any) -> Any:
    """Return the quad times a number."""
    if factor != types.float64:
        return None

    def code(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        factors = ir.Constant(_VECTOR, ir.Undefined)
        for k in range(WIDTH):
            factors = builder.insert_element(factors, arguments[1], _lane(k))
        return _quad(context, builder, builder.fmul(_vector(builder, arguments[0]), factors))

    return _QUAD(quad, factor), code


def _moved(builder: Any, vector: Any, places: int) -> Any:
    """Return the vector with its numbers `places` lanes further up (down if negative) and zeros where none arrive."""
    lanes = [k - places if 0 <= k - places < WIDTH else WIDTH for k in range(WIDTH)]
    mask = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), lanes)
    return builder.shuffle_vector(vector, ir.Constant(_VECTOR, [0.0] * WIDTH), mask)


@native
def sums_below(_typing: Any, quad: Any) -> Any:
    """Return (0, q₀, q₀ + q₁, q₀ + q₁ + q₂) of a quad q."""

    def code(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        vector = _moved(builder, _vector(builder, arguments[0]), 1)
        vector = builder.fadd(vector, _moved(builder, vector, 1))
        return _quad(context, builder, builder.fadd(vector, _moved(builder, vector, 2)))

    return _QUAD(quad), code


@native
def plus_reached(_typing: Any, counts: Any, number: Any, marks: Any) -> Any:
    """Return a quad of counts, one more wherever `number` is at least the mark there."""
    if number != types.float64:
        return None

    def code(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        numbers = ir.Constant(_VECTOR, ir.Undefined)
        for k in range(WIDTH):
            numbers = builder.insert_element(numbers, arguments[1], _lane(k))
        reached = builder.fcmp_ordered(">=", numbers, _vector(builder, arguments[2]))
        ones = builder.select(reached, ir.Constant(_VECTOR, [1.0] * WIDTH), ir.Constant(_VECTOR, [0.0] * WIDTH))
        return _quad(context, builder, builder.fadd(_vector(builder, arguments[0]), ones))

    return _QUAD(counts, number, marks), code


@native
def less_next(_typing: Any, quad: Any) -> Any:
    """Return (q₀ − q₁, q₁ − q₂, q₂ − q₃, q₃) of a quad q."""

    def code(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        vector = _vector(builder, arguments[0])
        return _quad(context, builder, builder.fsub(vector, _moved(builder, vector, -1)))

    return _QUAD(quad), code


@native
def exponent(_typing: Any, number: Any) -> Any:
    """Return e of number = m · 2^e, 1 ≤ m < 2, for a positive normal number."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        bits = builder.bitcast(arguments[0], _BITS)
        return builder.sub(builder.lshr(bits, ir.Constant(_BITS, 52)), ir.Constant(_BITS, 1023))

    return types.int64(number), code


@native
def mantissa(_typing: Any, number: Any) -> Any:
    """Return m of number = m · 2^e, 1 ≤ m < 2, for a positive normal number."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        bits = builder.bitcast(arguments[0], _BITS)
        fraction = builder.and_(bits, ir.Constant(_BITS, (1 << 52) - 1))
        return builder.bitcast(builder.or_(fraction, ir.Constant(_BITS, 1023 << 52)), ir.DoubleType())

    return types.float64(number), code
