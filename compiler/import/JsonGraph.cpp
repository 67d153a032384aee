//===- JsonGraph.cpp - models as JSON graphs ------------------------------===//
//
// The document: arguments, outputs, and what holds of the whole. Nodes are in
// JsonNodes.cpp and JsonCustom.cpp.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/JsonGraph.h"
#include "compiler/capture/DemoteRefs.h"
#include "compiler/capture/Names.h"
#include "compiler/capture/ViewChain.h"
#include "compiler/import/GraphImporter.h"
#include "ir/Init.h"
#include "ir/Signature.h"
#include "ir/TiedNames.h"
#include "runtime/artifact/Manifest.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace tandem;

GraphImporter::Listener::Listener(GraphImporter &importer,
                                  const JsonPlace &place)
    : handler(importer.builder.getContext(),
              [&importer, &place](Diagnostic &diagnostic) {
                if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
                  return success();
                std::string pointer;
                diagnostic.getLocation()->walk([&](Location loc) {
                  auto file = dyn_cast<FileLineColLoc>(loc);
                  if (file)
                    pointer = importer.positions.pointerAt(
                        {file.getLine(), file.getColumn()});
                  return file ? WalkResult::interrupt() : WalkResult::advance();
                });
                JsonPlace(place.json, pointer.empty() ? place.pointer : pointer,
                          place.problems)
                    .wrong(diagnostic.str());
                return success();
              }) {}

Location GraphImporter::location(const JsonPlace &place, StringRef name) {
  auto [line, column] = positions.of(place.pointer);
  auto file = FileLineColLoc::get(builder.getContext(), path, line, column);
  std::string text = name.empty() ? place.pointer : name.str();
  return NameLoc::get(builder.getStringAttr(text), file);
}

Type GraphImporter::elementType(const JsonPlace &place, StringRef name) {
  auto dtype = artifact::parseDType(std::string_view(name.data(), name.size()));
  if (dtype) {
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
    if (*dtype == artifact::DType::F8E4M3FN)
      return Float8E4M3FNType::get(builder.getContext());
    if (*dtype == artifact::DType::F8E5M2)
      return Float8E5M2Type::get(builder.getContext());
    unsigned bits = 8 * artifact::byteSize(*dtype);
    return isUnsigned(*dtype) ? builder.getIntegerType(bits, /*isSigned=*/false)
                              : builder.getIntegerType(bits);
  }
  place.wrong(
      "expected a type (f32, f64, bf16, f16, f8E4M3FN, f8E5M2, i8, i16, "
      "i32, i64, u8, u16, u32, u64, bool), but got '" +
      name.str() + "'");
  return {};
}

RankedTensorType GraphImporter::type(const JsonPlace &place) {
  Type element = elementType(place, place.text("type"));
  std::vector<int64_t> shape = place.shape("shape");
  if (!isTensorShape(shape)) {
    place.wrong("the tensor is too large");
    return {};
  }
  return element ? RankedTensorType::get(shape, element) : RankedTensorType();
}

