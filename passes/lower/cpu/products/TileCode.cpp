//===- TileCode.cpp - products of matrix tiles as formulas ----------------===//
#include "passes/lower/cpu/products/TileCode.h"
#include "passes/target/Target.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

bool lower::cpu::hasTiles(Operation *op) {
  return hasFeature(op, "amx-tile") && hasFeature(op, "amx-bf16") &&
         hasFeature(op, "avx512bf16") && hasFeature(op, "avx512bw") &&
         CpuModel::of(op).bits >= 512;
}

Value TileCode::call(Type type, StringRef intrinsic,
                     ValueRange operands) const {
  StringAttr name = b.getStringAttr(intrinsic);
  if (!type) {
    LLVM::CallIntrinsicOp::create(b, loc, name, operands);
    return {};
  }
  return LLVM::CallIntrinsicOp::create(b, loc, type, name, operands)
      .getResult(0);
}

Value TileCode::half(int64_t value) const {
  return arith::ConstantOp::create(b, loc, b.getI16IntegerAttr(value));
}

Value TileCode::number(Value index) const {
  return b.createOrFold<arith::IndexCastOp>(loc, b.getI64Type(), index);
}

Value TileCode::pointer(Value memref, Value position) const {
  MLIRContext *context = b.getContext();
  Type pointer = LLVM::LLVMPointerType::get(context), i64 = b.getI64Type();
  Type one = LLVM::LLVMArrayType::get(i64, 1);
  // What a memref is in LLVM: the allocation, the elements, the offset, sizes
  // and strides.
  Type descriptor = LLVM::LLVMStructType::getLiteral(
      context, {pointer, pointer, i64, one, one});
  Value parts = UnrealizedConversionCastOp::create(b, loc, descriptor, memref)
                    .getResult(0);
  Value start =
      LLVM::ExtractValueOp::create(b, loc, parts, ArrayRef<int64_t>{1});
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  return LLVM::GEPOp::create(b, loc, pointer, element, start,
                             ArrayRef<LLVM::GEPArg>{number(position)});
}

Value TileCode::after(Value pointer, Value bytes) const {
  return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{number(bytes)});
}

static Type tileType(OpBuilder &b) {
  return LLVM::LLVMX86AMXType::get(b.getContext());
}

Value TileCode::zeros() const {
  return call(tileType(b), "llvm.x86.tilezero.internal",
              {half(lines), half(rowBytes)});
}

Value TileCode::load(const TileAddress &place, bool isStreamed) const {
  return call(tileType(b),
              isStreamed ? "llvm.x86.tileloaddt164.internal"
                         : "llvm.x86.tileloadd64.internal",
              {half(lines), half(rowBytes), place.pointer, place.stride});
}

void TileCode::store(Value tile, const TileAddress &place) const {
  call({}, "llvm.x86.tilestored64.internal",
       {half(lines), half(rowBytes), place.pointer, place.stride, tile});
}

Value TileCode::multiplyAdd(Value left, Value right, Value sums) const {
  return call(tileType(b), "llvm.x86.tdpbf16ps.internal",
              {half(lines), half(rowBytes), half(rowBytes), sums, left, right});
}

Value TileCode::narrow(Value vector) const {
  Type type = VectorType::get({lines}, b.getBF16Type());
  return call(type, "llvm.x86.avx512bf16.cvtneps2bf16.512", vector);
}
