//===- JsonGraph.cpp - models as JSON graphs ------------------------------===//
#include "compiler/import/JsonGraph.h"
#include "compiler/import/JsonReader.h"
#include "ir/BuildOp.h"
#include "ir/Ops.h"
#include "ir/Signature.h"
#include "runtime/artifact/Manifest.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

#include <map>

using namespace mlir;
using namespace tandem;

namespace {

/// Builds the module of one document.
class GraphImporter {
public:
  GraphImporter(const std::string &path, MLIRContext &context)
      : path(path), builder(&context) {}

  OwningOpRef<ModuleOp> run(const Json &json);
  Problems problems;

private:
  Location location(const JsonPlace &place, StringRef name = {});
  RankedTensorType type(const JsonPlace &place);
  Type elementType(const JsonPlace &place, StringRef name);
  DictionaryAttr init(const JsonPlace &place);
  void addValues(const JsonPlace &root, const char *list, RoleKind kind);
  void define(const JsonPlace &place, const std::string &name, Value value);
  Value operand(const JsonPlace &place, bool asRef);
  void addNode(const JsonPlace &node);
  void addConstant(const JsonPlace &node);
  Attribute attribute(const JsonPlace &place, StringRef op, StringRef name,
                      ArrayRef<Value> operands);
  void addOutputs(const JsonPlace &root);

