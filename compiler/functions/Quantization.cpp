//===- Quantization.cpp - integers that stand for numbers -----------------===//
//
// x = (q - zero_point) scale. A scale and a zero point are one number, one for
// each index of a dimension, or one for each element. q may be a float,
// too. No gradient passes the rounding.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Products.h"
#include "ir/ops/Inference.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::functions;

/// The least and the largest number of an integer type.
static std::pair<double, double> rangeOf(Type element) {
  unsigned bits = element.getIntOrFloatBitWidth();
  if (element.isUnsignedInteger())
    return {0.0, APInt::getMaxValue(bits).roundToDouble()};
  return {APInt::getSignedMinValue(bits).signedRoundToDouble(),
          APInt::getSignedMaxValue(bits).signedRoundToDouble()};
}

/// Operand `i`, one number or one for each index of `dim`, stretched to
/// `shape`, in `element`; null after a mistake.
static Expr parameter(Call &call, size_t i, Type element, Sizes shape,
                      int64_t dim) {
  Expr p = call[i];
  if (p.shape() == shape)
    return p.cast(element);
  if (productOf(p.shape()) == 1)
    return call.stretch(reshaped(call, p, Sizes()).cast(element), shape);
  if (p.rank() == 1 && dim < int64_t(shape.size()) && p.dim(0) == shape[dim])
    return along(call, p.cast(element), shape, dim);
  (void)call.fail("expected operand #" + Twine(i) +
                  " to be one number or one for each index of dimension " +
                  Twine(dim) + " of " + infer::text(shape) + ", but got " +
                  infer::text(p.shape()));
  return {};
}

/// The attribute `dim`; any where there is none of several.
static int64_t dimOf(Call &call) {
  int64_t rank = call[0].rank(), dim = call.integer("dim", 1);
  if (call.hasAttribute("dim"))
    return call.dim("dim", 1, rank);
  return dim;
}

/// round(x) + zero, within what the type holds; casts to floats of 8 bits round
/// by themselves.
static Expr saturated(Call &call, const Expr &x, const Expr &zero,
                      Type element) {
  if (!x)
    return x;
  if (auto floats = dyn_cast<FloatType>(element)) {
    double most =
        APFloat::getLargest(floats.getFloatSemantics()).convertToDouble();
    Expr y = zero ? x + zero : x;
    return maximum(minimum(y, y.like(most)), y.like(-most)).cast(element);
  }
  Expr q = call.op("round", x.value);
  if (!q)
    return q;
  if (zero)
    q = q + zero;
  auto [low, high] = rangeOf(element);
  q = select(isLess(q, low), q.like(low), q);
  q = select(isLess(q.like(high), q), q.like(high), q);
  return q.cast(element);
}

static LogicalResult expectByteOrShort(Call &call, size_t i) {
  Type element = elementOf(call[i]);
  if (isa<IntegerType>(element) && !element.isInteger(1) &&
      element.getIntOrFloatBitWidth() <= 16)
    return success();
  return call.fail("expected operand #" + Twine(i) +
                   " to have integers of 8 or 16 bits");
}

static CallResults quantize(Call &call) {
  if (failed(call.expectFloat(0)) && failed(call.expectInteger(0)))
    return failure();
  if (failed(call.expectFloat(1)) ||
      (!isFloat(call[2]) && failed(expectByteOrShort(call, 2))))
    return failure();
  int64_t dim = dimOf(call);
  Expr x = call[0];
  Type f32 = call.builder.getF32Type();
  x = isFloat(x) ? wide(x) : x.cast(f32);
  Expr scale = parameter(call, 1, elementOf(x), x.shape(), dim);
  Expr zero = parameter(call, 2, elementOf(x), x.shape(), dim);
  if (!scale || !zero)
    return failure();
  return results({saturated(call, x / scale, zero, elementOf(call[2]))});
}

static CallResults dequantize(Call &call) {
  bool isSmall = isFloat(call[0]);
  if ((!isSmall && failed(call.expectInteger(0))) ||
      failed(call.expectFloat(1)))
    return failure();
  if (call.has(2) && failed(call.expectSameElements(0, 2)))
    return failure();
  int64_t dim = dimOf(call);
  Expr x = call[0];
  Type type = call.builder.getI32Type();
  if (isSmall)
    type = computeType(call[1]);
  else if (elementOf(x).getIntOrFloatBitWidth() > 32)
    return call.fail("expected operand #0 to have integers of at most 32 bits");
  x = x.cast(type);
  Expr scale = parameter(call, 1, computeType(call[1]), x.shape(), dim);
  Expr zero = call.has(2) ? parameter(call, 2, type, x.shape(), dim) : Expr();
  if (!scale || (call.has(2) && !zero))
    return failure();
  if (zero)
    x = x - zero;
  return results({(x.cast(elementOf(scale)) * scale).cast(elementOf(call[1]))});
}

