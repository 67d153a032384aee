//===- JsonNodes.cpp - the nodes of JSON graphs ---------------------------===//
#include "compiler/capture/DemoteRefs.h"
#include "compiler/capture/TagValue.h"
#include "compiler/capture/ViewChain.h"
#include "compiler/functions/Function.h"
#include "compiler/functions/NearestOp.h"
#include "compiler/import/GraphImporter.h"
#include "compiler/import/JsonShorthand.h"
#include "ir/Autocast.h"
#include "ir/BuildOp.h"
#include "ir/Tags.h"

using namespace mlir;
using namespace tandem;

//===----------------------------------------------------------------------===//
// Grad mode, autocast, stream and checkpoint
//===----------------------------------------------------------------------===//

/// What a node says of itself and of the nodes in it; ends with it.
class GraphImporter::Mode {
public:
  Mode(GraphImporter &importer, const JsonPlace &node)
      : importer(importer), differentiates(importer.differentiates),
        autocast(importer.autocast), stream(importer.stream),
        checkpoint(importer.checkpoint) {
    bool off = node.flag("no_grad"), on = node.flag("enable_grad");
    if (off && on)
      node.wrong("expected one of 'no_grad' and 'enable_grad'");
    if (off || on)
      importer.differentiates = on;
    if (node.has("autocast"))
      importer.setAutocast(node.at("autocast"));
    if (node.has("checkpoint")) {
      importer.checkpoint = node.text("checkpoint");
      if (importer.checkpoint.empty())
        node.at("checkpoint").wrong("expected the name of a region");
      if (importer.inRegion())
        node.wrong("expected a checkpoint outside of " + importer.regionName());
    }
    if (!node.has("stream"))
      return;
    JsonPlace place = node.at("stream");
    if (place.json.is_number_integer() && place.json.get<int64_t>() >= 0)
      importer.stream = place.json.get<int64_t>();
    else
      place.wrong("expected a stream of at least 0, but got " +
                  place.json.dump());
  }
  Mode(const Mode &) = delete;
  ~Mode() {
    importer.differentiates = differentiates;
    importer.autocast = autocast;
    importer.stream = stream;
    importer.checkpoint = checkpoint;
  }

private:
  GraphImporter &importer;
  bool differentiates;
  Type autocast;
  int64_t stream;
  std::string checkpoint;
};

void GraphImporter::setAutocast(const JsonPlace &place) {
  std::string name =
      place.json.is_string() ? place.json.get<std::string>() : "";
  Type type = name == "bf16"  ? Type(builder.getBF16Type())
              : name == "f16" ? Type(builder.getF16Type())
              : name == "off" ? Type(builder.getF32Type())
                              : Type();
  if (!type)
    return place.wrong("expected bf16, f16 or off, but got " +
                       place.json.dump());
  autocast = type;
}

GraphImporter::Attributes GraphImporter::tags() {
  Attributes list;
  if (!differentiates)
    list.push_back(builder.getNamedAttr(kNoGradAttr, builder.getUnitAttr()));
  if (autocast)
    list.push_back(
        builder.getNamedAttr(kAutocastAttr, TypeAttr::get(autocast)));
  if (stream >= 0)
    list.push_back(
        builder.getNamedAttr(kStreamAttr, builder.getI64IntegerAttr(stream)));
  // What stands inside of a custom_vjp gets the tags of that.
  if (!checkpoint.empty() && !inRegion())
    list.push_back(builder.getNamedAttr(kCheckpointAttr,
                                        builder.getStringAttr(checkpoint)));
  return list;
}

Value GraphImporter::read(Location loc, Value ref) {
  auto op = ReadOp::create(builder, loc, ref);
  if (!checkpoint.empty() && !inRegion())
    op->setAttr(kCheckpointAttr, builder.getStringAttr(checkpoint));
  return op;
}

