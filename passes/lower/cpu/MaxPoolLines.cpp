//===- MaxPoolLines.cpp - maxima of small windows, a line at a time -------===//
#include "passes/lower/cpu/MaxPoolLines.h"
#include "passes/lower/common/Indices.h"

#include "ir/ops/Scalar.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

Value lower::cpu::isAbove(Code &code, Value x, Value best) {
  auto compare = [&](arith::CmpFPredicate predicate, Value y) -> Value {
    return arith::CmpFOp::create(code.b, code.loc, predicate, x, y);
  };
  Value isNumber = arith::CmpFOp::create(code.b, code.loc,
                                         arith::CmpFPredicate::ORD, best, best);
  return code.both(compare(arith::CmpFPredicate::UGT, best), isNumber);
}

MaxPoolLines::MaxPoolLines(AnchorKernel &kernel, const Window2d &window,
                           int64_t low, int64_t high)
    : kernel(kernel), code(kernel.code), window(window), low(low), high(high) {
  auto shape = cast<RankedTensorType>(kernel.anchor->getOperand(0).getType());
  Type element = shape.getElementType();
  type = scalar::computeType(element);
  if (!isa<Float32Type, Float64Type, BFloat16Type>(element) ||
      window.stride[1] > 2 || high <= low)
    return;
  input =
      kernel.operand(0, dimensions(code.b.getContext(), 4), shape.getShape());
  if (!input.isAffine() || input.stride(3) != 1)
    return;
  lanes = std::min<int64_t>(kernel.target.lanes(type),
                            llvm::bit_floor<uint64_t>(high - low));
}

void MaxPoolLines::takeScratch() {
  maxima = kernel.scratch.take(code, {window.output[1]}, type);
  if (kernel.isWanted(1))
    positions =
        kernel.scratch.take(code, {window.output[1]}, code.b.getI32Type());
}

/// What the outputs of a vector see from `from` on. Nothing behind the last of
/// it is read.
Value MaxPoolLines::seen(Value from) {
  auto load = [&](Value at) {
    return code.widen(code.load(input.memref, at, lanes), type);
  };
  if (window.stride[1] == 1)
    return load(from);
  // The second vector begins with its element before, so that it ends with the
  // last one that is seen.
  SmallVector<int64_t> lanesOf;
  for (int64_t i = 0; i < lanes; ++i)
    lanesOf.push_back(2 * i < lanes ? 2 * i : 2 * i + 1);
  return vector::ShuffleOp::create(code.b, code.loc, load(from),
                                   load(code.add(from, lanes - 1)), lanesOf);
}

void MaxPoolLines::emitVector(Value image, Value channel, Value oh, Value ow,
                              ArrayRef<int64_t> rows) {
  Type integer = code.b.getI32Type();
  Value h = code.add(code.mul(oh, window.stride[0]), -window.before[0]);
  Value w = code.add(code.mul(ow, window.stride[1]), -window.before[1]);
  Value first = arith::IndexCastOp::create(
      code.b, code.loc, integer, code.add(code.mul(h, window.input[1]), w));
  SmallVector<int32_t> apart;
  for (int64_t i = 0; i < lanes; ++i)
    apart.push_back(static_cast<int32_t>(i * window.stride[1]));
  Value lane = arith::ConstantOp::create(code.b, code.loc,
                                         code.b.getI32VectorAttr(apart));
  Value of = code.add(code.splat(first, lanes), lane);
  Value best, where;
  for (int64_t row : rows)
    for (int64_t column = 0; column < window.kernel[1]; ++column) {
      int64_t down = row * window.dilation[0],
              right = column * window.dilation[1];
      Value x = seen(input.at(
          code, {image, channel, code.add(h, down), code.add(w, right)}));
      Value at = code.add(of, down * window.input[1] + right);
      Value takes = best ? isAbove(code, x, best) : Value();
      best = best ? code.select(takes, x, best) : x;
      where = where ? code.select(takes, at, where) : at;
    }
  code.store(best, maxima, ow);
  if (positions)
    code.store(where, positions, ow);
}

void MaxPoolLines::emit(Value image, Value channel, Value oh,
                        ArrayRef<int64_t> rows) {
  int64_t whole = (high - low) / lanes * lanes;
  code.loop(code.index(low), code.index(low + whole), lanes,
            [&](Value ow) { emitVector(image, channel, oh, ow, rows); });
  if (whole != high - low)
    emitVector(image, channel, oh, code.index(high - lanes), rows);
}

void MaxPoolLines::set(Value ow, Value best, Value where) {
  memref::StoreOp::create(code.b, code.loc, best, maxima, ow);
  if (positions)
    memref::StoreOp::create(code.b, code.loc, where, positions, ow);
}

std::pair<Value, Value> MaxPoolLines::get(Value ow) {
  Value best = memref::LoadOp::create(code.b, code.loc, maxima, ow);
  if (!positions)
    return {best, code.number(code.b.getI32Type(), -1)};
  return {best, memref::LoadOp::create(code.b, code.loc, positions, ow)};
}
