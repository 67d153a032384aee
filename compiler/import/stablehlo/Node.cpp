//===- Node.cpp - what the translation of a StableHLO op sees -------------===//
#include "compiler/import/stablehlo/Node.h"
#include "compiler/functions/Function.h"
#include "compiler/import/stablehlo/ModuleTranslator.h"
#include "ir/BuildOp.h"
#include "ir/Ops.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::stablehlo;

Node::Node(ModuleTranslator &translator, Operation *op,
           ArrayRef<Value> operands, Location loc)
    : translator(translator), op(op), operands(operands),
      results(op->getNumResults()), where(loc) {}

OpBuilder &Node::builder() const { return translator.builder; }

LogicalResult Node::error(const Twine &message) {
  hasFailed = true;
  return translator.wrong(where) << "'" << op->getName() << "': " << message;
}

LogicalResult Node::unsupported(const Twine &message) {
  hasFailed = true;
  return translator.missing(where) << "'" << op->getName() << "': " << message;
}

void Node::leaveOut(const std::string &annotations) {
  translator.dropped.insert(annotations);
}

LogicalResult Node::expect(size_t count, size_t numResults, size_t numRegions) {
  if (operands.size() != count)
    return error("expected " + Twine(count) + " operands, but got " +
                 Twine(operands.size()));
  if (op->getNumResults() != numResults)
    return error("expected " + Twine(numResults) + " results, but got " +
                 Twine(op->getNumResults()));
  if (op->getNumRegions() != numRegions)
    return error("expected " + Twine(numRegions) + " regions, but got " +
                 Twine(op->getNumRegions()));
  return success();
}

SmallVectorImpl<ScanParts *> &Node::scans() { return translator.scans; }

//===----------------------------------------------------------------------===//
// What is known
//===----------------------------------------------------------------------===//

static DenseElementsAttr constantOf(Value value) {
  auto constant = value ? value.getDefiningOp<ConstantOp>() : ConstantOp();
  return constant ? dyn_cast<DenseElementsAttr>(constant.getValue())
                  : DenseElementsAttr();
}

std::optional<double> Node::splat(Value value) const {
  DenseElementsAttr elements = constantOf(value);
  if (!elements || !elements.isSplat())
    return std::nullopt;
  if (isa<FloatType>(elements.getElementType())) {
    APFloat number = elements.getSplatValue<APFloat>();
    bool losesInfo;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                   &losesInfo);
    return number.convertToDouble();
  }
  APInt number = elements.getSplatValue<APInt>();
  bool isUnsigned = isUnsignedType(elements.getElementType());
  return number.roundToDouble(!isUnsigned);
}

