//===- TranslateNodes.cpp - the nodes of ONNX graphs ----------------------===//
#include "compiler/import/onnx/GraphTranslator.h"
#include "ir/Ops.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

/// How deep functions and graphs may be in each other.
static constexpr int maxDepth = 100;
/// How many nodes a model may have, with those of functions at each call.
static constexpr int64_t maxNodes = 1 << 20;

std::string onnx::labelOf(const NodeData &data) {
  if (!data.name.empty())
    return data.name;
  for (const std::string &output : data.outputs)
    if (!output.empty())
      return output;
  return data.op;
}

static std::string whereOf(const NodeData &data) {
  std::string op = data.domain.empty() ? data.op : data.domain + "." + data.op;
  return "node '" + labelOf(data) + "' (" + op + ")";
}

std::set<std::string> onnx::usedNames(const NodeData &data) {
  std::set<std::string> names(data.inputs.begin(), data.inputs.end());
  names.erase("");
  // What is differentiated is said by its name.
  if (data.op == "Gradient" && data.domain == "ai.onnx.preview.training")
    for (const onnx::Attribute &attribute : data.attributes)
      if (attribute.name == "y")
        names.insert(attribute.text);
  // Of a graph inside: what it does not define itself.
  for (const onnx::Attribute &attribute : data.attributes)
    for (const auto &graph : attribute.graphs) {
      std::set<std::string> own;
      for (const NamedType &input : graph->inputs)
        own.insert(input.name);
      for (const TensorPtr &initializer : graph->initializers)
        if (initializer)
          own.insert(initializer->name);
      for (const NodeData &node : graph->nodes)
        own.insert(node.outputs.begin(), node.outputs.end());
      for (const NodeData &node : graph->nodes)
        for (const std::string &name : usedNames(node))
          if (!own.count(name))
            names.insert(name);
      for (const NamedType &output : graph->outputs)
        if (!own.count(output.name))
          names.insert(output.name);
    }
  return names;
}

SmallVector<size_t> GraphTranslator::sorted(ArrayRef<NodeData> nodes,
                                            const Scope &scope) {
  std::map<std::string, size_t> makers;
  for (auto [i, node] : llvm::enumerate(nodes))
    for (const std::string &output : node.outputs)
      if (!output.empty())
        makers.emplace(output, i);
  SmallVector<size_t> order;
  // 0: not looked at, 1: what it needs is being looked at, 2: in `order`.
  std::vector<int> state(nodes.size(), 0);
  std::vector<std::vector<size_t>> needs(nodes.size());
  for (auto [i, node] : llvm::enumerate(nodes))
    for (const std::string &name : usedNames(node))
      if (auto maker = makers.find(name); maker != makers.end())
        needs[i].push_back(maker->second);
  for (size_t root = 0; root < nodes.size(); ++root) {
    SmallVector<std::pair<size_t, size_t>> stack; // node, needs looked at
    if (state[root] == 0) {
      state[root] = 1;
      stack.push_back({root, 0});
    }
    while (!stack.empty()) {
      auto &[node, done] = stack.back();
      if (done == needs[node].size()) {
        state[node] = 2;
        order.push_back(node);
        stack.pop_back();
        continue;
      }
      size_t next = needs[node][done++];
      if (state[next] == 1) {
        std::string cycle;
        for (auto it = llvm::find_if(
                 stack, [&](auto &entry) { return entry.first == next; });
             it != stack.end(); ++it)
          cycle += "'" + labelOf(nodes[it->first]) + "' needs ";
        problem(whereOf(nodes[next]), "expected a graph without cycles, but " +
                                          cycle + "'" + labelOf(nodes[next]) +
                                          "'");
      } else if (state[next] == 0) {
        state[next] = 1;
        stack.push_back({next, 0});
      }
    }
  }
  return order;
}

void GraphTranslator::addNodes(const Graph &graph, Scope &scope) {
  for (const NodeData &node : graph.nodes)
    scope.used.merge(usedNames(node));
  for (const NamedType &output : graph.outputs)
    scope.used.insert(output.name);
  if (scope.isMain && makesLoss()) // KIND:OUTPUT,LABELS
    scope.used.insert(
        StringRef(options.loss).split(':').second.split(',').first.str());
  for (size_t i : sorted(graph.nodes, scope))
    addNode(graph.nodes[i], &graph, scope);
}

LogicalResult GraphTranslator::translate(Node &node,
                                         const OpTable::Entry &entry) {
  // What ops say about their operands is said of the node.
  ScopedDiagnosticHandler handler(
      builder.getContext(), [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
          return failure();
        std::string text = diagnostic.str();
        (void)(StringRef(text).starts_with("unsupported")
                   ? node.unsupported(StringRef(text).drop_front(
                         StringRef(text).starts_with("unsupported: ") ? 13 : 0))
                   : node.error(text));
        return success();
      });
  bool isFine = succeeded(entry.translation(node));
  if (!isFine && !node.failed)
    (void)node.error("cannot be translated");
  if (node.failed)
    return failure();
  for (const onnx::Attribute &attribute : node.data.attributes)
    if (!node.asked.count(attribute.name))
      (void)node.unsupported("the attribute '" + attribute.name + "'");
  for (size_t i = 0; i < node.results.size(); ++i)
    if (node.wants(i) && !node.results[i])
      (void)node.unsupported("the result '" + node.data.outputs[i] +
                             "' (number " + Twine(i) + ")");
  return success(!node.failed);
}

