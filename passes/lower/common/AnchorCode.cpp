//===- AnchorCode.cpp - index arithmetic, loops and vectors as formulas ---===//
#include "passes/lower/common/AnchorCode.h"

#include "ir/ops/Scalar.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

static constexpr auto kNoWrap = arith::IntegerOverflowFlags::nsw;

Value Code::index(int64_t value) const {
  return arith::ConstantIndexOp::create(b, loc, value);
}
Value Code::like(Value x, int64_t value) const {
  Type type = x.getType();
  if (type.isIndex())
    return index(value);
  TypedAttr attr = b.getIntegerAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vector, Attribute(attr));
  return arith::ConstantOp::create(b, loc, attr);
}
Value Code::add(Value x, Value y) const {
  return b.createOrFold<arith::AddIOp>(loc, x, y, kNoWrap);
}
Value Code::add(Value x, int64_t y) const {
  return y == 0 ? x : add(x, like(x, y));
}
Value Code::sub(Value x, Value y) const {
  return b.createOrFold<arith::SubIOp>(loc, x, y, kNoWrap);
}
Value Code::mul(Value x, Value y) const {
  return b.createOrFold<arith::MulIOp>(loc, x, y, kNoWrap);
}
Value Code::mul(Value x, int64_t y) const {
  return y == 1 ? x : y == 0 ? like(x, 0) : mul(x, like(x, y));
}
Value Code::div(Value x, int64_t y) const {
  return y == 1 ? x : b.createOrFold<arith::DivUIOp>(loc, x, like(x, y));
}
Value Code::rem(Value x, int64_t y) const {
  return y == 1 ? like(x, 0)
                : b.createOrFold<arith::RemUIOp>(loc, x, like(x, y));
}
Value Code::min(Value x, Value y) const {
  return b.createOrFold<arith::MinSIOp>(loc, x, y);
}
Value Code::min(Value x, int64_t y) const { return min(x, like(x, y)); }
Value Code::max(Value x, Value y) const {
  return b.createOrFold<arith::MaxSIOp>(loc, x, y);
}
Value Code::less(Value x, Value y) const {
  return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, x, y);
}
Value Code::equal(Value x, Value y) const {
  return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, x, y);
}
Value Code::below(Value x, int64_t y) const {
  // Unsigned: what is negative is not below.
  return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::ult, x,
                                       like(x, y));
}
Value Code::both(Value x, Value y) const {
  return b.createOrFold<arith::AndIOp>(loc, x, y);
}
Value Code::either(Value x, Value y) const {
  return b.createOrFold<arith::OrIOp>(loc, x, y);
}
Value Code::select(Value condition, Value x, Value y) const {
  if (x.getType().isUnsignedInteger())
    return scalar::select(b, loc, condition, x, y);
  return b.createOrFold<arith::SelectOp>(loc, condition, x, y);
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

void Code::loop(Value low, Value high, int64_t step,
                llvm::function_ref<void(Value)> body) const {
  loop(low, high, step, {}, [&](Value iv, ValueRange) -> Values {
    body(iv);
    return {};
  });
}

Code::Values
Code::loop(Value low, Value high, int64_t step, ValueRange init,
           llvm::function_ref<Values(Value, ValueRange)> body) const {
  auto from = getConstantIntValue(low), to = getConstantIntValue(high);
  if (from && to && *from >= *to)
    return Values(init);
  if (from && to && *from + step >= *to)
    return body(low, init);
  auto loop = scf::ForOp::create(b, loc, low, high, index(step), init);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Values next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (init.empty())
    return {}; // the builder made the terminator
  scf::YieldOp::create(b, loc, next);
  return Values(loop.getResults());
}

void Code::when(Value condition, llvm::function_ref<void()> then,
                llvm::function_ref<void()> otherwise) const {
  if (auto known = getConstantIntValue(condition)) {
    if (*known)
      then();
    else if (otherwise)
      otherwise();
    return;
  }
  auto branch = scf::IfOp::create(b, loc, condition, bool(otherwise));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&branch.getThenRegion().front());
  then();
  if (otherwise) {
    b.setInsertionPointToStart(&branch.getElseRegion().front());
    otherwise();
  }
}