/// Says of the results of a node, as it does itself, whether they are saved.
void GraphImporter::tagResults(const JsonPlace &node, Operation *op,
                               ValueRange refs) {
  static constexpr std::pair<const char *, StringRef> fields[] = {
      {"save", kSaveAttr},
      {"offload", kOffloadAttr},
      {"recompute", kRecomputeAttr}};
  for (auto [field, tag] : fields) {
    if (!node.flag(field))
      continue;
    if (inRegion())
      return node.wrong("expected no '" + std::string(field) + "' inside of " +
                        regionName());
    Listener listener(*this, node);
    if (op && refs.empty()) {
      op->setAttr(tag, builder.getUnitAttr());
      (void)verifyTag(op, builder.getNamedAttr(tag, builder.getUnitAttr()));
    } else if (!refs.empty()) {
      (void)tagValue(refs[0], tag, location(node));
    }
  }
}

/// True if `node` has no members but `known` and those that a Mode reads.
static bool isNode(const JsonPlace &node, std::vector<std::string_view> known) {
  known.insert(known.end(),
               {"no_grad", "enable_grad", "autocast", "stream", "checkpoint"});
  return node.isObject(known);
}

void GraphImporter::addNodes(const JsonPlace &parent) {
  for (const JsonPlace &node : parent.list("nodes"))
    addNode(node);
}

void GraphImporter::addNode(const JsonPlace &node) {
  // Of a node with a mistake nothing is made: what followed from `input` for
  // `inputs`, that there are too few, is no mistake.
  size_t before = problems.size();
  std::string op = node.json.is_object() ? node.text("op") : "";
  if (op == "no_grad" || op == "enable_grad") {
    if (!node.isObject({"op", "nodes", "autocast", "stream", "checkpoint"}))
      return;
    Mode mode(*this, node);
    differentiates = op == "enable_grad";
    return addNodes(node);
  }
  if (op == "autocast") {
    if (!node.isObject({"op", "type", "nodes", "no_grad", "enable_grad",
                        "stream", "checkpoint"}))
      return;
    Mode mode(*this, node);
    if (node.has("type"))
      setAutocast(node.at("type"));
    else
      node.wrong("expected a field 'type': bf16, f16 or off");
    return addNodes(node);
  }
  if (op == "module") {
    if (!isNode(node, {"op", "name", "nodes"}))
      return;
    Mode mode(*this, node);
    std::string outside = modulePath;
    modulePath += node.text("name") + ".";
    addNodes(node);
    modulePath = outside;
    return;
  }
  if (op == "custom_vjp") {
    if (!isNode(node, {"op", "name", "inputs", "refs", "outputs", "forward",
                       "backward", "undefined_cotangents", "first_order",
                       "save", "offload", "recompute"}))
      return;
    Mode mode(*this, node);
    return addCustomVjp(node);
  }
  if (op == "if" || op == "scan" || op == "while") {
    bool known =
        op == "if" ? isNode(node, {"op", "name", "inputs", "outputs", "then",
                                   "else", "save", "recompute"})
        : op == "scan"
            ? isNode(node, {"op", "name", "carries", "inputs", "constants",
                            "outputs", "length", "trips", "reverse", "body",
                            "save", "recompute"})
            : isNode(node, {"op", "name", "carries", "constants", "outputs",
                            "condition", "body", "save", "recompute"});
    if (!known)
      return;
    Mode mode(*this, node);
    return op == "if"     ? addIf(node)
           : op == "scan" ? addScan(node)
                          : addWhile(node);
  }
  if (!isNode(node, {"op", "name", "inputs", "outputs", "attributes", "type",
                     "shape", "value", "save", "offload", "recompute"}))
    return;
  Mode mode(*this, node);
  if (problems.size() != before)
    return defineResults(node, {}, /*known=*/false);
  if (op == "constant") {
    for (const char *field : {"save", "offload", "recompute"})
      if (node.flag(field))
        node.wrong("a constant is in every program, so '" + std::string(field) +
                   "' says nothing");
    return addConstant(node);
  }
  auto isKnown = [&] {
    return RegisteredOperationName::lookup("tandem." + op,
                                           builder.getContext()) ||
           FunctionTable::get().find(op);
  };
  if (isOpOfPhases(op) || !isKnown()) {
    node.wrong("unknown op '" + op + "'" +
               suggestOp(builder.getContext(), op, /*withFunctions=*/true));
    return defineResults(node, {}, /*known=*/false);
  }
  if (regionKind == RegionKind::Custom && op == "grad")
    return node.wrong("unsupported: 'grad' inside of a custom_vjp");
  if (RegisteredOperationName::lookup("tandem." + op, builder.getContext()))
    addOp(node, op);
  else
    addCall(node, op);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// The number at `place` in a type that has to have it, but for rounding.
static FloatAttr floatAttribute(Type type, const JsonPlace &place) {
  double number = place.json.get<double>();
  auto attribute = FloatAttr::get(type, number);
  if (!attribute.getValue().isFinite()) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    place.wrong("expected a number of at most the largest '" + text +
                "', but got " + place.json.dump());
  }
  return attribute;
}

