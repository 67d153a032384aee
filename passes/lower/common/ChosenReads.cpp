//===- ChosenReads.cpp - elements of what is concatenated of many tensors -===//
//
// A concatenation is a chain of selects by the index along it:
//
//   select(i < 1, pad(x0), select(i < 2, pad(x1), ...))
//
// Emitted as it stands, each element asks for all of the tensors. Where the
// index of one loop alone says which tensor is read, the tensor's pointer is
// chosen by it instead: outside of the loops further in, which then have one
// load. The position in the tensor may depend on that index only by a number of
// elements, which is chosen, too (x1 has more than one row). Tensors at one end
// may be a number (the zeros that a recurrence begins with): for these another
// one's element is loaded, and not taken.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/ElementEmitter.h"

#include "ir/ops/Scalar.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

/// A switch of a few is LLVM's business, and as many pointers as this are too
/// many to choose among.
static constexpr int64_t kFewest = 5, kMost = 1024;

static RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

/// Whether the index at a place is below a number, of `iota < splat`, if the
/// sizes of the loops tell it.
static std::optional<bool> holdsAt(Value condition, const Place &place,
                                   ArrayRef<int64_t> sizes) {
  auto test = condition.getDefiningOp<CompareOp>();
  if (!test || test.getPredicate() != ComparePredicate::lt)
    return std::nullopt;
  auto iota = test.getLhs().getDefiningOp<IotaOp>();
  auto bound = test.getRhs().getDefiningOp<ConstantOp>();
  auto number =
      bound ? dyn_cast_or_null<IntegerAttr>(bound.getSplat()) : IntegerAttr();
  if (!iota || !number || !number.getType().isSignlessInteger())
    return std::nullopt;
  IndexRange at = rangeOf(place.index[iota.getDim()], sizes);
  if (at.high < number.getInt())
    return true;
  if (at.low >= number.getInt())
    return false;
  return std::nullopt;
}

std::optional<bool> ElementEmitter::isBelow(Value condition,
                                            const Place &place) const {
  return holdsAt(condition, place, sizes);
}

namespace {
/// An element of a bound tensor, or a number.
struct Read {
  Value tensor;
  Place place;
  AffineExpr position; ///< of the place, row-major; none of a number
  TypedAttr number;
};

/// Reads of one position in tensors, in some of them a number of elements
/// further on; or a number in place of a tensor.
struct Reads {
  SmallVector<Value> tensors;   ///< where there is a number, another's
  SmallVector<int64_t> further; ///< elements, for each tensor
  AffineExpr position;
  TypedAttr number;
  int64_t from = 0, to = 0; ///< where it is the number

  bool add(const Read &read, ArrayRef<int64_t> sizes);
  /// Most of the tensors give one index each; pieces of many indices are
  /// ranges, which loops of their own read (Loops.cpp).
  bool areOfOneEach() const;
};
} // namespace

/// The element that a place shows whose deciding index is known.
static std::optional<Read> readAt(Value tensor, Place place,
                                  ArrayRef<int64_t> sizes,
                                  const llvm::DenseMap<Value, Value> &memrefs) {
  while (!memrefs.contains(tensor)) {
    Operation *op = tensor.getDefiningOp();
    if (!op)
      return std::nullopt;
    if (auto constant = dyn_cast<ConstantOp>(op)) {
      if (!constant.getSplat())
        return std::nullopt;
      return Read{tensor, std::move(place), {}, constant.getSplat()};
    }
    if (auto select = dyn_cast<SelectOp>(op)) {
      std::optional<bool> isFirst =
          holdsAt(select->getOperand(0), place, sizes);
      if (!isFirst)
        return std::nullopt;
      tensor = select->getOperand(*isFirst ? 1 : 2);
      continue;
    }
    auto view = dyn_cast<ViewOpInterface>(op);
    Place source;
    SmallVector<IndexGuard> inside;
    if (!view || !throughView(view, place, sizes, source, inside) ||
        !inside.empty())
      return std::nullopt;
    tensor = op->getOperand(0);
    place = source;
  }
  if (!place.guards.empty())
    return std::nullopt;
  AffineExpr position = simplifyIndex(
      linearize(place.index, typeOf(tensor).getShape(), tensor.getContext()),
      sizes);
  return Read{tensor, std::move(place), position, {}};
}

bool Reads::add(const Read &read, ArrayRef<int64_t> sizes) {
  auto at = static_cast<int64_t>(tensors.size());
  if (read.number) {
    bool isNext = number ? read.number == number && to == at : true;
    if (!number)
      from = at;
    number = read.number;
    to = at + 1;
    tensors.push_back(at ? tensors.back() : Value());
    further.push_back(at ? further.back() : 0);
    return isNext;
  }
  if (!position) {
    position = read.position;
    for (Value &tensor : tensors)
      tensor = read.tensor;
  }
  auto distance = dyn_cast<AffineConstantExpr>(
      simplifyIndex(read.position - position, sizes));
  if (!distance)
    return false;
  tensors.push_back(read.tensor);
  further.push_back(distance.getValue());
  return true;
}

