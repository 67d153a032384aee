//===- Call.cpp - one call of a function ----------------------------------===//
#include "compiler/functions/Call.h"
#include "compiler/functions/Function.h"
#include "ir/BuildOp.h"
#include "ir/Ops.h"
#include "ir/ops/Inference.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tandem;

LogicalResult Call::fail(const Twine &message) {
  wrong = true;
  return emitError(loc) << "'" << name << "' " << message;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

Attribute Call::attribute(StringRef attribute) const {
  return attributes ? attributes.get(attribute) : Attribute();
}

bool Call::hasAttribute(StringRef name) const { return bool(attribute(name)); }

bool Call::isInteger(StringRef name) const {
  return isa_and_present<IntegerAttr>(attribute(name));
}

LogicalResult Call::mismatch(StringRef name, StringRef expected) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute(name);
  return fail("expected '" + name + "' to be " + expected + ", but got " +
              text);
}

int64_t Call::integer(StringRef name, int64_t otherwise) {
  Attribute found = attribute(name);
  if (!found)
    return otherwise;
  if (auto value = dyn_cast<IntegerAttr>(found);
      value && !isa<BoolAttr>(found) && value.getValue().isSignedIntN(64))
    return value.getValue().getSExtValue();
  (void)mismatch(name, "an integer");
  return otherwise;
}

double Call::number(StringRef name, double otherwise) {
  Attribute found = attribute(name);
  if (!found)
    return otherwise;
  if (auto value = dyn_cast<FloatAttr>(found))
    return value.getValueAsDouble();
  if (auto value = dyn_cast<IntegerAttr>(found);
      value && !isa<BoolAttr>(found) && value.getValue().isSignedIntN(64))
    return static_cast<double>(value.getValue().getSExtValue());
  (void)mismatch(name, "a number");
  return otherwise;
}

bool Call::flag(StringRef name, bool otherwise) {
  Attribute found = attribute(name);
  if (!found)
    return otherwise;
  if (isa<UnitAttr>(found))
    return true;
  if (auto value = dyn_cast<BoolAttr>(found))
    return value.getValue();
  if (auto value = dyn_cast<IntegerAttr>(found);
      value && (value.getValue().isZero() || value.getValue().isOne()))
    return value.getValue().isOne();
  (void)mismatch(name, "true or false");
  return otherwise;
}

StringRef Call::text(StringRef name, StringRef otherwise,
                     ArrayRef<StringRef> allowed) {
  Attribute found = attribute(name);
  if (!found)
    return otherwise;
  auto value = dyn_cast<StringAttr>(found);
  if (value &&
      (allowed.empty() || llvm::is_contained(allowed, value.getValue())))
    return value.getValue();
  std::string expected = allowed.empty() ? "a text" : "one of ";
  llvm::interleave(
      allowed, [&](StringRef word) { expected += ("'" + word + "'").str(); },
      [&] { expected += ", "; });
  (void)mismatch(name, expected);
  return otherwise;
}

SmallVector<int64_t> Call::integers(StringRef name,
                                    ArrayRef<int64_t> otherwise) {
  Attribute found = attribute(name);
  if (!found)
    return SmallVector<int64_t>(otherwise);
  if (auto list = dyn_cast<DenseI64ArrayAttr>(found))
    return SmallVector<int64_t>(list.asArrayRef());
  (void)mismatch(name, "a list of integers");
  return SmallVector<int64_t>(otherwise);
}

SmallVector<double> Call::numbers(StringRef name, ArrayRef<double> otherwise) {
  Attribute found = attribute(name);
  if (!found)
    return SmallVector<double>(otherwise);
  if (auto list = dyn_cast<DenseF64ArrayAttr>(found))
    return SmallVector<double>(list.asArrayRef());
  if (auto list = dyn_cast<DenseI64ArrayAttr>(found))
    return llvm::to_vector(llvm::map_range(
        list.asArrayRef(), [](int64_t x) { return static_cast<double>(x); }));
  (void)mismatch(name, "a list of numbers");
  return SmallVector<double>(otherwise);
}

