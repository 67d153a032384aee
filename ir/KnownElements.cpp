//===- KnownElements.cpp - elements that inputs do not decide -------------===//
#include "ir/KnownElements.h"

#include "ir/Ops.h"
#include "ir/reference/Array.h"

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseMap.h"

#include <cmath>

using namespace mlir;
using namespace tandem;

namespace {

/// Of one tensor: 4,096 positions that see as many.
constexpr int64_t mostElements = int64_t(1) << 24;
/// Of what an op's own reference computes: how many elements, and how much.
constexpr int64_t mostOfReference = int64_t(1) << 20;
constexpr int64_t mostFlops = int64_t(1) << 28;
/// Ops from a value to what it follows from, one after the other: masks take
/// some dozens.
constexpr int mostDeep = 1000;

/// Whether a type has the number as f64 does: then arithmetic did not round it
/// and integers did not wrap around. Floats are taken where they are whole, or
/// hide a position.
bool isExact(double number, Type element) {
  if (isa<FloatType>(element)) {
    if (number <= kHides)
      return true;
    unsigned digits = cast<FloatType>(element).getFPMantissaWidth();
    return std::floor(number) == number &&
           std::abs(number) <= std::ldexp(1.0, std::min(digits, 53u));
  }
  unsigned width = element.getIntOrFloatBitWidth();
  bool isSigned = width > 1 && !element.isUnsignedInteger();
  double end = std::ldexp(1.0, int(std::min(width - isSigned, 53u)));
  return std::floor(number) == number && number < end &&
         number >= (isSigned ? -end : 0);
}

/// -1 where there are none, or too many.
int64_t countOf(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape) {
    if (size < 1 || count > mostElements / size)
      return -1;
    count *= size;
  }
  return count;
}

class Finder {
public:
  const KnownElements *find(Value value);

private:
  using Found = std::optional<KnownElements>;
  Found compute(Value value);
  Found pointwise(PointwiseOpInterface op);
  Found view(ViewOpInterface op);
  Found constant(ConstantOp op);
  Found other(ReferenceOpInterface op);

  DenseMap<Value, std::unique_ptr<KnownElements>> known; ///< null: it is not
  int depth = 0;
};

} // namespace

const KnownElements *Finder::find(Value value) {
  auto found = known.find(value);
  if (found == known.end()) {
    ++depth;
    Found computed = depth <= mostDeep ? compute(value) : std::nullopt;
    --depth;
    auto kept = computed ? std::make_unique<KnownElements>(std::move(*computed))
                         : nullptr;
    found = known.try_emplace(value, std::move(kept)).first;
  }
  return found->second.get();
}

Finder::Found Finder::constant(ConstantOp op) {
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!elements || elements.empty())
    return std::nullopt;
  auto type = cast<RankedTensorType>(op.getType());
  KnownElements made;
  bool isSplat = elements.isSplat();
  made.shape.assign(type.getRank(), 1);
  if (!isSplat)
    made.shape.assign(type.getShape().begin(), type.getShape().end());
  if (countOf(made.shape) < 0)
    return std::nullopt;
  bool isAllExact = true;
  auto add = [&](const Attribute &value) {
    if (auto number = dyn_cast<FloatAttr>(value)) {
      made.elements.push_back(number.getValueAsDouble());
      return;
    }
    auto number = cast<IntegerAttr>(value);
    bool isSigned =
        !number.getType().isInteger(1) && !number.getType().isUnsignedInteger();
    made.elements.push_back(isSigned
                                ? double(number.getValue().getSExtValue())
                                : double(number.getValue().getZExtValue()));
    isAllExact &= isExact(made.elements.back(), number.getType());
  };
  if (isSplat)
    add(elements.getSplatValue<Attribute>());
  else
    for (Attribute value : elements.getValues<Attribute>())
      add(value);
  if (!isAllExact)
    return std::nullopt;
  return made;
}

/// Row-major strides; 0 along dimensions of size 1.
static SmallVector<int64_t> stridesOf(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 0);
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1)
      strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

/// Gives size 1 to the dimensions along which all elements are equal.
static void collapse(KnownElements &known) {
  for (size_t d = 0; d < known.shape.size(); ++d) {
    size_t inner = 1, count = static_cast<size_t>(known.shape[d]);
    for (int64_t size : ArrayRef<int64_t>(known.shape).drop_front(d + 1))
      inner *= static_cast<size_t>(size);
    std::vector<double> &all = known.elements;
    size_t line = inner * count;
    bool isEqual = count > 1;
    for (size_t i = 0; i < all.size() && isEqual; ++i)
      isEqual = all[i] == all[i / line * line + i % inner];
    if (!isEqual)
      continue;
    for (size_t i = 0; i < all.size() / count; ++i)
      all[i] = all[i / inner * line + i % inner];
    all.resize(all.size() / count);
    known.shape[d] = 1;
  }
}

Finder::Found Finder::pointwise(PointwiseOpInterface op) {
  SmallVector<const KnownElements *> operands;
  KnownElements made;
  made.shape.assign(
      cast<RankedTensorType>(op->getResult(0).getType()).getRank(), 1);
  for (Value operand : op->getOperands()) {
    const KnownElements *one = find(operand);
    if (!one)
      return std::nullopt;
    operands.push_back(one);
    for (size_t d = 0; d < made.shape.size(); ++d)
      made.shape[d] = std::max(made.shape[d], one->shape[d]);
  }
  int64_t count = countOf(made.shape);
  if (count < 0)
    return std::nullopt;
  SmallVector<SmallVector<int64_t>> strides;
  for (const KnownElements *operand : operands)
    strides.push_back(stridesOf(operand->shape));
  made.elements.reserve(static_cast<size_t>(count));
  SmallVector<double> x(operands.size());
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  bool isAllExact = true;
  reference::forEachIndex(made.shape, [&](ArrayRef<int64_t> index) {
    for (auto [number, operand] : llvm::enumerate(operands)) {
      int64_t at = 0;
      for (auto [i, stride] : llvm::zip_equal(index, strides[number]))
        at += i * stride;
      x[number] = operand->elements[static_cast<size_t>(at)];
    }
    double y = op.referenceScalar(x);
    isAllExact &= isExact(y, element);
    made.elements.push_back(y);
  });
  if (!isAllExact)
    return std::nullopt;
  collapse(made);
  return made;
}