/// Puts the attributes of a call in the place of those of nodes that stand for
/// them, also in graphs inside; takes out those that the call has not.
static void
resolveAttributes(std::vector<NodeData> &nodes,
                  llvm::function_ref<bool(onnx::Attribute &)> resolve) {
  for (NodeData &node : nodes) {
    llvm::erase_if(node.attributes, [&](onnx::Attribute &attribute) {
      return !attribute.reference.empty() && !resolve(attribute);
    });
    for (onnx::Attribute &attribute : node.attributes)
      for (auto &graph : attribute.graphs) {
        auto copy = std::make_shared<Graph>(*graph);
        resolveAttributes(copy->nodes, resolve);
        graph = std::move(copy);
      }
  }
}

const FunctionData *GraphTranslator::functionOf(const NodeData &data) const {
  for (const FunctionData &one : model.functions)
    if (one.domain == data.domain && one.name == data.op &&
        one.overload == data.overload)
      return &one;
  return nullptr;
}

/// Takes the body of a function of the model, with the call's operands and
/// attributes, for the node. False if it is no such call.
bool GraphTranslator::addCall(const NodeData &data, ArrayRef<Datum> operands,
                              Location where, Scope &scope,
                              SmallVectorImpl<Datum> &results) {
  const FunctionData *function = functionOf(data);
  if (!function)
    return false;
  std::string here = whereOf(data);
  results.resize(data.outputs.size());
  if (llvm::is_contained(calls, function)) {
    problem(here, "expected functions that do not call themselves");
    return true;
  }
  if (depth >= maxDepth) {
    problem(here, "functions are too deep in each other");
    return true;
  }
  if (operands.size() > function->inputs.size() ||
      data.outputs.size() > function->outputs.size())
    problem(here,
            "expected at most " + std::to_string(function->inputs.size()) +
                " operands and " + std::to_string(function->outputs.size()) +
                " results, but got " + std::to_string(operands.size()) +
                " and " + std::to_string(data.outputs.size()));
  ++depth;
  calls.push_back(function);
  Scope inside;
  inside.opsets = function->opsets.empty() ? scope.opsets : &function->opsets;
  inside.prefix = scope.prefix + labelOf(data) + "/";
  for (auto [name, operand] : llvm::zip(function->inputs, operands))
    inside.names[name] = operand;
  for (size_t i = operands.size(); i < function->inputs.size(); ++i)
    inside.names[function->inputs[i]] = Datum();
  // Attributes of nodes that stand for those of the call.
  auto resolve = [&](onnx::Attribute &attribute) {
    auto same = [&](const onnx::Attribute &a) {
      return a.name == attribute.reference;
    };
    const onnx::Attribute *found = nullptr;
    if (auto it = llvm::find_if(data.attributes, same);
        it != data.attributes.end())
      found = &*it;
    else if (auto it = llvm::find_if(function->defaults, same);
             it != function->defaults.end())
      found = &*it;
    if (!found)
      return false;
    std::string name = attribute.name;
    attribute = *found;
    attribute.name = name;
    return true;
  };
  std::vector<NodeData> nodes = function->nodes;
  resolveAttributes(nodes, resolve);
  inside.used.insert(function->outputs.begin(), function->outputs.end());
  for (const NodeData &node : nodes)
    inside.used.merge(usedNames(node));
  for (size_t i : sorted(nodes, inside))
    addNode(nodes[i], nullptr, inside);
  --depth;
  calls.pop_back();
  for (auto [result, name] : llvm::zip(results, function->outputs)) {
    bool isBroken;
    if (const Datum *datum = find(name, inside, isBroken))
      result = *datum;
    else if (!isBroken)
      problem(here, "expected a node of the function that makes '" + name +
                        "', but there is none");
  }
  (void)where;
  return true;
}

/// Stand-ins for what a node would have made, where the model declares types.
void GraphTranslator::leavePlaceholders(const NodeData &data,
                                        const Graph *graph, Scope &scope) {
  for (const std::string &output : data.outputs) {
    if (output.empty())
      continue;
    scope.broken.insert(output);
    if (!graph)
      continue;
    for (const auto *list : {&graph->values, &graph->outputs})
      for (const NamedType &value : *list) {
        Type element = elementTypeOf(value.type.kind, builder.getContext());
        if (value.name != output || !value.type.hasShape || !element ||
            value.type.form != ValueType::Form::Tensor ||
            scope.names.count(output))
          continue;
        SmallVector<int64_t> shape;
        for (const Dim &dim : value.type.shape) {
          auto named = options.dims.find(dim.name);
          shape.push_back(named != options.dims.end() ? named->second
                                                      : dim.size);
        }
        auto type = RankedTensorType::get(shape, element);
        if (llvm::is_contained(shape, -1) || !isTensorType(type))
          continue;
        Value stand = addArgument(type, {}, location(output));
        placeholders.insert(stand);
        scope.names[output] = stand;
        scope.broken.erase(output);
      }
  }
}