DictionaryAttr GraphImporter::init(const JsonPlace &place, RoleAttr role,
                                   Type element) {
  if (!place.json.is_object()) {
    place.wrong("expected an object, but got " + place.json.dump());
    return {};
  }
  NamedAttrList list;
  for (auto &[key, value] : place.json.items()) {
    if (value.is_string())
      list.set(key, builder.getStringAttr(value.get<std::string>()));
    else if (key == "stream" && value.is_number_integer())
      list.set(key, builder.getI64IntegerAttr(value.get<int64_t>()));
    else if (value.is_number())
      list.set(key, builder.getF64FloatAttr(value.get<double>()));
    else
      list.set(key, builder.getStringAttr(value.dump())); // is no number
  }
  DictionaryAttr how = list.getDictionary(builder.getContext());
  Listener listener(*this, place);
  auto error = [&] { return emitError(location(place)); };
  if (failed(verifyInit(error, role.str(), how)) ||
      failed(verifyInitOfType(error, role.str(), how, element)))
    return {};
  return how;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

void GraphImporter::define(const JsonPlace &place, const std::string &name,
                           Value ref) {
  if (name.empty())
    return;
  handles.push_back({ref});
  if (!names.emplace(name, handles.size() - 1).second)
    place.wrong("expected names to be unique, but got '" + name + "' twice");
}

GraphImporter::Handle *GraphImporter::handle(const JsonPlace &place) {
  if (!place.json.is_string()) {
    place.wrong("expected the name of a value, but got " + place.json.dump());
    return nullptr;
  }
  auto it = names.find(place.json.get<std::string>());
  if (it == names.end()) {
    place.wrong("unknown value '" + place.json.get<std::string>() +
                "'; values are defined before they are used" +
                (inRegion() ? ", in the same region" : ""));
    return nullptr;
  }
  Handle &found = handles[it->second];
  return found.ref ? &found : nullptr; // its mistake was reported
}

//===----------------------------------------------------------------------===//
// Arguments and outputs
//===----------------------------------------------------------------------===//

/// Reads `{"of": ..., "views": [...]}` and, for storage that is no argument,
/// its type.
DictionaryAttr GraphImporter::alias(const JsonPlace &place) {
  if (!place.isObject({"of", "views", "type", "shape"}))
    return {};
  NamedAttrList list;
  list.set("of", builder.getStringAttr(place.text("of")));
  if (place.has("type") || place.has("shape"))
    if (RankedTensorType tensor = type(place))
      list.set("type", TypeAttr::get(tensor));
  SmallVector<Attribute> chain;
  for (const JsonPlace &view : place.list("views")) {
    if (!view.json.is_object()) {
      view.wrong("expected an object");
      continue;
    }
    NamedAttrList step;
    step.set("op", builder.getStringAttr(view.text("op")));
    for (auto &[key, value] : view.json.items()) {
      if (key == "op")
        continue;
      if (key != "type") {
        if (Attribute a = attribute(view.at(key), view.text("op"), key, {}))
          step.set(key, a);
      } else if (Type element = elementType(view, view.text("type"))) {
        step.set(key, TypeAttr::get(element));
      }
    }
    chain.push_back(step.getDictionary(builder.getContext()));
  }
  list.set("views", builder.getArrayAttr(chain));
  return list.getDictionary(builder.getContext());
}

RoleAttr GraphImporter::role(const JsonPlace &place, RoleKind kind,
                             const std::string &name, RankedTensorType tensor) {
  auto role = RoleAttr::get(builder.getContext(), kind, name);
  bool grad = place.has("requires_grad") ? place.flag("requires_grad")
                                         : kind == RoleKind::Param;
  if (grad && !isDifferentiableType(tensor))
    place.wrong("'" + name +
                "' requires grad, so expected floating-point elements");
  if (grad)
    role = role.withUnit(RoleAttr::kRequiresGrad);
  if (place.has("high"))
    if (auto high = place.at("high").integer()) {
      if (*high < 1)
        place.at("high").wrong("expected at least 1, but got " +
                               std::to_string(*high));
      else
        role = role.with(RoleAttr::kHigh, builder.getI64IntegerAttr(*high));
    }
  if (place.has("init"))
    if (DictionaryAttr how =
            init(place.at("init"), role, tensor.getElementType()))
      role = role.with(RoleAttr::kInit, how);
  if (place.has("also_called")) {
    SmallVector<Attribute> names;
    for (const JsonPlace &other : place.list("also_called"))
      if (other.json.is_string())
        names.push_back(
            builder.getStringAttr(other.json.get_ref<const std::string &>()));
      else
        other.wrong("expected a name");
    role = role.with(kAlsoCalled, builder.getArrayAttr(names));
  }
  if (place.flag("freed"))
    role = role.withUnit(RoleAttr::kFreed);
  if (place.has("grad_type"))
    if (Type element = elementType(place, place.text("grad_type"))) {
      if (isa<FloatType>(element))
        role = role.with(RoleAttr::kGradType, TypeAttr::get(element));
      else
        place.at("grad_type").wrong("expected a floating-point type");
    }
  if (place.has("alias"))
    if (DictionaryAttr shared = alias(place.at("alias")))
      role = role.with(RoleAttr::kAlias, shared);
  Listener listener(*this, place);
  (void)RoleAttr::verify([&] { return emitError(location(place)); }, kind,
                         role.getName(), role.getProperties());
  return role;
}

void GraphImporter::addValues(const JsonPlace &root, const char *list,
                              RoleKind kind) {
  std::vector<std::string_view> known = {"name",          "type",  "shape",
                                         "requires_grad", "freed", "grad_type"};
  if (kind == RoleKind::Input)
    known.insert(known.end(), {"high", "alias"});
  else
    known.push_back("init");
  if (kind == RoleKind::Param)
    known.push_back("also_called");
  for (const JsonPlace &place : root.list(list)) {
    if (!place.isObject(known))
      continue;
    std::string name = place.text("name");
    RankedTensorType tensor = type(place);
    if (name.empty() || !tensor)
      continue;
    unsigned index = func.getNumArguments();
    auto attributes = builder.getDictionaryAttr(
        builder.getNamedAttr(kRoleAttr, role(place, kind, name, tensor)));
    if (succeeded(func.insertArgument(index, RefType::of(tensor), attributes,
                                      location(place, name))))
      define(place, name, func.getArgument(index));
  }
}

/// Every declared alias has the type that its views lead to.
void GraphImporter::checkAliases(const JsonPlace &root) {
  Listener listener(*this, root);
  for (BlockArgument argument : func.getArguments()) {
    RoleAttr role = roleOfArgument(func, argument.getArgNumber());
    auto alias = role.getProperty<DictionaryAttr>(RoleAttr::kAlias);
    if (!alias)
      continue;
    RefType storage;
    if (auto type = alias.getAs<TypeAttr>("type"))
      storage = RefType::of(cast<RankedTensorType>(type.getValue()));
    else if (auto index = findValue(func, alias.getAs<StringAttr>("of")))
      storage = cast<RefType>(func.getArgument(*index).getType());
    else
      continue; // resolveAliases says so
    Block scratch;
    OpBuilder beside(builder.getContext());
    beside.setInsertionPointToEnd(&scratch);
    auto view = buildViews(beside, argument.getLoc(),
                           scratch.addArgument(storage, argument.getLoc()),
                           alias.getAs<ArrayAttr>("views"));
    if (succeeded(view) && view->getType() != argument.getType())
      mlir::emitError(argument.getLoc())
          << "expected '" << role.getName().getValue()
          << "' to have the type of its views, " << view->getType()
          << ", but got " << argument.getType();
  }
  (void)resolveAliases(func);
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
    Handle *value = handle(place.at("value"));
    if (!value || name.empty())
      continue;
    auto role = RoleAttr::get(builder.getContext(), RoleKind::Output, name);
    roles.push_back(place.flag("no_grad") ? role.withUnit(RoleAttr::kNoGrad)
                                          : role);
    results.push_back(value->ref);
  }
  if (root.list("outputs").empty() && !changesArguments(func))
    root.wrong("expected at least one output, or a change of an argument");
  returnOutputs(builder, func, results);
  for (auto [i, role] : llvm::enumerate(roles))
    setRoleOfResult(func, i, role);
  if (problems.empty())
    demoteRefs(func);
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
  if (std::string problem = modelNameProblem(name); !problem.empty())
    root.at("name").wrong(problem);

  OwningOpRef<ModuleOp> module =
      ModuleOp::create(builder.getUnknownLoc(), name.empty() ? "model" : name);
  (*module)->setAttr(kPhaseAttr, builder.getStringAttr("capture"));
  builder.setInsertionPointToEnd(module->getBody());
  func = createGraphFunction(builder, location(root, "graph"), "graph", {}, {});
  builder.setInsertionPointToEnd(&func.getBody().front());
  addValues(root, "inputs", RoleKind::Input);
  addValues(root, "params", RoleKind::Param);
  addValues(root, "states", RoleKind::State);
  checkAliases(root);
  addNodes(root);
  addOutputs(root);
  if (!problems.empty())
    return {};
  Listener listener(*this, root);
  if (failed(verify(*module)))
    return {};
  return module;
}

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
  GraphImporter importer(path, text, context);
  OwningOpRef<ModuleOp> module = importer.run(*json);
  if (module && importer.problems.empty())
    return module;
  std::string message;
  for (const std::string &problem : importer.problems)
    message += (message.empty() ? "" : "\n") + path + ": " + problem;
  status = Status::failed(message);
  return {};
}