int64_t Call::dim(StringRef name, int64_t otherwise, int64_t rank) {
  int64_t given = integer(name, otherwise);
  if (given >= -rank && given < rank)
    return given < 0 ? given + rank : given;
  (void)fail("expected '" + name + "' to be a dimension of a tensor of rank " +
             Twine(rank) + ", but got " + Twine(given));
  return 0;
}

SmallVector<int64_t> Call::dims(StringRef name, int64_t rank,
                                ArrayRef<int64_t> otherwise) {
  SmallVector<int64_t> list = integers(name, otherwise);
  for (int64_t &given : list) {
    if (given < -rank || given >= rank) {
      (void)fail("expected '" + name +
                 "' to be dimensions of a tensor of rank " + Twine(rank) +
                 ", but got " + infer::text(list));
      return {};
    }
    given += given < 0 ? rank : 0;
  }
  llvm::sort(list);
  if (std::adjacent_find(list.begin(), list.end()) != list.end()) {
    (void)fail("expected '" + name + "' to be distinct dimensions, but got " +
               infer::text(list));
    return {};
  }
  return list;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static std::string typeText(Value value) {
  std::string text;
  llvm::raw_string_ostream(text) << value.getType();
  return text;
}

LogicalResult Call::expectFloat(size_t i) {
  if (isa<FloatType>(getElementTypeOrSelf(value(i))))
    return success();
  return fail("expected operand #" + Twine(i) + " to have floats, but got " +
              typeText(value(i)));
}

LogicalResult Call::expectInteger(size_t i) {
  Type type = getElementTypeOrSelf(value(i));
  if (isa<IntegerType>(type) && !type.isInteger(1))
    return success();
  return fail("expected operand #" + Twine(i) + " to have integers, but got " +
              typeText(value(i)));
}

LogicalResult Call::expectBool(size_t i) {
  if (getElementTypeOrSelf(value(i)).isInteger(1))
    return success();
  return fail("expected operand #" + Twine(i) + " to have bools, but got " +
              typeText(value(i)));
}

LogicalResult Call::expectRank(size_t i, int64_t low, int64_t high) {
  int64_t rank = (*this)[i].rank();
  if (rank >= low && rank <= high)
    return success();
  return fail("expected operand #" + Twine(i) + " to have rank " + Twine(low) +
              (low == high ? "" : " to " + std::to_string(high)) +
              ", but got " + typeText(value(i)));
}

LogicalResult Call::expectShape(size_t i, ArrayRef<int64_t> shape) {
  if ((*this)[i].shape() == shape)
    return success();
  return fail("expected operand #" + Twine(i) + " to have shape " +
              infer::text(shape) + ", but got " + typeText(value(i)));
}

LogicalResult Call::expectSameShape(size_t i, size_t j) {
  if ((*this)[i].shape() == (*this)[j].shape())
    return success();
  return fail("expected operands #" + Twine(i) + " and #" + Twine(j) +
              " to have one shape, but got " + typeText(value(i)) + " and " +
              typeText(value(j)));
}

LogicalResult Call::expectSameElements(size_t i, size_t j) {
  if (getElementTypeOrSelf(value(i)) == getElementTypeOrSelf(value(j)))
    return success();
  return fail("expected operands #" + Twine(i) + " and #" + Twine(j) +
              " to have one element type, but got " + typeText(value(i)) +
              " and " + typeText(value(j)));
}

//===----------------------------------------------------------------------===//
// Making ops
//===----------------------------------------------------------------------===//

SmallVector<Value> Call::ops(StringRef op, ValueRange operands,
                             ArrayRef<NamedAttribute> list, TypeRange types) {
  // A null operand comes of a mistake that has been said.
  if (llvm::is_contained(operands, Value())) {
    wrong = true;
    return {};
  }
  auto made = buildOp(builder, loc, op, operands, list, types);
  if (mlir::failed(made)) {
    wrong = true;
    return {};
  }
  return SmallVector<Value>((*made)->getResults());
}

Expr Call::op(StringRef name, ValueRange operands,
              ArrayRef<NamedAttribute> list, Type type) {
  SmallVector<Value> made =
      ops(name, operands, list, type ? TypeRange(type) : TypeRange());
  return at(made.empty() ? Value() : made[0]);
}

SmallVector<Value> Call::calls(StringRef function, ValueRange operands,
                               ArrayRef<NamedAttribute> list) {
  CallResults made = callFunction(builder, loc, function, operands, list);
  if (mlir::failed(made)) {
    wrong = true;
    return {};
  }
  return *made;
}

Expr Call::call(StringRef function, ValueRange operands,
                ArrayRef<NamedAttribute> list) {
  SmallVector<Value> made = calls(function, operands, list);
  return at(made.empty() ? Value() : made[0]);
}

NamedAttribute Call::ints(StringRef name, ArrayRef<int64_t> value) {
  return builder.getNamedAttr(name, builder.getDenseI64ArrayAttr(value));
}
NamedAttribute Call::integerAttr(StringRef name, int64_t value) {
  return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
}
NamedAttribute Call::numberAttr(StringRef name, double value) {
  return builder.getNamedAttr(name, builder.getF64FloatAttr(value));
}
NamedAttribute Call::textAttr(StringRef name, StringRef value) {
  return builder.getNamedAttr(name, builder.getStringAttr(value));
}
NamedAttribute Call::flagAttr(StringRef name, bool value) {
  return builder.getNamedAttr(name, builder.getBoolAttr(value));
}
NamedAttribute Call::unitAttr(StringRef name) {
  return builder.getNamedAttr(name, builder.getUnitAttr());
}

Expr Call::full(Type element, ArrayRef<int64_t> shape, double number) {
  return at(ConstantOp::splat(builder, loc,
                              RankedTensorType::get(shape, element), number));
}

Expr Call::integersOf(Type element, ArrayRef<int64_t> shape,
                      ArrayRef<int64_t> elements) {
  unsigned bits = element.getIntOrFloatBitWidth();
  SmallVector<APInt> list;
  list.reserve(elements.size());
  for (int64_t x : elements)
    list.emplace_back(bits, static_cast<uint64_t>(x), /*isSigned=*/true,
                      /*implicitTrunc=*/true);
  auto type = RankedTensorType::get(shape, element);
  return at(
      ConstantOp::create(builder, loc, DenseElementsAttr::get(type, list)));
}

Expr Call::numbersOf(Type element, ArrayRef<int64_t> shape,
                     ArrayRef<double> elements) {
  const auto &semantics = cast<FloatType>(element).getFloatSemantics();
  SmallVector<APFloat> list;
  list.reserve(elements.size());
  for (double x : elements) {
    bool lost;
    list.emplace_back(x);
    list.back().convert(semantics, APFloat::rmNearestTiesToEven, &lost);
  }
  auto type = RankedTensorType::get(shape, element);
  return at(
      ConstantOp::create(builder, loc, DenseElementsAttr::get(type, list)));
}

//===----------------------------------------------------------------------===//
// Broadcasting
//===----------------------------------------------------------------------===//

std::optional<SmallVector<int64_t>> Call::broadcastShape(ArrayRef<int64_t> a,
                                                         ArrayRef<int64_t> b) {
  size_t rank = std::max(a.size(), b.size());
  SmallVector<int64_t> shape(rank);
  for (size_t i = 0; i < rank; ++i) {
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) {
      (void)fail("expected shapes that stretch to one, but got " +
                 infer::text(a) + " and " + infer::text(b));
      return std::nullopt;
    }
    shape[rank - 1 - i] = x == 1 ? y : x;
  }
  return shape;
}

Expr Call::stretch(const Expr &x, ArrayRef<int64_t> shape) {
  if (!x) {
    wrong = true;
    return {};
  }
  if (x.shape() == shape)
    return x;
  SmallVector<int64_t> dims;
  for (int64_t d = 0; d < x.rank(); ++d)
    dims.push_back(d + static_cast<int64_t>(shape.size()) - x.rank());
  return op("broadcast", x.value, {ints("shape", shape), ints("dims", dims)});
}

LogicalResult Call::broadcast(MutableArrayRef<Expr> values) {
  SmallVector<int64_t> shape;
  for (const Expr &value : values) {
    auto wider = broadcastShape(shape, value.shape());
    if (!wider)
      return failure();
    shape = *wider;
  }
  for (Expr &value : values)
    if (value = stretch(value, shape); !value)
      return failure();
  return success();
}