std::optional<int64_t> Node::integerOf(Value value) const {
  DenseElementsAttr elements = constantOf(value);
  if (!elements || !elements.isSplat() ||
      !isa<IntegerType>(elements.getElementType()))
    return std::nullopt;
  APInt number = elements.getSplatValue<APInt>();
  bool isUnsigned = isUnsignedType(elements.getElementType());
  if (isUnsigned && number.getActiveBits() > 63)
    return std::nullopt;
  return isUnsigned ? static_cast<int64_t>(number.getZExtValue())
                    : number.getSExtValue();
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

Attribute Node::attribute(StringRef name) {
  asked.insert(name);
  if (Attribute found = op->getDiscardableAttr(name))
    return found;
  auto properties =
      dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  return properties ? properties.get(name) : Attribute();
}

void Node::ignore(std::initializer_list<StringRef> names) {
  for (StringRef name : names)
    asked.insert(name);
}

/// A list of integers in any of the forms that writers have for one.
static std::optional<List> listOf(Attribute attribute) {
  if (auto list = dyn_cast<DenseI64ArrayAttr>(attribute))
    return List(list.asArrayRef());
  if (auto list = dyn_cast<DenseBoolArrayAttr>(attribute))
    return List(list.asArrayRef().begin(), list.asArrayRef().end());
  List values;
  if (auto list = dyn_cast<DenseI32ArrayAttr>(attribute))
    return List(list.asArrayRef().begin(), list.asArrayRef().end());
  if (auto list = dyn_cast<DenseIntElementsAttr>(attribute)) {
    if (list.getNumElements() > 4096)
      return std::nullopt;
    for (const APInt &value : list.getValues<APInt>())
      values.push_back(value.getBitWidth() == 1 ? value.getZExtValue()
                                                : value.getSExtValue());
    return values;
  }
  auto list = dyn_cast<ArrayAttr>(attribute);
  if (!list)
    return std::nullopt;
  for (Attribute value : list) {
    if (auto integer = dyn_cast<IntegerAttr>(value))
      values.push_back(integer.getValue().isSignedIntN(64)
                           ? integer.getValue().getSExtValue()
                           : 0);
    else
      return std::nullopt;
  }
  return values;
}

List Node::integers(StringRef name, Sizes otherwise) {
  Attribute found = attribute(name);
  if (!found)
    return List(otherwise);
  if (auto list = listOf(found))
    return *list;
  (void)error("expected '" + name + "' to be a list of integers");
  return List(otherwise);
}

int64_t Node::integer(StringRef name, int64_t otherwise) {
  Attribute found = attribute(name);
  if (!found)
    return otherwise;
  auto number = dyn_cast<IntegerAttr>(found);
  if (number && number.getValue().isSignedIntN(64))
    return number.getValue().getSExtValue();
  (void)error("expected '" + name + "' to be an integer");
  return otherwise;
}

bool Node::flag(StringRef name, bool otherwise) {
  Attribute found = attribute(name);
  if (!found)
    return otherwise;
  if (auto value = dyn_cast<BoolAttr>(found))
    return value.getValue();
  (void)error("expected '" + name + "' to be true or false");
  return otherwise;
}

std::string Node::text(StringRef name, StringRef otherwise) {
  Attribute found = attribute(name);
  if (!found)
    return otherwise.str();
  if (auto value = dyn_cast<StringAttr>(found))
    return value.getValue().str();
  if (auto value = dyn_cast<FlatSymbolRefAttr>(found))
    return value.getValue().str();
  (void)error("expected '" + name + "' to be a word");
  return otherwise.str();
}

DictionaryAttr Node::fields(StringRef name) {
  Attribute found = attribute(name);
  auto dictionary = dyn_cast_or_null<DictionaryAttr>(found);
  if (!dictionary)
    (void)error("expected '" + name + "' to be " +
                (found ? "a structure" : "there"));
  return dictionary;
}

List Node::integers(DictionaryAttr fields, StringRef name) {
  Attribute found = fields ? fields.get(name) : Attribute();
  if (!found)
    return {};
  if (auto list = listOf(found))
    return *list;
  (void)error("expected '" + name + "' to be a list of integers");
  return {};
}

int64_t Node::integer(DictionaryAttr fields, StringRef name,
                      int64_t otherwise) {
  Attribute found = fields ? fields.get(name) : Attribute();
  if (!found)
    return otherwise;
  auto number = dyn_cast<IntegerAttr>(found);
  if (number && number.getValue().isSignedIntN(64))
    return number.getValue().getSExtValue();
  (void)error("expected '" + name + "' to be an integer");
  return otherwise;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

RankedTensorType Node::resultType(size_t i) {
  std::string why;
  RankedTensorType type = translator.typeOf(op->getResult(i).getType(), why);
  if (!type)
    (void)unsupported(why);
  return type;
}

void Node::result(size_t i, Value value) {
  if (i < results.size())
    results[i] = value;
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

SmallVector<Value> Node::makeAll(StringRef name, ValueRange list,
                                 ArrayRef<NamedAttribute> attributes,
                                 TypeRange types) {
  // An operand that could not be made, which has been said.
  if (hasFailed || llvm::is_contained(list, Value()))
    return hasFailed = true, SmallVector<Value>();
  auto made = buildOp(builder(), where, name, list, attributes, types);
  if (mlir::failed(made))
    return hasFailed = true, SmallVector<Value>();
  return SmallVector<Value>((*made)->getResults());
}

Value Node::make(StringRef name, ValueRange list,
                 ArrayRef<NamedAttribute> attributes, TypeRange types) {
  SmallVector<Value> made = makeAll(name, list, attributes, types);
  return made.empty() ? Value() : made[0];
}

SmallVector<Value> Node::callAll(StringRef function, ValueRange list,
                                 ArrayRef<NamedAttribute> attributes) {
  if (hasFailed || llvm::is_contained(list, Value()))
    return hasFailed = true, SmallVector<Value>();
  auto made = callFunction(builder(), where, function, list, attributes);
  if (mlir::failed(made))
    return hasFailed = true, SmallVector<Value>();
  return *made;
}

Value Node::call(StringRef function, ValueRange list,
                 ArrayRef<NamedAttribute> attributes) {
  SmallVector<Value> made = callAll(function, list, attributes);
  return made.empty() ? Value() : made[0];
}

NamedAttribute Node::attr(StringRef name, int64_t value) const {
  return builder().getNamedAttr(name, builder().getI64IntegerAttr(value));
}
NamedAttribute Node::attr(StringRef name, Sizes list) const {
  return builder().getNamedAttr(name, builder().getDenseI64ArrayAttr(list));
}
NamedAttribute Node::attr(StringRef name, StringRef text) const {
  return builder().getNamedAttr(name, builder().getStringAttr(text));
}
NamedAttribute Node::attr(StringRef name, Attribute value) const {
  return builder().getNamedAttr(name, value);
}
NamedAttribute Node::unit(StringRef name) const {
  return builder().getNamedAttr(name, builder().getUnitAttr());
}

Value Node::constant(DenseElementsAttr value) {
  return make("constant", {}, {attr("value", Attribute(value))});
}

Value Node::full(RankedTensorType type, double number) {
  if (hasFailed || !type)
    return hasFailed = true, Value();
  return ConstantOp::splat(builder(), where, type, number);
}

Value Node::cast(Value x, Type element) {
  if (!x || typeOf(x).getElementType() == element)
    return x;
  // What is known stays so.
  if (auto number = splat(x); number && isa<FloatType>(element))
    return full(typeOf(x).clone(element), *number);
  return make("cast", x, {}, typeOf(x).clone(element));
}

Value Node::reshape(Value x, Sizes shape) {
  if (!x || typeOf(x).getShape() == shape)
    return x;
  if (DenseElementsAttr elements = constantOf(x);
      elements && ShapedType::getNumElements(shape) == elements.size())
    return constant(elements.reshape(typeOf(x).clone(shape)));
  return make("reshape", x, {attr("shape", shape)});
}

Value Node::permute(Value x, Sizes order) {
  bool isIdentity = true;
  for (auto [i, dim] : llvm::enumerate(order))
    isIdentity &= dim == static_cast<int64_t>(i);
  if (!x || (isIdentity && order.size() == typeOf(x).getShape().size()))
    return x;
  return make("permute", x, {attr("permutation", order)});
}

Value Node::broadcast(Value x, Sizes shape, Sizes dims) {
  if (!x || typeOf(x).getShape() == shape)
    return x;
  if (DenseElementsAttr elements = constantOf(x);
      elements && elements.isSplat() && isTensorShape(shape))
    return constant(elements.resizeSplat(typeOf(x).clone(shape)));
  return make("broadcast", x, {attr("shape", shape), attr("dims", dims)});
}

Value Node::slice(Value x, Sizes starts, Sizes limits, Sizes strides) {
  List ones(starts.size(), 1);
  return make("slice", x,
              {attr("starts", starts), attr("limits", limits),
               attr("strides", strides.empty() ? Sizes(ones) : strides)});
}

Value Node::compare(StringRef predicate, Value a, Value b) {
  auto kind = symbolizeComparePredicate(predicate);
  return make("compare", {a, b},
              {attr("predicate", Attribute(ComparePredicateAttr::get(
                                     builder().getContext(), *kind)))});
}

Value Node::iota(Type element, Sizes shape, int64_t dim) {
  return make("iota", {}, {attr("dim", dim)},
              RankedTensorType::get(shape, element));
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>> Node::inlineRegion(Region &region,
                                                 ArrayRef<Value> arguments) {
  if (!region.hasOneBlock())
    return error("expected regions of one block");
  auto made = translator.inlineBlock(region.front(), arguments);
  hasFailed |= mlir::failed(made);
  return made;
}

FailureOr<SmallVector<Value>> Node::inlineFunction(StringRef name,
                                                   ArrayRef<Value> arguments) {
  auto function = translator.source.lookupSymbol<func::FuncOp>(name);
  if (!function || !function.getBody().hasOneBlock())
    return error("expected a function '" + name + "' of one block");
  if (llvm::is_contained(translator.calls, name))
    return error("expected functions that do not call themselves");
  if (translator.calls.size() >= 100)
    return error("functions call each other too deep");
  translator.calls.push_back(function.getName());
  auto made = translator.inlineBlock(function.getBody().front(), arguments);
  translator.calls.pop_back();
  hasFailed |= mlir::failed(made);
  return made;
}

std::string Node::spelling(Region &region) {
  if (!region.hasOneBlock())
    return "";
  std::string text;
  llvm::raw_string_ostream out(text);
  DenseMap<Value, std::string> names;
  for (BlockArgument argument : region.front().getArguments())
    names[argument] = "a" + std::to_string(argument.getArgNumber());
  int made = 0;
  for (Operation &op : region.front()) {
    out << (made ? "; " : "") << op.getName().stripDialect();
    for (StringRef name : {"comparison_direction", "compare_type"}) {
      auto properties =
          dyn_cast_or_null<DictionaryAttr>(op.getPropertiesAsAttribute());
      Attribute found = op.getDiscardableAttr(name);
      if (!found && properties)
        found = properties.get(name);
      if (auto word = dyn_cast_or_null<StringAttr>(found))
        out << ' ' << word.getValue();
    }
    for (Value operand : op.getOperands()) {
      auto it = names.find(operand);
      // A constant is written down where it is used.
      Attribute value;
      if (Operation *maker = operand.getDefiningOp();
          maker && maker->getName().stripDialect() == "constant")
        value = maker->getDiscardableAttr("value");
      auto elements = dyn_cast_or_null<DenseElementsAttr>(value);
      if (it != names.end())
        out << ' ' << it->second;
      else if (elements && elements.isSplat() &&
               isa<FloatType>(elements.getElementType()))
        out << ' '
            << (elements.getSplatValue<APFloat>().isNaN()    ? "nan"
                : elements.getSplatValue<APFloat>().isZero() ? "zero"
                                                             : "number");
      else
        out << " ?";
    }
    for (Value result : op.getResults())
      names[result] =
          "t" + std::to_string(made) + (op.getNumResults() > 1 ? "?" : "");
    ++made;
  }
  return text;
}
