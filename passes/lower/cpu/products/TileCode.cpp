//===- TileCode.cpp - products of matrix tiles as formulas ----------------===//
#include "passes/lower/cpu/products/TileCode.h"
#include "passes/lower/cpu/products/PairCode.h"
#include "passes/target/Target.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

bool lower::cpu::hasTiles(Operation *op) {
  return hasFeature(op, "amx-tile") && hasFeature(op, "amx-bf16") &&
         hasPairs(op);
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

TileAddress TileCode::from(const TileAddress &place, int64_t first) const {
  return {row(place, first), place.stride};
}

static Type tileType(OpBuilder &b) {
  return LLVM::LLVMX86AMXType::get(b.getContext());
}

VectorType TileCode::sumsType() const {
  return VectorType::get({lines}, b.getF32Type());
}

Value TileCode::row(const TileAddress &place, int64_t number,
                    int64_t bytes) const {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
  };
  Value at = b.createOrFold<arith::MulIOp>(loc, place.stride, constant(number));
  if (bytes != 0)
    at = b.createOrFold<arith::AddIOp>(loc, at, constant(bytes));
  return LLVM::GEPOp::create(b, loc, place.pointer.getType(), b.getI8Type(),
                             place.pointer, ArrayRef<LLVM::GEPArg>{at});
}

TileCode::Tile TileCode::zeros() const {
  if (isOwn)
    return {call(tileType(b), "llvm.x86.tilezero.internal",
                 {half(lines), half(rowBytes)})};
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(sumsType()));
  return Tile(height, zero);
}

Value TileCode::loadFactor(const TileAddress &place, bool isStreamed) const {
  return call(tileType(b),
              isStreamed ? "llvm.x86.tileloaddt164.internal"
                         : "llvm.x86.tileloadd64.internal",
              {half(lines), half(rowBytes), place.pointer, place.stride});
}

/// Nothing is known of where vectors begin but that elements do.
static constexpr unsigned kAlignment = 4;

TileCode::Tile TileCode::load(const TileAddress &place) const {
  if (isOwn)
    return {loadFactor(place)};
  Tile rows;
  for (int64_t i = 0; i < height; ++i)
    rows.push_back(
        LLVM::LoadOp::create(b, loc, sumsType(), row(place, i), kAlignment));
  return rows;
}

void TileCode::store(ValueRange tile, const TileAddress &place) const {
  if (isOwn) {
    call({}, "llvm.x86.tilestored64.internal",
         {half(lines), half(rowBytes), place.pointer, place.stride,
          tile.front()});
    return;
  }
  for (auto [i, vector] : llvm::enumerate(tile))
    LLVM::StoreOp::create(b, loc, vector, row(place, static_cast<int64_t>(i)),
                          kAlignment);
}

Value TileCode::multiplyAdd(Value left, Value right, Value sums) const {
  return call(tileType(b), "llvm.x86.tdpbf16ps.internal",
              {half(lines), half(rowBytes), half(rowBytes), sums, left, right});
}

TileCode::Tile TileCode::multiplyAdd(const TileAddress &left,
                                     ArrayRef<TileAddress> rights,
                                     int64_t count, ValueRange sums) const {
  auto words = VectorType::get({lines}, b.getI32Type());
  Tile rows(sums);
  for (int64_t pair = 0; pair < count; ++pair) {
    SmallVector<Value> ofRights;
    for (const TileAddress &right : rights)
      ofRights.push_back(
          LLVM::LoadOp::create(b, loc, words, row(right, pair), kAlignment));
    for (int64_t i = 0; i < height; ++i) {
      Value word = LLVM::LoadOp::create(
          b, loc, b.getI32Type(), row(left, i, pair * pairBytes), kAlignment);
      Value ofLeft = code.splat(word, lines);
      for (auto [j, ofRight] : llvm::enumerate(ofRights)) {
        Value &sum = rows[static_cast<int64_t>(j) * height + i];
        sum = pairs::multiplyAdd(code, ofLeft, ofRight, sum);
      }
    }
  }
  return rows;
}