//===----------------------------------------------------------------------===//
// Numbers and vectors
//===----------------------------------------------------------------------===//

Value Code::number(Type type, double value) const {
  return scalar::constant(b, loc, type, value);
}

Value Code::splat(Value scalar, int64_t lanes) const {
  return b.createOrFold<vector::BroadcastOp>(
      loc, VectorType::get({lanes}, scalar.getType()), scalar);
}

Value Code::zeros(Type element, int64_t lanes) const {
  auto type = VectorType::get({lanes}, element);
  return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
}

Value Code::multiplyAdd(Value x, Value y, Value z) const {
  // Not vector.fma: a target without the instruction would call libm.
  constexpr auto contract = arith::FastMathFlags::contract;
  Value product = arith::MulFOp::create(b, loc, x, y, contract);
  return arith::AddFOp::create(b, loc, product, z, contract);
}

Value Code::firstLanes(Value active, int64_t lanes) const {
  auto type = VectorType::get({lanes}, b.getI1Type());
  if (auto known = getConstantIntValue(active))
    return vector::ConstantMaskOp::create(
        b, loc, type, ArrayRef<int64_t>{std::clamp<int64_t>(*known, 0, lanes)});
  return vector::CreateMaskOp::create(b, loc, type, active);
}

Value Code::lanesOn(ArrayRef<bool> on) const {
  auto type = VectorType::get(static_cast<int64_t>(on.size()), b.getI1Type());
  return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, on));
}

Value Code::load(Value memref, ValueRange at, int64_t lanes, Value mask) const {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  auto type = VectorType::get({lanes}, element);
  if (!mask)
    return vector::LoadOp::create(b, loc, type, memref, at);
  return vector::MaskedLoadOp::create(b, loc, type, memref, at, mask,
                                      zeros(element, lanes));
}

void Code::store(Value vector, Value memref, ValueRange at, Value mask) const {
  if (mask)
    vector::MaskedStoreOp::create(b, loc, memref, at, mask, vector);
  else
    vector::StoreOp::create(b, loc, vector, memref, at);
}

void Code::prefetch(Value memref, ValueRange at) const {
  memref::PrefetchOp::create(b, loc, memref, at, /*isWrite=*/false,
                             /*localityHint=*/3, /*isDataCache=*/true);
}

Value Code::widen(Value x, Type element) const {
  if (getElementTypeOrSelf(x) == element)
    return x;
  Type to = element;
  if (auto type = dyn_cast<VectorType>(x.getType()))
    to = type.clone(element);
  return arith::ExtFOp::create(b, loc, to, x);
}

/// Rows that are 2^s apart exchange their off-diagonal blocks of 2^s lanes, for
/// every s. The greatest first: then what is not used of the result costs
/// nothing.
Code::Values Code::transpose(ValueRange input) const {
  Values rows(input);
  int64_t n = rows.size();
  for (int64_t distance = n / 2; distance > 0; distance /= 2) {
    SmallVector<int64_t> upper(n), lower(n);
    for (int64_t lane = 0; lane < n; ++lane) {
      bool low = (lane & distance) == 0;
      upper[lane] = low ? lane : n + lane - distance;
      lower[lane] = low ? lane + distance : n + lane;
    }
    for (int64_t i = 0; i < n; ++i) {
      if (i & distance)
        continue;
      Value x = rows[i], y = rows[i + distance];
      rows[i] = vector::ShuffleOp::create(b, loc, x, y, upper);
      rows[i + distance] = vector::ShuffleOp::create(b, loc, x, y, lower);
    }
  }
  return rows;
}

//===----------------------------------------------------------------------===//
// Scratch
//===----------------------------------------------------------------------===//

Value Scratch::take(Code &code, ArrayRef<int64_t> shape, Type element) {
  auto type = MemRefType::get(shape, element);
  int64_t bytes = type.getNumElements() * element.getIntOrFloatBitWidth() / 8;
  int64_t first = used;
  used += llvm::alignTo(bytes, 64);
  if (!memory)
    return {};
  Value at = code.index(first);
  return memref::ViewOp::create(code.b, code.loc, type, memory, at,
                                ValueRange{});
}
