//===- Fold.cpp - constants that are known when compiling -----------------===//
//
// What holds for every op of the dialect follows from its interfaces: a view of
// equal elements is a constant, and ops of small constants are evaluated by the
// reference where it is exact: all ops of integers and booleans, which makes
// what models compute of shapes known, and those of floats that only move,
// compare or round them. Other floating-point arithmetic is left to the target,
// which may contract it.
//
//===----------------------------------------------------------------------===//
#include "ir/Fold.h"
#include "ir/EmptyTensors.h"
#include "ir/Ops.h"
#include "ir/reference/Generic.h"

#include <cmath>

using namespace mlir;
using namespace tandem;

/// The most elements that are evaluated, of all operands and results.
static constexpr int64_t kMaxFolded = 4096;
/// The most integers of a result that is larger than the operands; floats never
/// are. Masks and indices of models stay formulas, which cost nothing at run
/// time; their data would.
static constexpr int64_t kMaxGrown = 64;

static bool isInteger(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getElementType().isInteger();
}

/// `elements` as doubles; false where a number might not stay exact: of a large
/// integer a sum, of NaN the bits.
static bool toArray(DenseElementsAttr elements, reference::Array &array) {
  int64_t i = 0;
  if (isa<FloatType>(elements.getElementType())) {
    for (APFloat value : elements.getValues<APFloat>()) {
      bool lost;
      if (value.isNaN())
        return false;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
      array[i++] = value.convertToDouble();
    }
    return true;
  }
  for (const APInt &value : elements.getValues<APInt>()) {
    array[i] = numberOf(elements.getElementType(), value);
    if (std::abs(array[i++]) > 0x1p46)
      return false;
  }
  return true;
}

/// A float of `type`; nothing where it would not be `number` itself, unless
/// `rounds`.
static std::optional<APFloat> toFloat(double number, FloatType type,
                                      bool rounds) {
  bool lost = false;
  APFloat value(number);
  value.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
  if (std::isnan(number) || (lost && !rounds))
    return std::nullopt;
  return value;
}

/// `array` as a constant; null where the type does not hold an element.
static Attribute toAttribute(const reference::Array &array,
                             RankedTensorType type, bool rounds) {
  if (auto element = dyn_cast<FloatType>(type.getElementType())) {
    SmallVector<APFloat> values;
    for (double number : array.data) {
      auto value = toFloat(number, element, rounds);
      if (!value)
        return {};
      values.push_back(*value);
    }
    return DenseElementsAttr::get(type, values);
  }
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

/// True if the reference of the op gives what every target does, to the bit,
/// floats included.
static bool isExact(Operation *op) {
  // What these give depends on more than their operands.
  if (isa<IfDefinedOp, OrZeroOp>(op) || op->getNumRegions() != 0)
    return false;
  if (llvm::all_of(op->getOperandTypes(), isInteger) &&
      llvm::all_of(op->getResultTypes(), isInteger))
    return true;
  auto isTensor = [](Type type) { return isa<RankedTensorType>(type); };
  if (!llvm::all_of(op->getResultTypes(), isTensor))
    return false;
  if (auto scatter = dyn_cast<ScatterOp>(op))
    return scatter.getCombine() == Combine::set;
  return isa<ViewOpInterface>(op) ||
         isa<TakeOp, SortOp, ConcatOp, SelectOp, CompareOp, CastOp, NegOp,
             AbsOp, SignOp, FloorOp, CeilOp, RoundOp, TruncOp>(op);
}

/// True if a result that is no number of its type is rounded to the nearest, as
/// targets do.
static bool rounds(Operation *op) {
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  return isa<CastOp>(op) && (element.isF32() || element.isF64());
}

/// The constant results of an op on constants; fails if there are none.
static LogicalResult evaluate(ReferenceOpInterface op,
                              ArrayRef<Attribute> operands,
                              SmallVectorImpl<OpFoldResult> &results) {
  if (operands.empty() || !isExact(op))
    return failure();
  SmallVector<DenseElementsAttr> constants;
  for (Attribute operand : operands) {
    constants.push_back(dyn_cast_or_null<DenseElementsAttr>(operand));
    if (!constants.back())
      return failure();
  }
  // Equal elements in, equal elements out: one is enough.
  bool each = isa<PointwiseOpInterface>(*op) &&
              llvm::all_of(constants, [](auto c) { return c.isSplat(); });
  auto shaped = [&](ShapedType type) {
    return cast<RankedTensorType>(each ? type.clone(ArrayRef<int64_t>())
                                       : type);
  };
  int64_t given = 0, made = 0;
  SmallVector<reference::Array> in, out;
  for (DenseElementsAttr constant : constants)
    given += shaped(constant.getType()).getNumElements();
  for (Type type : op->getResultTypes())
    made += shaped(cast<ShapedType>(type)).getNumElements();
  bool isOfIntegers = llvm::all_of(op->getResultTypes(), isInteger);
  if (given + made > kMaxFolded ||
      made > std::max(given, isOfIntegers ? kMaxGrown : 0))
    return failure();
  for (DenseElementsAttr constant : constants) {
    if (each)
      constant = constant.resizeSplat(shaped(constant.getType()));
    if (!toArray(constant, in.emplace_back(constant.getType().getShape())))
      return failure();
  }
  SmallVector<const reference::Array *> inputs;
  for (const reference::Array &array : in)
    inputs.push_back(&array);
  for (Type type : op->getResultTypes())
    out.emplace_back(shaped(cast<ShapedType>(type)));
  op.evaluate(inputs, out);
  SmallVector<OpFoldResult> values;
  for (auto [array, type] : llvm::zip_equal(out, op->getResultTypes())) {
    auto whole = cast<RankedTensorType>(type);
    Attribute value = toAttribute(array, shaped(whole), rounds(op));
    if (!value)
      return failure();
    if (each)
      value = cast<DenseElementsAttr>(value).resizeSplat(whole);
    values.push_back(value);
  }
  llvm::append_range(results, values);
  return success();
}

LogicalResult
FoldInterface::fold(Operation *op, ArrayRef<Attribute> operands,
                    SmallVectorImpl<OpFoldResult> &results) const {
  // What has no elements is foldEmptyTensors' alone.
  auto isEmpty = [](Type type) { return isEmptyTensor(type); };
  if (llvm::any_of(op->getOperandTypes(), isEmpty) ||
      llvm::any_of(op->getResultTypes(), isEmpty))
    return failure();
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
    return evaluate(reference, operands, results);
  return failure();
}
