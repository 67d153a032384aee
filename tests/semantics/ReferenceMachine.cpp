//===- ReferenceMachine.cpp - a program on the reference ------------------===//
#include "tests/semantics/ReferenceMachine.h"

#include "ir/Ops.h"
#include "ir/Signature.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::test;
using reference::Array;

ReferenceMachine::ReferenceMachine(OwningOpRef<ModuleOp> graphModule,
                                   OwningOpRef<ModuleOp> jointModule)
    : graphModule(std::move(graphModule)), jointModule(std::move(jointModule)),
      graph(this->graphModule->lookupSymbol<func::FuncOp>("graph")),
      joint(this->jointModule->lookupSymbol<func::FuncOp>("joint")) {
  // A gradient inside of the forward is built before anything can run.
  if (!graph.getOps<GradOp>().empty())
    graph = this->jointModule->lookupSymbol<func::FuncOp>("evaluate");
}

static ArrayRef<int64_t> shapeOf(Type type) {
  if (auto ref = dyn_cast<RefType>(type))
    return ref.getShape();
  return cast<RankedTensorType>(type).getShape();
}

static Array arrayOf(ArrayRef<int64_t> shape, const Numbers &numbers,
                     const std::string &name) {
  Array array(shape);
  EXPECT_EQ(array.data.size(), numbers.size()) << name;
  array.data = numbers;
  return array;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

void ReferenceMachine::set(const std::string &name, const Numbers &numbers) {
  auto index = findValue(graph, name);
  if (!index) {
    ADD_FAILURE() << "there is no argument '" << name << "'";
    return;
  }
  now[name] = arrayOf(shapeOf(graph.getArgumentTypes()[*index]), numbers, name);
}

void ReferenceMachine::setStorage(const std::string &name,
                                  const Numbers &numbers, DType) {
  storages[name] = numbers;
}

void ReferenceMachine::setView(const std::string &name, const std::string &of,
                               const Shape &shape, const Shape &strides,
                               int64_t offset) {
  const Numbers &base =
      storages.count(of) ? storages[of] : now[of].value_or(Array()).data;
  Array view(shape);
  int64_t position = 0;
  reference::forEachIndex(shape, [&](ArrayRef<int64_t> index) {
    int64_t from = offset;
    for (size_t d = 0; d < index.size(); ++d)
      from += index[d] * strides[d];
    view[position++] = base.at(from);
  });
  now[name] = view;
  aliases.insert(name);
}

void ReferenceMachine::setFreed(const std::string &name) {
  now[name] = std::nullopt;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

std::string ReferenceMachine::run(func::FuncOp func,
                                  const reference::Call &call,
                                  reference::Outcome &outcome) {
  std::string text;
  ScopedDiagnosticHandler handler(func.getContext(), [&](Diagnostic &error) {
    text += error.str() + "\n";
  });
  auto made = reference::run(func, call);
  if (failed(made))
    return text.empty() ? "it fails" : text;
  outcome = std::move(*made);
  return "";
}

std::string ReferenceMachine::forward() {
  reference::Call call;
  for (unsigned i = 0; i < graph.getNumArguments(); ++i) {
    RoleAttr role = roleOfArgument(graph, i);
    std::string name = role.getName().str();
    // Of an alias the base says all.
    call.arguments.push_back(aliases.count(name) ? Value() : now[name]);
    auto alias = role.getProperties().getAs<DictionaryAttr>("alias");
    if (!alias)
      continue;
    std::string of = alias.getAs<StringAttr>("of").str();
    if (auto type = alias.getAs<TypeAttr>("type"); type && storages.count(of))
      call.storages[of] = arrayOf(shapeOf(type.getValue()), storages[of], of);
  }
  reference::Outcome outcome;
  if (std::string error = run(graph, call, outcome); !error.empty())
    return error;
  atCall = now;
  handles.clear();
  outputs.clear();
  outputShapes.clear();
  for (auto [i, value] : llvm::enumerate(outcome.arguments)) {
    std::string name = roleOfArgument(graph, i).getName().str();
    now[name] = value;
    if (outcome.argumentHandles[i])
      handles[name] = *outcome.argumentHandles[i];
  }
  for (auto [i, value] : llvm::enumerate(outcome.results)) {
    std::string name = roleOfResult(graph, i).getName().str();
    if (value) {
      outputs[name] = value->data;
      outputShapes[name] = value->shape;
    }
    if (outcome.resultHandles[i])
      handles[name] = *outcome.resultHandles[i];
  }
  for (const auto &storage : outcome.storages)
    if (storages.count(storage->name))
      storages[storage->name] = storage->elements;
  afterForward = now;
  return "";
}

std::string ReferenceMachine::backward(const NamedNumbers &cotangents,
                                       const runtime::BackwardOptions &) {
  reference::Call call;
  size_t given = 0;
  for (auto [i, type] : llvm::enumerate(joint.getArgumentTypes())) {
    RoleAttr role = roleOfArgument(joint, i);
    std::string name = role.getName().str();
    Value value;
    if (role.getKind() != RoleKind::Cotangent) {
      value = role.has("pass") ? now[name] : atCall[name];
      // Nothing reads what freed storage held.
      if (!value)
        value = Array(shapeOf(type));
    } else if (auto it = cotangents.find(name); it != cotangents.end()) {
      value = arrayOf(shapeOf(type), it->second, name);
      now[name] = value;
      ++given;
    }
    call.arguments.push_back(value);
  }
  EXPECT_EQ(given, cotangents.size()) << "there are unknown cotangents";
  reference::Outcome outcome;
  if (std::string error = run(joint, call, outcome); !error.empty())
    return error;
  gradients.clear();
  for (auto [i, result] : llvm::enumerate(outcome.results)) {
    RoleAttr role = roleOfResult(joint, i);
    std::string name = role.getName().str();
    const Value &forwards = afterForward[name];
    if (role.getKind() == RoleKind::Grad && result) {
      gradients[name] = result->data;
    } else if (role.getKind() == RoleKind::Output && result) {
      EXPECT_TRUE(areNear("it", "", result->data, outputs[name]))
          << "the joint's " << role.str();
    } else if (role.getKind() != RoleKind::Update || !result) {
      continue;
    } else if (StringRef of = name; of.consume_front("cotangent of ")) {
      now[of.str()] = result;
    } else if (role.has("pass")) {
      now[name] = result;
    } else if (forwards && forwards->shape == result->shape) {
      EXPECT_TRUE(areNear("it", "", result->data, forwards->data))
          << "the joint's " << role.str();
    }
  }
  return "";
}

//===----------------------------------------------------------------------===//
// Handles
//===----------------------------------------------------------------------===//

Numbers ReferenceMachine::contents(const std::string &name) {
  if (auto found = storages.find(name); found != storages.end())
    return found->second;
  return now[name].value_or(Array()).data;
}

const reference::Handle *ReferenceMachine::handle(const std::string &name) {
  if (auto found = handles.find(name); found != handles.end())
    return &found->second;
  ADD_FAILURE() << "there is no handle '" << name << "'";
  return nullptr;
}

Shape ReferenceMachine::shape(const std::string &name) {
  if (auto found = outputShapes.find(name); found != outputShapes.end())
    return found->second;
  const reference::Handle *found = handle(name);
  return found ? found->positions.shape : Shape();
}
Shape ReferenceMachine::strides(const std::string &name) {
  const reference::Handle *found = handle(name);
  if (!found)
    return {};
  auto strides = found->strides();
  return {strides.begin(), strides.end()};
}
bool ReferenceMachine::share(const std::string &a, const std::string &b) {
  // What has no handle is a value, and shares nothing.
  auto first = handles.find(a), second = handles.find(b);
  return first != handles.end() && second != handles.end() &&
         first->second.storage == second->second.storage;
}