Attribute GraphImporter::attribute(const JsonPlace &place, StringRef op,
                                   StringRef name, ValueRange operands) {
  const Json &json = place.json;
  if (name == "predicate" && json.is_string()) {
    if (auto predicate = symbolizeComparePredicate(json.get<std::string>()))
      return ComparePredicateAttr::get(builder.getContext(), *predicate);
    place.wrong("expected eq, ne, lt, le, gt or ge, but got " + json.dump());
    return {};
  }
  if (op == "scatter" && name == "combine" && json.is_string()) {
    if (auto combine = symbolizeCombine(json.get<std::string>()))
      return CombineAttr::get(builder.getContext(), *combine);
    place.wrong("expected set, add, mul, min or max, but got " + json.dump());
    return {};
  }
  if (op == "pad" && name == "value" && json.is_number() && !operands.empty() &&
      isa<RankedTensorType>(operands[0].getType())) {
    Type element =
        cast<RankedTensorType>(operands[0].getType()).getElementType();
    if (isa<FloatType>(element))
      return floatAttribute(element, place);
    int64_t number = place.integer().value_or(0);
    if (!holds(element, number)) {
      place.wrong(
          "expected an integer that the operand's type holds, but got " +
          json.dump());
      return {};
    }
    return builder.getIntegerAttr(element, number);
  }
  // The one flag that is on unless it is said to be off; and functions, where
  // that is the signature's business.
  if (json.is_boolean() &&
      (name == "count_include_pad" || FunctionTable::get().find(op)))
    return builder.getBoolAttr(json.get<bool>());
  if (json.is_boolean())
    return json.get<bool>() ? builder.getUnitAttr() : Attribute();
  if (auto info = RegisteredOperationName::lookup(("tandem." + op).str(),
                                                  builder.getContext()))
    if (auto list = writtenOut(place, *info, name, operands))
      return builder.getDenseI64ArrayAttr(*list);
  if (json.is_number_integer())
    return builder.getI64IntegerAttr(json.get<int64_t>());
  if (json.is_number())
    return builder.getF64FloatAttr(json.get<double>());
  if (json.is_string())
    return builder.getStringAttr(json.get<std::string>());
  if (json.is_array()) {
    auto isInteger = [](const Json &element) {
      return element.is_number_integer();
    };
    if (llvm::all_of(json, isInteger))
      return builder.getDenseI64ArrayAttr(json.get<std::vector<int64_t>>());
    if (llvm::all_of(json, [](const Json &x) { return x.is_number(); }))
      return builder.getDenseF64ArrayAttr(json.get<std::vector<double>>());
    place.wrong("expected a list of numbers, but got " + json.dump());
    return {};
  }
  place.wrong("expected a number, a string, true, false or a list of numbers, "
              "but got " +
              json.dump());
  return {};
}

