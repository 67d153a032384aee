//===- PackedNumber.cpp - what a thread has packed in its scratch ---------===//
#include "passes/lower/cpu/products/PackedNumber.h"

#include "passes/lower/common/Indices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;
using lower::cpu::PackedNumber;

PackedNumber PackedNumber::take(Code &code, Scratch &scratch) {
  assert(scratch.bytes() == 0 && "only scratch's first word is known to be 0");
  PackedNumber packed;
  packed.isTaken = true;
  packed.word = scratch.take(code, {1}, code.b.getI64Type());
  return packed;
}

void PackedNumber::packUnlessThere(Code &code, Value number,
                                   llvm::function_ref<void()> pack) const {
  Value there = toIndex(
      code, memref::LoadOp::create(code.b, code.loc, word, code.index(0)));
  code.when(
      code.equal(there, code.add(number, 1)), [] {},
      [&] {
        pack();
        note(code, number);
      });
}

void PackedNumber::note(Code &code, Value number) const {
  Value plusOne = arith::IndexCastOp::create(
      code.b, code.loc, code.b.getI64Type(), code.add(number, 1));
  memref::StoreOp::create(code.b, code.loc, plusOne, word, code.index(0));
}
