//===- Fold.cpp - constants that are known when compiling -----------------===//
//
// What holds for every op of the dialect follows from its interfaces: a view of
// equal elements is a constant, and ops of small constant integers and booleans
// are evaluated by the reference, which is exact for them. Floating-point
// arithmetic is left to the target, which may contract it: only what no target
// rounds differently is folded, by the ops themselves.
//
//===----------------------------------------------------------------------===//
#include "ir/Fold.h"
#include "ir/Ops.h"
#include "ir/reference/Generic.h"

#include <cmath>

using namespace mlir;
using namespace tandem;

/// The most elements that are evaluated: masks and indices of models stay
/// formulas, which cost nothing at run time; their data would.
static constexpr int64_t kMaxFolded = 64;

static bool isInteger(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getElementType().isInteger();
}

/// `elements` as doubles; false where one is so large that a sum might not be
/// exact.
static bool toArray(DenseElementsAttr elements, reference::Array &array) {
  for (auto [i, value] : llvm::enumerate(elements.getValues<APInt>())) {
    array[i] = numberOf(elements.getElementType(), value);
    if (std::abs(array[i]) > 0x1p46)
      return false;
  }
  return true;
}

/// `array` as a constant; null where the type does not hold an element.
static Attribute toAttribute(const reference::Array &array,
                             RankedTensorType type) {
  unsigned bits = type.getElementTypeBitWidth();
  SmallVector<APInt> values;
  for (double number : array.data) {
    if (!(std::abs(number) <= 0x1p52) || number != std::trunc(number))
      return {};
    auto integer = static_cast<int64_t>(number);
    if (!holds(type.getElementType(), integer))
      return {};
    values.emplace_back(bits, static_cast<uint64_t>(integer),
                        /*isSigned=*/true, /*implicitTrunc=*/true);
  }
  return DenseElementsAttr::get(type, values);
}

/// The constant result of an op on integer constants; null if there is none.
static Attribute evaluateIntegers(ReferenceOpInterface op,
                                  ArrayRef<Attribute> operands) {
  if (op->getNumResults() != 1 || operands.empty() ||
      isa<CompositeOpInterface>(*op) || !isInteger(op->getResult(0).getType()))
    return {};
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  // Equal elements in, equal elements out: one is enough.
  bool each = isa<PointwiseOpInterface>(*op) &&
              llvm::all_of(operands, [](Attribute operand) {
                auto elements = dyn_cast_or_null<DenseElementsAttr>(operand);
                return elements && elements.isSplat();
              });
  if (!each && type.getNumElements() > kMaxFolded)
    return {};
  SmallVector<reference::Array> in;
  for (Attribute operand : operands) {
    auto elements = dyn_cast_or_null<DenseElementsAttr>(operand);
    if (!elements || !isInteger(elements.getType()))
      return {};
    if (each)
      elements =
          elements.resizeSplat(elements.getType().clone(ArrayRef<int64_t>()));
    if (elements.getNumElements() > kMaxFolded)
      return {};
    if (!toArray(elements, in.emplace_back(elements.getType().getShape())))
      return {};
  }
  SmallVector<const reference::Array *> inputs;
  for (const reference::Array &array : in)
    inputs.push_back(&array);
  RankedTensorType evaluated = each ? type.clone(ArrayRef<int64_t>()) : type;
  reference::Array out(evaluated);
  op.evaluate(inputs, out);
  Attribute result = toAttribute(out, evaluated);
  if (result && each)
    result = cast<DenseElementsAttr>(result).resizeSplat(type);
  return result;
}

LogicalResult
FoldInterface::fold(Operation *op, ArrayRef<Attribute> operands,
                    SmallVectorImpl<OpFoldResult> &results) const {
  if (auto reduction = dyn_cast<ReductionOpInterface>(op))
    if (reduction.getReducedDims().empty()) {
      results.push_back(op->getOperand(0));
      return success();
    }
  if (auto view = dyn_cast<ViewOpInterface>(op)) {
    auto elements = dyn_cast_or_null<DenseElementsAttr>(operands[0]);
    auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (elements && elements.isSplat() && type) {
      TypedAttr fill = view.getFill();
      if (!fill || fill == elements.getSplatValue<Attribute>()) {
        results.push_back(elements.resizeSplat(type));
        return success();
      }
    }
  }
  if (auto reference = dyn_cast<ReferenceOpInterface>(op))
    if (Attribute value = evaluateIntegers(reference, operands)) {
      results.push_back(value);
      return success();
    }
  return failure();
}
