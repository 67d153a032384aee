//===- Merged.cpp - initializers that an exporter made one ----------------===//
//
// Exporters keep one of the initializers that are equal, as the scale and the
// running variance of a batch normalization that was not trained are, or the
// scales of two normalizations. PyTorch's puts an Identity in the place of the
// others, of their names; one that optimizes lets all nodes read the one that
// it kept. Equal values at the beginning do not make two variables one:
//
//   - what an Identity makes of an initializer that others read too is a
//     variable of its own;
//   - one that is read as running statistics and as something else is two.
//
// An initializer that several nodes read in one role stays one: that is what
// weights look like that are tied.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/onnx/GraphTranslator.h"
#include "ir/Signature.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

static bool isIdentity(const NodeData &node) {
  return node.op == "Identity" && node.domain.empty() &&
         node.inputs.size() == 1 && node.outputs.size() == 1;
}

/// Whether operand `i` is the running mean or variance.
static bool isStatistic(const NodeData &node, size_t i) {
  return node.op == "BatchNormalization" && (i == 3 || i == 4);
}

/// Whether an initializer that has two roles has the name of the statistics.
static bool namesStatistic(StringRef name) {
  return name.contains("running") || name.contains("moving") ||
         name.ends_with("mean") || name.ends_with("var");
}

/// Finds running statistics, the operands that BatchNormalization updates, and
/// initializers with a second role.
void GraphTranslator::findRoles(const Graph &graph) {
  std::map<std::string, int> readers;
  for (const NodeData &node : graph.nodes)
    for (const std::string &name : usedNames(node))
      ++readers[name];
  for (const NamedType &output : graph.outputs)
    ++readers[output.name];
  std::map<std::string, std::string> sources; ///< of an Identity alone
  for (const NodeData &node : graph.nodes)
    if (isIdentity(node)) {
      if (readers[node.inputs[0]] > 1)
        copies.insert(node.outputs[0]);
      else
        sources.emplace(node.outputs[0], node.inputs[0]);
    }
  auto nameOf = [&](std::string name) {
    // Of nodes in a cycle, which are an error, no name is found.
    for (size_t steps = 0; steps <= sources.size(); ++steps) {
      auto it = sources.find(name);
      if (it == sources.end())
        return name;
      name = it->second;
    }
    return name;
  };
  std::set<std::string> others;
  for (const NodeData &node : graph.nodes)
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (!isIdentity(node))
        (isStatistic(node, i) ? buffers : others)
            .insert(nameOf(node.inputs[i]));
  for (const TensorPtr &data : graph.initializers)
    if (data && buffers.count(data->name) && others.count(data->name))
      ambiguous.insert(data->name);
  for (const std::string &name : ambiguous)
    if (!namesStatistic(name))
      buffers.erase(name);
}

/// A variable called `name` that begins as `data`. It is made once.
TensorPtr GraphTranslator::apart(const TensorPtr &data,
                                 const std::string &name) {
  auto [it, isNew] = split.try_emplace(name, nullptr, candidates[data.get()]);
  if (!isNew)
    return it->second.first;
  auto copy = std::make_shared<TensorData>(*data);
  copy->name = name;
  it->second.first = copy;
  addCandidate(copy, name);
  return copy;
}

/// Gives the operands of a node of the main graph that stand for another role
/// than their initializer's name a variable of their own.
void GraphTranslator::splitRoles(const NodeData &node,
                                 MutableArrayRef<Datum> operands) {
  for (auto [i, operand] : llvm::enumerate(operands)) {
    auto it = candidates.find(operand.data.get());
    if (it == candidates.end() || !ambiguous.count(it->second) ||
        isIdentity(node) || isStatistic(node, i) == namesStatistic(it->second))
      continue;
    std::string name =
        it->second + (isStatistic(node, i) ? ".running" : ".trained");
    if (isStatistic(node, i))
      buffers.insert(name);
    operand = apart(operand.data, name);
  }
}

/// The result of a node of the main graph, if it is an Identity of what others
/// read too, as a variable of its own.
void GraphTranslator::splitIdentity(const NodeData &node, Datum &result) {
  if (isIdentity(node) && result.data && !result.data->shape.empty() &&
      copies.count(node.outputs[0]) && candidates.count(result.data.get()))
    result = apart(result.data, node.outputs[0]);
}

void GraphTranslator::noteSplit() {
  constexpr size_t most = 12;
  std::string text;
  size_t count = 0;
  for (BlockArgument argument : func.getArguments()) {
    auto it = parameters.find(argument);
    auto made = it == parameters.end()
                    ? split.end()
                    : split.find(candidates[it->second.get()]);
    if (made == split.end())
      continue;
    if (++count <= most)
      text += (text.empty() ? "'" : ", '") + made->first + "' and '" +
              made->second.second + "'";
  }
  if (!count)
    return;
  if (count > most)
    text += " and " + std::to_string(count - most) + " more";
  notes.push_back(
      "split, since an exporter merges what is equal: " + printable(text) +
      "; each is a variable of its own; what is one parameter in PyTorch has "
      "no Identity and stays one");
}