  std::string path;
  OpBuilder builder;
  func::FuncOp func;
  std::map<std::string, Value> values;
};

Location GraphImporter::location(const JsonPlace &place, StringRef name) {
  // JSON has no lines to point at: the pointer stands in for one.
  auto file = FileLineColLoc::get(builder.getContext(), path, 0, 0);
  std::string text = name.empty() ? place.pointer : name.str();
  return NameLoc::get(builder.getStringAttr(text), file);
}

Type GraphImporter::elementType(const JsonPlace &place, StringRef name) {
  auto dtype = artifact::parseDType(std::string_view(name.data(), name.size()));
  if (dtype && *dtype != artifact::DType::U8) {
    if (name == "bool")
      return builder.getI1Type();
    if (name == "bf16")
      return builder.getBF16Type();
    if (name == "f16")
      return builder.getF16Type();
    if (name == "f32")
      return builder.getF32Type();
    if (name == "f64")
      return builder.getF64Type();
    return builder.getIntegerType(8 * artifact::byteSize(*dtype));
  }
  place.wrong("expected a type (f32, f64, bf16, f16, i8, i16, i32, i64, bool), "
              "but got '" +
              name.str() + "'");
  return {};
}

RankedTensorType GraphImporter::type(const JsonPlace &place) {
  Type element = elementType(place, place.text("type"));
  std::vector<int64_t> shape = place.shape("shape");
  if (!artifact::tensorBytes(artifact::DType::F64, shape)) {
    place.wrong("the tensor is too large");
    return {};
  }
  return element ? RankedTensorType::get(shape, element) : RankedTensorType();
}

DictionaryAttr GraphImporter::init(const JsonPlace &place) {
  static const std::map<std::string, std::vector<const char *>> kinds = {
      {"constant", {"value"}},
      {"uniform", {"low", "high"}},
      {"normal", {"mean", "std"}},
      {"counter", {"stream", "scale"}}};
  auto kind = kinds.find(place.has("kind") ? place.text("kind") : "");
  if (kind == kinds.end()) {
    place.wrong("expected a 'kind': constant, uniform, normal or counter");
    return {};
  }
  std::vector<std::string_view> known = {"kind"};
  known.insert(known.end(), kind->second.begin(), kind->second.end());
  place.isObject(known);
  NamedAttrList list;
  list.set("kind", builder.getStringAttr(kind->first));
  for (const char *field : kind->second) {
    double number = place.number(field).value_or(0);
    if (StringRef(field) == "stream")
      list.set(field, builder.getI64IntegerAttr(static_cast<int64_t>(number)));
    else
      list.set(field, builder.getF64FloatAttr(number));
  }
  return list.getDictionary(builder.getContext());
}

void GraphImporter::define(const JsonPlace &place, const std::string &name,
                           Value value) {
  if (!name.empty() && !values.emplace(name, value).second)
    place.wrong("expected names to be unique, but got '" + name + "' twice");
}

void GraphImporter::addValues(const JsonPlace &root, const char *list,
                              RoleKind kind) {
  for (const JsonPlace &place : root.list(list)) {
    if (!place.isObject(
            kind == RoleKind::Input
                ? std::vector<std::string_view>{"name", "type", "shape", "high",
                                                "requires_grad"}
                : std::vector<std::string_view>{"name", "type", "shape", "init",
                                                "requires_grad"}))
      continue;
    std::string name = place.text("name");
    RankedTensorType tensor = type(place);
    if (name.empty() || !tensor)
      continue;
    auto role = RoleAttr::get(builder.getContext(), kind, name);
    bool grad = place.has("requires_grad") ? place.flag("requires_grad")
                                           : kind == RoleKind::Param;
    if (grad && !isDifferentiableType(tensor)) {
      place.wrong("'" + name +
                  "' requires grad, so expected floating-point "
                  "elements");
      continue;
    }
    if (grad)
      role = role.withUnit("requires_grad");
    if (place.has("high"))
      role = role.with("high", builder.getI64IntegerAttr(static_cast<int64_t>(
                                   place.number("high").value_or(0))));
    if (place.has("init"))
      if (DictionaryAttr how = init(place.at("init")))
        role = role.with("init", how);
    unsigned index = func.getNumArguments();
    Type argument =
        kind == RoleKind::State ? Type(RefType::of(tensor)) : Type(tensor);
    if (succeeded(func.insertArgument(
            index, argument,
            builder.getDictionaryAttr(builder.getNamedAttr(kRoleAttr, role)),
            location(place, name))))
      define(place, name, func.getArgument(index));
  }
}

Value GraphImporter::operand(const JsonPlace &place, bool asRef) {
  if (!place.json.is_string()) {
    place.wrong("expected the name of a value, but got " + place.json.dump());
    return {};
  }
  auto it = values.find(place.json.get<std::string>());
  if (it == values.end()) {
    place.wrong("unknown value '" + place.json.get<std::string>() +
                "'; values are defined before they are used");
    return {};
  }
  if (!it->second)
    return {}; // what defines it is wrong, and was reported
  bool isRef = isa<RefType>(it->second.getType());
  if (asRef && !isRef) {
    place.wrong("expected a state to write to, but '" + it->first +
                "' is not one");
    return {};
  }
  if (isRef && !asRef)
    return ReadOp::create(builder, location(place, it->first), it->second);
  return it->second;
}

Attribute GraphImporter::attribute(const JsonPlace &place, StringRef op,
                                   StringRef name, ArrayRef<Value> operands) {
  const Json &json = place.json;
  if (name == "predicate" && json.is_string()) {
    if (auto predicate = symbolizeComparePredicate(json.get<std::string>()))
      return ComparePredicateAttr::get(builder.getContext(), *predicate);
    place.wrong("expected eq, ne, lt, le, gt or ge, but got " + json.dump());
    return {};
  }
  if (op == "pad" && name == "value" && json.is_number() && !operands.empty()) {
    Type element =
        cast<RankedTensorType>(operands[0].getType()).getElementType();
    if (isa<FloatType>(element))
      return builder.getFloatAttr(element, json.get<double>());
    return builder.getIntegerAttr(element,
                                  static_cast<int64_t>(json.get<double>()));
  }
  // The one flag that is on unless it is said to be off.
  if (name == "count_include_pad" && json.is_boolean())
    return builder.getBoolAttr(json.get<bool>());
  if (json.is_boolean())
    return json.get<bool>() ? builder.getUnitAttr() : Attribute();
  if (json.is_number_integer())
    return builder.getI64IntegerAttr(json.get<int64_t>());
  if (json.is_number())
    return builder.getF64FloatAttr(json.get<double>());
  if (json.is_string())
    return builder.getStringAttr(json.get<std::string>());
  if (json.is_array()) {
    SmallVector<int64_t> list;
    for (const Json &element : json) {
      if (!element.is_number_integer()) {
        place.wrong("expected a list of integers, but got " + json.dump());
        return {};
      }
      list.push_back(element.get<int64_t>());
    }
    return builder.getDenseI64ArrayAttr(list);
  }
  place.wrong("expected a number, a string, true, false or a list of integers, "
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
    auto add = [&](const Json &json) {
      if (!json.is_number() && !json.is_boolean())
        return false;
      double number = json.is_boolean() ? json.get<bool>() : json.get<double>();
      if (isFloat)
        elements.push_back(
            builder.getFloatAttr(tensor.getElementType(), number));
      else
        elements.push_back(builder.getIntegerAttr(
            tensor.getElementType(), static_cast<int64_t>(number)));
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
      result = ConstantOp::create(builder, location(node, "constant"),
                                  DenseElementsAttr::get(tensor, elements));
  } else if (tensor) {
    node.wrong("expected a field 'value'");
  }
  define(outputs[0], outputs[0].json.get<std::string>(), result);
}

void GraphImporter::addNode(const JsonPlace &node) {
  if (!node.isObject({"op", "name", "inputs", "outputs", "attributes", "type",
                      "shape", "value", "no_grad"}))
    return;
  std::string op = node.text("op");
  if (op == "constant")
    return addConstant(node);

  size_t before = problems.size();
  SmallVector<Value> operands;
  std::vector<JsonPlace> inputs = node.list("inputs");
  bool complete = true;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    operands.push_back(operand(input, /*asRef=*/op == "write" && i == 1));
    complete = complete && operands.back();
  }
  SmallVector<NamedAttribute> attributes;
  if (complete && node.has("attributes")) {
    JsonPlace list = node.at("attributes");
    if (!list.json.is_object())
      list.wrong("expected an object");
    else
      for (auto &[key, value] : list.json.items())
        if (Attribute a = attribute(list.at(key), op, key, operands))
          attributes.push_back(builder.getNamedAttr(key, a));
  }
  if (node.flag("no_grad"))
    attributes.push_back(
        builder.getNamedAttr(kNoGradAttr, builder.getUnitAttr()));
  SmallVector<Type> types;
  if (complete && node.has("type") && !operands.empty()) {
    if (Type element = elementType(node, node.text("type")))
      types.push_back(
          cast<RankedTensorType>(operands[0].getType()).clone(element));
  } else if (node.has("type")) {
    if (RankedTensorType tensor = type(node))
      types.push_back(tensor);
  }

  Operation *created = nullptr;
  if (complete && problems.size() == before && !op.empty()) {
    std::string name = node.has("name") ? node.text("name") : op;
    ScopedDiagnosticHandler handler(builder.getContext(), [&](Diagnostic &d) {
      node.wrong(d.str());
      return success();
    });
    auto result =
        buildOp(builder, location(node, name), op, operands, attributes, types);
    created = succeeded(result) ? *result : nullptr;
  }
  std::vector<JsonPlace> outputs = node.list("outputs");
  if (created && outputs.size() > created->getNumResults())
    node.at("outputs").wrong(
        "expected at most " + std::to_string(created->getNumResults()) +
        " names, but got " + std::to_string(outputs.size()));
  for (auto [i, output] : llvm::enumerate(outputs)) {
    if (!output.json.is_string()) {
      output.wrong("expected a name, but got " + output.json.dump());
      continue;
    }
    bool exists = created && i < created->getNumResults();
    define(output, output.json.get<std::string>(),
           exists ? created->getResult(i) : Value());
  }
}

void GraphImporter::addOutputs(const JsonPlace &root) {
  SmallVector<Value> results;
  SmallVector<RoleAttr> roles;
  for (const JsonPlace &place : root.list("outputs")) {
    if (!place.isObject({"name", "value", "no_grad"}))
      continue;
    std::string name = place.text("name");
    if (!place.has("value")) {
      place.wrong("expected a field 'value'");
      continue;
    }
    Value value = operand(place.at("value"), /*asRef=*/false);
    if (!value || name.empty())
      continue;
    auto role = RoleAttr::get(builder.getContext(), RoleKind::Output, name);
    roles.push_back(place.flag("no_grad") ? role.withUnit("no_grad") : role);
    results.push_back(value);
  }
  if (root.list("outputs").empty())
    root.wrong("expected at least one output");
  func::ReturnOp::create(builder, func.getLoc(), results);
  func.setType(builder.getFunctionType(func.getArgumentTypes(),
                                       TypeRange(ValueRange(results))));
  for (auto [i, role] : llvm::enumerate(roles))
    setRoleOfResult(func, i, role);
}

OwningOpRef<ModuleOp> GraphImporter::run(const Json &json) {
  JsonPlace root(json, "", problems);
  if (!root.isObject({"format", "version", "name", "inputs", "params", "states",
                      "nodes", "outputs"}))
    return {};
  if (!root.has("format") || json["format"] != "tandem-graph")
    root.wrong("expected 'format' to be 'tandem-graph'");
  if (!root.has("version") || json["version"] != 1)
    root.wrong("expected 'version' to be 1");
  std::string name = root.text("name");

  OwningOpRef<ModuleOp> module =
      ModuleOp::create(builder.getUnknownLoc(), name.empty() ? "model" : name);
  (*module)->setAttr(kPhaseAttr, builder.getStringAttr("capture"));
  builder.setInsertionPointToEnd(module->getBody());
  func = createGraphFunction(builder, location(root, "graph"), "graph", {}, {});
  builder.setInsertionPointToEnd(&func.getBody().front());
  addValues(root, "inputs", RoleKind::Input);
  addValues(root, "params", RoleKind::Param);
  addValues(root, "states", RoleKind::State);
  for (const JsonPlace &node : root.list("nodes"))
    addNode(node);
  addOutputs(root);
  if (!problems.empty())
    return {};
  ScopedDiagnosticHandler handler(builder.getContext(), [&](Diagnostic &d) {
    root.wrong(d.str());
    return success();
  });
  if (failed(verify(*module)))
    return {};
  return module;
}

} // namespace

OwningOpRef<ModuleOp> tandem::importJsonGraph(StringRef text,
                                              const std::string &path,
                                              MLIRContext &context,
                                              Status &status) {
  context.loadDialect<TandemDialect, func::FuncDialect>();
  auto json = parseJson(std::string_view(text.data(), text.size()));
  if (!json) {
    status = Status(json.status().code(), path + ":" + json.status().message());
    return {};
  }
  GraphImporter importer(path, context);
  OwningOpRef<ModuleOp> module = importer.run(*json);
  if (module && importer.problems.empty())
    return module;
  std::string message;
  for (const std::string &problem : importer.problems)
    message += (message.empty() ? "" : "\n") + path + ": " + problem;
  status = Status::failed(message);
  return {};
}