void GraphImporter::addConstant(const JsonPlace &node) {
  RankedTensorType tensor = type(node);
  std::vector<JsonPlace> outputs = node.list("outputs");
  if (outputs.size() != 1 || !outputs[0].json.is_string()) {
    node.wrong("expected one name in 'outputs'");
    return;
  }
  Value result;
  if (tensor && node.has("value")) {
    JsonPlace value = node.at("value");
    bool isFloat = isa<FloatType>(tensor.getElementType());
    SmallVector<Attribute> elements;
    auto addInteger = [&](const Json &json) {
      Type type = tensor.getElementType();
      int64_t integer = 0;
      bool isHeld = true;
      if (json.is_boolean()) {
        integer = json.get<bool>();
      } else if (json.is_number_unsigned() && type.isUnsignedInteger(64)) {
        integer = static_cast<int64_t>(json.get<uint64_t>());
      } else if (auto number =
                     JsonPlace(json, value.pointer, problems).integer()) {
        integer = *number;
        isHeld = holds(type, integer);
      }
      if (!isHeld)
        value.wrong("expected an element of " + node.text("type") +
                    ", but got " + json.dump());
      APInt bits(type.getIntOrFloatBitWidth(), static_cast<uint64_t>(integer),
                 /*isSigned=*/true, /*implicitTrunc=*/true);
      elements.push_back(IntegerAttr::get(type, bits));
    };
    auto add = [&](const Json &json) {
      if (!json.is_number() && !json.is_boolean())
        return false;
      if (isFloat && json.is_number())
        elements.push_back(floatAttribute(
            tensor.getElementType(), JsonPlace(json, value.pointer, problems)));
      else if (isFloat)
        elements.push_back(
            builder.getFloatAttr(tensor.getElementType(), json.get<bool>()));
      else
        addInteger(json);
      return true;
    };
    bool fine = true;
    if (value.json.is_array())
      for (const Json &element : value.json)
        fine = fine && add(element);
    else
      fine = add(value.json);
    if (!fine ||
        (value.json.is_array() &&
         static_cast<int64_t>(elements.size()) != tensor.getNumElements()))
      value.wrong("expected a number, or a flat list of " +
                  std::to_string(tensor.getNumElements()) + " numbers");
    else
      result = MakeRefOp::create(
          builder, location(node, "constant"),
          ConstantOp::create(builder, location(node, "constant"),
                             DenseElementsAttr::get(tensor, elements)));
  } else if (tensor) {
    node.wrong("expected a field 'value'");
  }
  define(outputs[0], outputs[0].json.get<std::string>(), result);
}

GraphImporter::Attributes GraphImporter::attributes(const JsonPlace &node,
                                                    StringRef op,
                                                    ValueRange operands) {
  Attributes attributes = tags();
  if (!node.has("attributes"))
    return attributes;
  JsonPlace list = node.at("attributes");
  if (!list.json.is_object())
    list.wrong("expected an object");
  else
    for (auto &[key, value] : list.json.items())
      if (Attribute a = attribute(list.at(key), op, key, operands)) {
        if (StringRef(key).starts_with("tandem."))
          list.at(key).wrong("unknown attribute '" + key + "'");
        attributes.push_back(builder.getNamedAttr(key, a));
      }
  return attributes;
}

/// The types of results where they do not follow from the operands.
bool GraphImporter::resultTypes(const JsonPlace &node, const std::string &op,
                                ValueRange operands,
                                SmallVectorImpl<Type> &types) {
  if (op == "grad")
    for (Value wrt : operands.drop_front(operands.empty() ? 0 : 1))
      types.push_back(wrt.getType());
  if (!node.has("type"))
    return true;
  if (operands.empty() ||
      (node.has("shape") && isa<RankedTensorType>(operands[0].getType()))) {
    types.push_back(type(node));
    return bool(types.back());
  }
  Type element = elementType(node, node.text("type"));
  if (!element)
    return false;
  Type view = viewType(op, operands[0].getType(), element);
  auto tensor = dyn_cast<RankedTensorType>(operands[0].getType());
  types.push_back(view || !tensor ? view : Type(tensor.clone(element)));
  if (!types.back())
    node.wrong("expected no 'type': it follows from the operands");
  return bool(types.back());
}

Location GraphImporter::nameOf(const JsonPlace &node, const std::string &op) {
  return location(node,
                  modulePath + (node.has("name") ? node.text("name") : op));
}

Operation *GraphImporter::build(const JsonPlace &node, const std::string &op,
                                ValueRange operands, const Attributes &list,
                                ArrayRef<Type> types) {
  Listener listener(*this, node);
  auto made = buildOp(builder, nameOf(node, op), op, operands, list, types);
  return succeeded(made) && succeeded(expectElements(*made)) ? *made : nullptr;
}

