//===- PairCode.cpp - products of pairs of bf16 as formulas ---------------===//
#include "passes/lower/cpu/products/PairCode.h"
#include "passes/lower/cpu/products/TileCode.h"
#include "passes/target/Target.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;
using namespace tandem::lower::cpu;

bool lower::cpu::hasPairs(Operation *op) {
  return hasFeature(op, "avx512bf16") && hasFeature(op, "avx512bw") &&
         CpuModel::of(op).bits >= 512;
}

bool lower::cpu::multipliesPairs(Operation *op) {
  auto isNarrow = [](Value x) {
    return getElementTypeOrSelf(x.getType()).isBF16();
  };
  return isNarrow(op->getOperand(0)) && isNarrow(op->getOperand(1)) &&
         hasPairs(op);
}

static VectorType typeOf(Value vector, Type element) {
  auto type = cast<VectorType>(vector.getType());
  return VectorType::get(type.getShape(), element);
}

static Value bits(Code &code, Value vector, Type element) {
  return vector::BitCastOp::create(code.b, code.loc, typeOf(vector, element),
                                   vector);
}

Value pairs::asFloats(Code &code, Value words) {
  return bits(code, words, code.b.getF32Type());
}

Value pairs::asWords(Code &code, Value floats) {
  return bits(code, floats, code.b.getI32Type());
}

Value pairs::of(Code &code, Value low, Value high) {
  auto word = [&](Value x) -> Value {
    return arith::ExtUIOp::create(code.b, code.loc,
                                  typeOf(x, code.b.getI32Type()),
                                  bits(code, x, code.b.getI16Type()));
  };
  Value upper = word(high);
  upper = arith::ShLIOp::create(code.b, code.loc, upper, code.like(upper, 16));
  return arith::OrIOp::create(code.b, code.loc, word(low), upper);
}

Value pairs::ofWide(Code &code, Value low, Value high) {
  Value lower = asWords(code, low), upper = asWords(code, high);
  lower = arith::ShRUIOp::create(code.b, code.loc, lower, code.like(lower, 16));
  return arith::OrIOp::create(code.b, code.loc, lower, upper);
}

Value pairs::word(Code &code, Value memref, Value position) {
  constexpr unsigned alignment = 2; // of an element
  TileCode tiles(code, /*isOwn=*/false);
  return LLVM::LoadOp::create(code.b, code.loc, code.b.getI32Type(),
                              tiles.pointer(memref, position), alignment);
}

static Value call(Code &code, Type type, StringRef intrinsic,
                  ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(
             code.b, code.loc, type, code.b.getStringAttr(intrinsic), operands)
      .getResult(0);
}

Value pairs::multiplyAdd(Code &code, Value left, Value right, Value sums) {
  auto halves = [&](Value words) -> Value {
    auto type = cast<VectorType>(words.getType());
    return vector::BitCastOp::create(
        code.b, code.loc,
        VectorType::get({2 * type.getNumElements()}, code.b.getBF16Type()),
        words);
  };
  return call(code, sums.getType(), "llvm.x86.avx512bf16.dpbf16ps.512",
              {sums, halves(left), halves(right)});
}

Value pairs::narrow(Code &code, Value vector) {
  return call(code, typeOf(vector, code.b.getBF16Type()),
              "llvm.x86.avx512bf16.cvtneps2bf16.512", vector);
}