/// The scale and zero point from the data: 0 is a number of the range.
static CallResults dynamicQuantize(Call &call) {
  if (failed(call.expectFloat(0)))
    return failure();
  Expr x = wide(call[0]);
  if (productOf(x.shape()) == 0)
    return call.fail("expected operand #0 not to be empty");
  List all = upTo(x.rank());
  Expr high = reduced(call, "reduce_max", x, all);
  Expr low = reduced(call, "reduce_min", x, all);
  if (!high || !low)
    return failure();
  high = maximum(high, high.like(0.0));
  low = -maximum(-low, low.like(0.0));
  Type u8 =
      IntegerType::get(call.builder.getContext(), 8, IntegerType::Unsigned);
  Expr scale = (high - low) / 255.0;
  scale = replaced(scale, 0, 1);
  Expr zero = saturated(call, -low / scale, {}, u8);
  if (!zero)
    return failure();
  Expr wideScale = call.stretch(scale, x.shape());
  Expr wideZero = call.stretch(zero.cast(elementOf(x)), x.shape());
  if (!wideScale || !wideZero)
    return failure();
  return results({saturated(call, x / wideScale, wideZero, u8),
                  scale.cast(elementOf(call[0])), zero});
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Operand `i` less its zero point, operand `zero`, which is one number or one
/// for each row or column, in f64: sums of products of 8 bits are exact there.
static Expr shifted(Call &call, size_t i, size_t zero, bool ofRows) {
  Type f64 = call.builder.getF64Type();
  Expr x = call[i].cast(f64);
  if (!call.has(zero))
    return x;
  Expr p = call[zero].cast(f64);
  // [M] stands for the rows of [..., M, K].
  if (ofRows && p.rank() == 1 && p.dim(0) != 1)
    p = unsqueezed(call, p, 1);
  SmallVector<Expr> both{x, p};
  if (failed(call.broadcast(both)))
    return {};
  if (both[0].shape() != x.shape()) {
    (void)call.fail("expected a zero point for the whole or each row or "
                    "column of " +
                    infer::text(x.shape()) + ", but got " +
                    infer::text(call[zero].shape()));
    return {};
  }
  return both[0] - both[1];
}

static LogicalResult expectBytes(Call &call,
                                 std::initializer_list<size_t> list) {
  for (size_t i : list)
    if (call.has(i) &&
        (failed(call.expectInteger(i)) || failed(expectByteOrShort(call, i))))
      return failure();
  return success();
}

static CallResults integerMatmul(Call &call) {
  if (failed(expectBytes(call, {0, 1, 2, 3})))
    return failure();
  Expr y = product(call, shifted(call, 0, 2, true), shifted(call, 1, 3, false));
  if (!y)
    return failure();
  return results({y.cast(call.builder.getI32Type())});
}

static CallResults quantizedMatmul(Call &call) {
  if (failed(expectBytes(call, {0, 2, 3, 5, 7})))
    return failure();
  for (size_t i : {1, 4, 6})
    if (failed(call.expectFloat(i)))
      return failure();
  // a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero.
  Expr y = product(call, shifted(call, 0, 2, true), shifted(call, 3, 5, false));
  if (!y)
    return failure();
  Type f64 = elementOf(y);
  int64_t rows = std::max<int64_t>(0, y.rank() - 2);
  int64_t columns = std::max<int64_t>(0, y.rank() - 1);
  Expr a = parameter(call, 1, f64, y.shape(), rows);
  Expr b = parameter(call, 4, f64, y.shape(), columns);
  Expr c = parameter(call, 6, f64, y.shape(), columns);
  Expr zero = parameter(call, 7, f64, y.shape(), columns);
  if (!a || !b || !c || !zero)
    return failure();
  return results({saturated(call, y * (a * b / c), zero, elementOf(call[7]))});
}

void tandem::addQuantizationFunctions(FunctionTable &table) {
  table.family("Quantization");
  table.add("quantize_linear(x, scale, zero_point; dim=1)",
            "round(x / scale) + zero_point within what the type of "
            "zero_point holds",
            quantize);
  table.add("dequantize_linear(x, scale, zero_point?; dim=1)",
            "(x - zero_point) scale", dequantize);
  table.add("dynamic_quantize_linear(x)",
            "x in u8, its scale and its zero point, from the range of x",
            dynamicQuantize);
  table.add("integer_matmul(a, b, a_zero?, b_zero?)",
            "the product of bytes less their zero points, in i32",
            integerMatmul);
  table.add("quantized_matmul(a, a_scale, a_zero, b, b_scale, b_zero, "
            "y_scale, y_zero)",
            "the product of quantized matrices, quantized", quantizedMatmul);
}