void GraphImporter::addOp(const JsonPlace &node, const std::string &op) {
  auto info =
      RegisteredOperationName::lookup("tandem." + op, builder.getContext());
  if (info)
    expectTraining(node, *info);
  bool isView = info && info->hasInterface<RefViewOpInterface>();
  bool isHandle = op == "transpose_" || op == "set_" || op == "resize_";
  Location loc = nameOf(node, op);
  std::vector<JsonPlace> inputs = node.list("inputs");
  size_t before = problems.size();
  SmallVector<Value> operands;
  bool complete = true;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    Handle *value = handle(input);
    complete = complete && value;
    if (!value)
      continue;
    bool asRef = isView || isHandle || (op == "write" && i == 1);
    operands.push_back(asRef ? value->ref : read(loc, value->ref));
  }
  Operation *made = nullptr;
  SmallVector<Type> types;
  if (complete) {
    Attributes list = attributes(node, op, operands);
    if (resultTypes(node, op, operands, types) && problems.size() == before) {
      // A cast to the same type hands back its argument.
      if (op == "cast" && operands.size() == 1 && types.size() == 1 &&
          operands[0].getType() == types[0] && list == tags()) {
        size_t same = names.at(inputs[0].json.get<std::string>());
        for (const JsonPlace &output : node.list("outputs"))
          if (output.json.is_string() &&
              !names.emplace(output.json.get<std::string>(), same).second)
            output.wrong("expected names to be unique, but got '" +
                         output.json.get<std::string>() + "' twice");
        return;
      }
      if (isHandle) {
        Listener listener(*this, node);
        auto now = changeHandle(builder, loc, op, operands, list);
        if (succeeded(now))
          handle(inputs[0])->ref = *now;
        for (const char *field : {"save", "offload", "recompute"})
          if (node.flag(field))
            node.wrong("'" + op + "' makes no value, so '" + field +
                       "' says nothing");
        return defineResults(node, {}, succeeded(now));
      }
      made = build(node, op, operands, list, types);
    }
  }
  if (!made)
    return defineResults(node, {}, /*known=*/false);
  tagResults(node, made,
             isView ? ValueRange(made->getResults()) : ValueRange());
  if (isView)
    return defineResults(node, made->getResults());
  SmallVector<Value> refs;
  for (Value result : made->getResults())
    refs.push_back(MakeRefOp::create(builder, loc, result));
  defineResults(node, refs);
}

/// A node that calls a function; an input "" is an absent one.
void GraphImporter::addCall(const JsonPlace &node, const std::string &name) {
  Location loc = nameOf(node, name);
  size_t before = problems.size();
  SmallVector<Value> operands;
  bool isBroken = false; // what is wrong was said where an operand is made
  for (const JsonPlace &input : node.list("inputs")) {
    bool isAbsent =
        input.json.is_string() && input.json.get<std::string>().empty();
    Handle *value = isAbsent ? nullptr : handle(input);
    isBroken |= value && !value->ref;
    operands.push_back(value && value->ref ? read(loc, value->ref) : Value());
  }
  for (const char *field : {"type", "shape"})
    if (node.has(field))
      node.wrong("expected no '" + std::string(field) +
                 "': it follows from the operands");
  Attributes own = tags(), list;
  for (NamedAttribute attribute : attributes(node, name, operands))
    if (!llvm::is_contained(own, attribute))
      list.push_back(attribute);
  CallResults made = failure();
  if (problems.size() == before && !isBroken) {
    Listener listener(*this, node);
    made = callFunction(builder, loc, name, operands, list, own);
  }
  if (failed(made))
    return defineResults(node, {}, /*known=*/false);
  if (!made->empty())
    tagResults(node, made->front().getDefiningOp(), {});
  SmallVector<Value> refs;
  for (Value result : *made)
    refs.push_back(MakeRefOp::create(builder, loc, result));
  defineResults(node, refs);
}

void GraphImporter::defineResults(const JsonPlace &node, ValueRange results,
                                  bool known) {
  std::vector<JsonPlace> outputs = node.list("outputs");
  if (known && outputs.size() > results.size())
    node.at("outputs").wrong(
        "expected at most " + std::to_string(results.size()) +
        " names, but got " + std::to_string(outputs.size()));
  for (auto [i, output] : llvm::enumerate(outputs)) {
    if (!output.json.is_string()) {
      output.wrong("expected a name, but got " + output.json.dump());
      continue;
    }
    define(output, output.json.get<std::string>(),
           i < results.size() ? results[i] : Value());
  }
}