Finder::Found Finder::view(ViewOpInterface op) {
  const KnownElements *operand = find(op->getOperand(0));
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!operand || !type || op.getFill())
    return std::nullopt;
  AffineMap map = op.getIndexMap();
  KnownElements made;
  made.shape.assign(type.getRank(), 1);
  for (size_t d = 0; d < operand->shape.size(); ++d)
    if (operand->varies(d))
      map.getResult(d).walk([&](AffineExpr expr) {
        if (auto dim = dyn_cast<AffineDimExpr>(expr))
          made.shape[dim.getPosition()] = type.getDimSize(dim.getPosition());
      });
  if (countOf(made.shape) < 0)
    return std::nullopt;
  SmallVector<int64_t> strides = stridesOf(operand->shape);
  reference::forEachIndex(made.shape, [&](ArrayRef<int64_t> index) {
    int64_t at = 0;
    for (size_t d = 0; d < strides.size(); ++d) {
      if (!strides[d])
        continue;
      AffineExpr expr = map.getResult(d);
      auto dim = dyn_cast<AffineDimExpr>(expr);
      int64_t place =
          dim ? index[dim.getPosition()]
              : cast<AffineConstantExpr>(expr.replaceDims(llvm::map_to_vector(
                                             index,
                                             [&](int64_t i) -> AffineExpr {
                                               return getAffineConstantExpr(
                                                   i, map.getContext());
                                             })))
                    .getValue();
      at += place * strides[d];
    }
    made.elements.push_back(operand->elements[static_cast<size_t>(at)]);
  });
  return made;
}

/// All elements, also those that are equal.
static reference::Array wholeOf(const KnownElements &known,
                                ArrayRef<int64_t> shape) {
  reference::Array whole((SmallVector<int64_t>(shape)));
  SmallVector<int64_t> strides = stridesOf(known.shape);
  size_t next = 0;
  reference::forEachIndex(shape, [&](ArrayRef<int64_t> index) {
    int64_t at = 0;
    for (auto [i, stride] : llvm::zip_equal(index, strides))
      at += i * stride;
    whole.data[next++] = known.elements[static_cast<size_t>(at)];
  });
  return whole;
}

/// Sums, joined and taken elements, ...: of small tensors, as the op's
/// reference has it.
Finder::Found Finder::other(ReferenceOpInterface op) {
  auto isSmall = [](RankedTensorType type) {
    int64_t count = type ? countOf(type.getShape()) : -1;
    return count >= 0 && count <= mostOfReference;
  };
  auto cost = dyn_cast<CostOpInterface>(*op);
  if (!cost || cost.getFlops() > mostFlops || op->getNumResults() != 1 ||
      op->getNumRegions() || !isPure(op) || isa<CollectiveOpInterface>(*op))
    return std::nullopt;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!isSmall(type))
    return std::nullopt;
  std::vector<reference::Array> operands;
  for (Value operand : op->getOperands()) {
    auto from = dyn_cast<RankedTensorType>(operand.getType());
    const KnownElements *one = isSmall(from) ? find(operand) : nullptr;
    if (!one)
      return std::nullopt;
    operands.push_back(wholeOf(*one, from.getShape()));
  }
  SmallVector<const reference::Array *> in;
  for (const reference::Array &operand : operands)
    in.push_back(&operand);
  SmallVector<reference::Array> out;
  out.emplace_back(SmallVector<int64_t>(type.getShape()));
  op.evaluate(in, out);
  KnownElements made;
  made.shape.assign(type.getShape().begin(), type.getShape().end());
  made.elements.assign(out[0].data.begin(), out[0].data.end());
  if (!llvm::all_of(made.elements, [&](double element) {
        return isExact(element, type.getElementType());
      }))
    return std::nullopt;
  collapse(made);
  return made;
}

Finder::Found Finder::compute(Value value) {
  Operation *op = value.getDefiningOp();
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!op || !type)
    return std::nullopt;
  if (auto made = dyn_cast<ConstantOp>(op))
    return constant(made);
  if (auto iota = dyn_cast<IotaOp>(op)) {
    KnownElements made;
    made.shape.assign(type.getRank(), 1);
    int64_t dim = iota.getDim(), size = type.getDimSize(dim);
    if (countOf({size}) < 0)
      return std::nullopt;
    made.shape[dim] = size;
    for (int64_t i = 0; i < size; ++i)
      made.elements.push_back(double(i));
    return made;
  }
  if (auto detach = dyn_cast<DetachOp>(op)) {
    const KnownElements *operand = find(detach->getOperand(0));
    return operand ? Found(*operand) : std::nullopt;
  }
  if (auto one = dyn_cast<PointwiseOpInterface>(op))
    return pointwise(one);
  if (auto one = dyn_cast<ViewOpInterface>(op))
    return view(one);
  if (auto one = dyn_cast<ReferenceOpInterface>(op))
    return other(one);
  return std::nullopt;
}

std::optional<KnownElements> tandem::knownElements(Value value) {
  Finder finder;
  const KnownElements *found = finder.find(value);
  return found ? std::optional(*found) : std::nullopt;
}
