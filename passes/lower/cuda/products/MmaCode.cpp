//===- MmaCode.cpp - tensor cores and asynchronous copies as formulas -----===//
#include "passes/lower/cuda/products/MmaCode.h"

#include "ir/Dialect.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

Value lower::cuda::mmaRegister(ThreadCode &code, Value pair) {
  if (cast<VectorType>(pair.getType()).getElementType().isF16())
    return pair;
  auto word = VectorType::get({1}, code.b.getI32Type());
  Value bits = vector::BitCastOp::create(code.b, code.loc, word, pair);
  return vector::ExtractOp::create(code.b, code.loc, bits, int64_t(0));
}

/// Four matrices of 8 x 8; the thread's lane has the address of one row.
MmaCode::Values MmaCode::load(const Matrix &matrix, Value row, Value column,
                              bool transpose) {
  Value loaded = nvgpu::LdMatrixOp::create(
      code.b, code.loc, VectorType::get({4, 2}, element), matrix.memory,
      ValueRange{matrix.at(code, row, column)}, transpose, 4);
  Values registers;
  for (int64_t i = 0; i < 4; ++i)
    registers.push_back(mmaRegister(
        code, vector::ExtractOp::create(code.b, code.loc, loaded, i)));
  return registers;
}

MmaCode::Values MmaCode::loadLeft(const Matrix &matrix, Value row,
                                  Value column) {
  Value lane = code.lane();
  return load(matrix, code.add(row, code.rem(lane, 16)),
              code.add(column, code.mul(code.div(lane, 16), 8)),
              /*transpose=*/false);
}

MmaCode::Values MmaCode::loadRightTransposed(const Matrix &matrix, Value row,
                                             Value column) {
  Value lane = code.lane();
  Value inRow = code.add(code.rem(lane, 8), code.mul(code.div(lane, 16), 8));
  Value inColumn = code.mul(code.rem(code.div(lane, 8), 2), 8);
  return load(matrix, code.add(row, inRow), code.add(column, inColumn),
              /*transpose=*/false);
}

MmaCode::Values MmaCode::loadRight(const Matrix &matrix, Value row,
                                   Value column) {
  Value lane = code.lane();
  return load(matrix, code.add(row, code.rem(lane, 16)),
              code.add(column, code.mul(code.div(lane, 16), 8)),
              /*transpose=*/true);
}

SmallVector<Value> lower::cuda::mmaSync(ThreadCode &code, Type element,
                                        ValueRange left, ValueRange right,
                                        ValueRange sums) {
  Type f32 = code.b.getF32Type();
  auto type = LLVM::LLVMStructType::getLiteral(code.b.getContext(),
                                               {f32, f32, f32, f32});
  NVVM::MMATypes kind = element.isF16()    ? NVVM::MMATypes::f16
                        : element.isBF16() ? NVVM::MMATypes::bf16
                                           : NVVM::MMATypes::tf32;
  int64_t depth = kind == NVVM::MMATypes::tf32 ? 8 : 16;
  Value product = NVVM::MmaOp::create(
      code.b, code.loc, type, left, right, sums,
      ArrayRef<int64_t>{16, 8, depth}, std::nullopt, std::nullopt,
      std::array<NVVM::MMATypes, 2>{kind, kind},
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                     NVVM::MMALayout::col});
  SmallVector<Value> results;
  for (int64_t i = 0; i < 4; ++i)
    results.push_back(
        LLVM::ExtractValueOp::create(code.b, code.loc, product, i));
  return results;
}

MmaCode::Value MmaCode::pack(Value first, Value second) {
  auto wide = VectorType::get({2}, code.b.getF32Type());
  Value pair = vector::FromElementsOp::create(code.b, code.loc, wide,
                                              ValueRange{first, second});
  return mmaRegister(
      code, arith::TruncFOp::create(code.b, code.loc,
                                    VectorType::get({2}, element), pair));
}

void lower::cuda::copyAsync(ThreadCode &code, Value from, Value fromAt,
                            Value to, Value toAt, int64_t elements,
                            Value isThere) {
  Type element = cast<MemRefType>(from.getType()).getElementType();
  Value count;
  if (isThere)
    count = code.select(isThere, code.index(elements), code.index(0));
  // Only whole lines of 16 bytes can pass by the first cache.
  UnitAttr bypass;
  if (elements * elementBytes(element) == 16)
    bypass = code.b.getUnitAttr();
  nvgpu::DeviceAsyncCopyOp::create(
      code.b, code.loc, nvgpu::DeviceAsyncTokenType::get(code.b.getContext()),
      to, ValueRange{toAt}, from, ValueRange{fromAt},
      code.b.getIndexAttr(elements), count, bypass);
}

void lower::cuda::commitCopies(ThreadCode &code) {
  NVVM::CpAsyncCommitGroupOp::create(code.b, code.loc);
}

void lower::cuda::waitForCopies(ThreadCode &code, int64_t groups) {
  NVVM::CpAsyncWaitGroupOp::create(code.b, code.loc,
                                   static_cast<uint32_t>(groups));
}