bool Reads::areOfOneEach() const {
  size_t pieces = 1;
  for (auto [before, tensor] : llvm::zip(tensors, llvm::drop_begin(tensors)))
    pieces += before != tensor;
  return 2 * pieces > tensors.size();
}

/// The loop whose index alone decides the condition.
static std::optional<unsigned> decidingLoop(Value condition,
                                            const Place &place) {
  auto test = condition.getDefiningOp<CompareOp>();
  auto iota = test ? test.getLhs().getDefiningOp<IotaOp>() : IotaOp();
  if (!iota)
    return std::nullopt;
  std::optional<unsigned> loop;
  bool isOne = true;
  place.index[iota.getDim()].walk([&](AffineExpr part) {
    if (auto dim = dyn_cast<AffineDimExpr>(part)) {
      isOne &= !loop || *loop == dim.getPosition();
      loop = dim.getPosition();
    }
  });
  return isOne ? loop : std::nullopt;
}

Value ElementEmitter::choose(OpBuilder &b, ArrayRef<Value> values, Value index,
                             int64_t first) {
  if (llvm::all_equal(values))
    return values[0];
  auto half = static_cast<int64_t>(values.size() / 2);
  Value low = choose(b, values.take_front(half), index, first);
  Value high = choose(b, values.drop_front(half), index, first + half);
  Value bound = arith::ConstantIndexOp::create(b, loc, first + half);
  Value isLow =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, index, bound);
  return arith::SelectOp::create(b, loc, isLow, low, high);
}

Value ElementEmitter::emitChosen(OpBuilder &b, SelectOp select,
                                 const Place &place) {
  std::optional<unsigned> loop = decidingLoop(select->getOperand(0), place);
  if (!loop || *loop + 1 >= sizes.size() || !place.guards.empty() ||
      sizes[*loop] < kFewest || sizes[*loop] > kMost)
    return {};
  Reads reads;
  for (int64_t i = 0; i < sizes[*loop]; ++i) {
    Place known;
    AffineExpr dim = b.getAffineDimExpr(*loop);
    for (AffineExpr expr : place.index)
      known.index.push_back(
          simplifyIndex(expr.replace(dim, b.getAffineConstantExpr(i)), sizes));
    auto read = readAt(select.getResult(), known, sizes, memrefs);
    if (!read || !reads.add(*read, sizes))
      return {};
  }
  bool isFurther = llvm::any_of(reads.further, [](int64_t n) { return n; });
  if (!reads.position || (isFurther && !reads.areOfOneEach()) ||
      (reads.number && reads.from != 0 && reads.to != sizes[*loop]))
    return {};
  bool areOfOneSize = llvm::all_equal(llvm::map_range(
      reads.tensors, [](Value x) { return typeOf(x).getNumElements(); }));
  SmallVector<Value> flat, further;
  for (Value tensor : reads.tensors) {
    Value memref = memrefs.lookup(tensor);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(memref);
    Value line = flatten(b, loc, memref);
    if (!areOfOneSize) {
      Type element = cast<MemRefType>(line.getType()).getElementType();
      line = memref::CastOp::create(
          b, loc, MemRefType::get({ShapedType::kDynamic}, element), line);
    }
    flat.push_back(line);
  }
  Value index = ivs[*loop];
  Value position = expand(b, reads.position);
  if (isFurther) {
    llvm::SmallDenseMap<int64_t, Value> numbers;
    for (int64_t n : reads.further) {
      Value &number = numbers[n];
      if (!number)
        number = arith::ConstantIndexOp::create(b, loc, n);
      further.push_back(number);
    }
    position =
        arith::AddIOp::create(b, loc, position, choose(b, further, index, 0));
  }
  Value loaded =
      loadElement(b, loc, typeOf(select.getResult()).getElementType(),
                  choose(b, flat, index, 0), position);
  if (!reads.number)
    return loaded;
  bool isFirst = reads.from == 0;
  Value bound =
      arith::ConstantIndexOp::create(b, loc, isFirst ? reads.to : reads.from);
  Value isNumber = arith::CmpIOp::create(
      b, loc, isFirst ? arith::CmpIPredicate::slt : arith::CmpIPredicate::sge,
      index, bound);
  return arith::SelectOp::create(
      b, loc, isNumber,
      scalar::constant(b, loc, loaded.getType(), reads.number), loaded);
}
