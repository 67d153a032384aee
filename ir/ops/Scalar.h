//===- Scalar.h - one element of each pointwise op, in arith and math -----===//
//
// The functions that op records name in their `scalar` expressions. Scalars are
// of *compute types*: f16, bf16 and the floats of 8 bits are computed in f32
// and rounded when stored, everything else in its own type; booleans are i1.
// Floating-point ops carry fastmath `contract`; nothing here assumes that NaN
// or infinity is absent.
//
// Unsigned integers keep their type while code is made of them, because it says
// what the code is; ops of arith, which know signless integers alone, work on
// `signless(x)`. Integers are added, subtracted and multiplied modulo 2^bits.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_OPS_SCALAR_H
#define TANDEM_IR_OPS_SCALAR_H

#include "ir/Dialect.h"

#include "mlir/IR/Builders.h"

namespace tandem::scalar {

using B = mlir::OpBuilder;
using L = mlir::Location;
using V = mlir::Value;

/// The type in which elements of type `element` are computed.
mlir::Type computeType(mlir::Type element);
/// A constant of compute type `type`.
V constant(B &b, L loc, mlir::Type type, double value);
V constant(B &b, L loc, mlir::Type type, mlir::Attribute value);

/// The bits of an integer as a signless one; `x` itself if it is one, or a
/// float. What undoes it is dropped when the code is lowered.
V signless(B &b, L loc, V x);
/// `x`, a signless integer, as `type` of as many bits; the inverse.
V withSign(B &b, L loc, V x, mlir::Type type);
/// The integer `x` of element type `x.getType()` as an index: of a signed one
/// its value, of an unsigned one also, if it is below 2^63.
V toIndex(B &b, L loc, V x);
/// The bits of `x`, an element of type `element` in its compute type, as a
/// signless integer of the element's width.
V toBits(B &b, L loc, V x, mlir::Type element);
/// The element of type `element` with these bits, in its compute type.
V fromBits(B &b, L loc, V bits, mlir::Type element);

/// `SignedOp` of two integers, `UnsignedOp` of unsigned ones: ops of arith.
template <typename SignedOp, typename UnsignedOp = SignedOp>
V integers(B &b, L loc, V x, V y) {
  V p = signless(b, loc, x), q = signless(b, loc, y);
  V made = isUnsignedType(x.getType()) ? V(UnsignedOp::create(b, loc, p, q))
                                       : V(SignedOp::create(b, loc, p, q));
  return withSign(b, loc, made, x.getType());
}

// Those that are called as their op: exp(b, loc, x), logicalAnd(b, loc, x, y),
// ...
#define TANDEM_UNARY_SCALAR(FUNCTION) V FUNCTION(B &b, L loc, V x);
#define TANDEM_BINARY_SCALAR(FUNCTION) V FUNCTION(B &b, L loc, V x, V y);
#include "ir/ops/PointwiseFunctions.h.inc"

V compare(B &b, L loc, ComparePredicate predicate, V x, V y);
V select(B &b, L loc, V condition, V x, V y);
/// `x`, an element of type `from` in its compute type, as an element of type
/// `to` in its compute type; rounds to f16 or bf16 where `to` is one.
V cast(B &b, L loc, V x, mlir::Type from, mlir::Type to);

/// The number of `tandem.philox` as an element of type `to` in its compute
/// type; the others are i64.
V philox(B &b, L loc, V seed, V offset, V position, V draw, mlir::Type to);

} // namespace tandem::scalar

#endif