/// True for a node that stands for an initializer: a Constant with --train, or
/// a ConstantOfShape whose shape is an initializer.
bool GraphTranslator::isWrittenDown(const NodeData &data) const {
  if (!data.domain.empty())
    return false;
  if (data.op == "Constant")
    return !options.train.empty();
  return data.op == "ConstantOfShape" && !data.inputs.empty() &&
         (!options.train.empty() || !options.loss.empty()) &&
         llvm::any_of(model.graph.initializers, [&](const TensorPtr &one) {
           return one->name == data.inputs[0];
         });
}

/// Operators that know narrow types, and whether they move elements alone.
static std::optional<bool> takesNarrow(const NodeData &data) {
  static const std::map<std::string, bool> table = {
      {"Cast", false},   {"CastLike", false}, {"DequantizeLinear", false},
      {"Flatten", true}, {"Identity", false}, {"QuantizeLinear", false},
      {"Reshape", true}, {"Shape", false},    {"Size", false},
      {"Squeeze", true}, {"Transpose", true}, {"Unsqueeze", true}};
  auto it = table.find(data.op);
  return data.domain.empty() && it != table.end() ? std::optional(it->second)
                                                  : std::nullopt;
}

void GraphTranslator::addNode(const NodeData &data, const Graph *graph,
                              Scope &scope) {
  // Functions that call others twice are small in a file and large here.
  if (++nodes > maxNodes) {
    if (nodes == maxNodes + 1)
      problem(whereOf(data), "expected at most " + std::to_string(maxNodes) +
                                 " nodes in all, each call of a function and "
                                 "iteration counted");
    scope.broken.insert(data.outputs.begin(), data.outputs.end());
    return;
  }
  std::string where =
      (scope.prefix.empty() ? "" : "in " + scope.prefix + ": ") + whereOf(data);
  SmallVector<Datum> operands;
  bool isComplete = true;
  for (const std::string &name : data.inputs) {
    bool isBroken = false;
    const Datum *found = name.empty() ? nullptr : find(name, scope, isBroken);
    isComplete &= !isBroken;
    if (!name.empty() && !found && !isBroken) {
      problem(where, "expected '" + name +
                         "' to be made by a node before it, but there is "
                         "none");
      isComplete = false;
    }
    operands.push_back(found ? *found : Datum());
  }
  if (scope.isMain)
    splitRoles(data, operands);
  // The nodes of a function are copies, and have no numbers.
  Location loc = location(
      scope.prefix + labelOf(data), data.op,
      graph ? static_cast<unsigned>(&data - graph->nodes.data()) + 1 : 0);
  SmallVector<Datum> results;
  if (isComplete && addCall(data, operands, loc, scope, results)) {
    for (auto [name, result] : llvm::zip(data.outputs, results)) {
      if (name.empty())
        continue;
      if (result)
        scope.names[name] = result;
      else
        scope.broken.insert(name);
    }
    return;
  }
  for (const Datum &operand : operands)
    if (isNarrow(operand.kind) && !takesNarrow(data) && !functionOf(data)) {
      problem(where, "unsupported: elements of type " + spelling(operand.kind),
              true);
      isComplete = false;
      break;
    }
  const OpTable::Entry *entry = opTable().find(data.domain, data.op);
  auto opset = scope.opsets->find(data.domain);
  if (functionOf(data)) {
    // An operand of it is missing.
  } else if (opset == scope.opsets->end()) {
    problem(where, "expected the model to import the operators of '" +
                       (data.domain.empty() ? "ai.onnx" : data.domain) +
                       "', but it does not");
  } else if (!entry) {
    problem(where,
            "unsupported: the operator '" + data.op + "'" +
                (data.domain.empty() ? "" : " of " + data.domain),
            true);
  } else if (opset->second < entry->first || opset->second > entry->last ||
             (data.domain.empty() && opset->second > newestOpset)) {
    problem(where,
            "unsupported: version " + std::to_string(opset->second) +
                " of the operators; this one is known from " +
                std::to_string(entry->first) + " to " +
                std::to_string(entry->last),
            true);
  } else if (isComplete) {
    Node node(*this, data, operands, loc, opset->second);
    node.place = where;
    node.scope = &scope;
    if (succeeded(translate(node, *entry))) {
      if (!operands.empty() && !node.results.empty() &&
          takesNarrow(data).value_or(false))
        node.results[0].kind = operands[0].kind;
      // A number alone (the root of 2 in a GELU) is part of a formula.
      TensorPtr made = node.results.empty() ? nullptr : node.results[0].data;
      if (scope.isMain && isWrittenDown(data) && made && !made->shape.empty())
        addCandidate(made, data.outputs[0]);
      if (scope.isMain && !node.results.empty())
        splitIdentity(data, node.results[0]);
      for (auto [name, result] : llvm::zip(data.outputs, node.results))
        if (!name.empty())
          scope.names[name] = result;
      return;
    }
  }
  leavePlaceholders(data, graph, scope);
}
