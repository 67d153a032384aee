//===- Loss.cpp - a loss for a graph that has none, or its own ------------===//
//
// `--loss=KIND:OUTPUT,LABELS`: OUTPUT is any value of the graph, LABELS an
// input that is made here, of the type that the loss wants beside OUTPUT.
// `--loss=NAME`: an output of the graph.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/Losses.h"
#include "compiler/import/onnx/GraphTranslator.h"
#include "compiler/import/onnx/Known.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

/// True for a product, or one with its bias: any numbers.
static bool isLayer(const Graph &graph, const NodeData &node) {
  if (node.op != "Add")
    return node.op == "Gemm" || node.op == "MatMul" || node.op == "Conv";
  return llvm::any_of(graph.initializers, [&](const TensorPtr &data) {
    return data && llvm::is_contained(node.inputs, data->name);
  });
}

/// Says where OUTPUT is what the loss computes itself: losses then come out
/// wrong, and nothing else does.
void GraphTranslator::noteLoss(const std::string &kind,
                               const std::string &output) {
  static constexpr StringRef views[] = {"Identity", "Transpose", "Reshape",
                                        "Squeeze",  "Unsqueeze", "Flatten",
                                        "Cast"};
  static constexpr struct {
    StringRef kind, op, takes, use; ///< no op: a layer
  } wrong[] = {
      {"cross_entropy", "Softmax", "logits", "the input of the Softmax"},
      {"nll", "Softmax", "logarithms of probabilities",
       "a LogSoftmax, or cross_entropy of its input"},
      {"kl", "Softmax", "logarithms of probabilities", "a LogSoftmax"},
      {"bce_with_logits", "Sigmoid", "logits", "the input of the Sigmoid"},
      {"bce", "", "probabilities", "bce_with_logits"},
      {"nll", "", "logarithms of probabilities", "cross_entropy"},
      {"kl", "", "logarithms of probabilities", "a LogSoftmax of it"},
      {"dice", "Softmax", "logits", "the input of the Softmax"},
      {"dice_with_logits", "Sigmoid", "logits", "the input of the Sigmoid"},
  };
  std::map<std::string, const NodeData *> makers;
  for (const NodeData &node : model.graph.nodes)
    for (const std::string &name : node.outputs)
      makers[name] = &node;
  auto it = makers.find(output);
  // No more steps than nodes, should they be in a cycle.
  for (size_t left = model.graph.nodes.size();
       left && it != makers.end() &&
       llvm::is_contained(views, it->second->op) && !it->second->inputs.empty();
       --left)
    it = makers.find(it->second->inputs[0]);
  if (it == makers.end() || !it->second->domain.empty())
    return;
  for (const auto &one : wrong)
    if (one.kind == kind && (one.op.empty() ? isLayer(model.graph, *it->second)
                                            : one.op == it->second->op))
      notes.push_back(
          "--loss=" + options.loss + ": '" + output + "' comes out of " +
          (it->second->op == "Add" ? "an " : "a ") + it->second->op + ", but " +
          kind + " takes " + one.takes.str() + ": use " + one.use.str());
}

/// The values from which those of `next` follow, and these.
static std::set<std::string> sourcesOf(const Graph &graph,
                                       std::vector<std::string> next) {
  std::map<std::string, const NodeData *> makers;
  for (const NodeData &node : graph.nodes)
    for (const std::string &name : node.outputs)
      makers[name] = &node;
  std::set<std::string> sources;
  while (!next.empty()) {
    std::string name = std::move(next.back());
    next.pop_back();
    auto maker = makers.find(name);
    if (sources.insert(name).second && maker != makers.end())
      llvm::append_range(next, usedNames(*maker->second));
  }
  return sources;
}

/// What a loss of the graph's own has in its place for the weights of classes;
/// and, where other outputs are given beside it, what none of them follows
/// from.
void GraphTranslator::findPartsOfLoss(const Graph &graph) {
  if (options.loss.empty() || makesLoss())
    return;
  std::vector<std::string> others;
  for (const NamedType &output : graph.outputs)
    if (output.name != options.loss)
      others.push_back(output.name);
  std::set<std::string> loss = sourcesOf(graph, {options.loss}), weights;
  for (const NodeData &node : graph.nodes)
    if ((node.op == "SoftmaxCrossEntropyLoss" ||
         node.op == "NegativeLogLikelihoodLoss") &&
        node.inputs.size() > 2)
      weights.insert(node.inputs[2]);
  std::set<std::string> ofOthers = sourcesOf(graph, others);
  for (const TensorPtr &data : graph.initializers)
    if (data && data->elements() > 1 &&
        isa_and_nonnull<FloatType>(
            elementTypeOf(data->kind, builder.getContext())) &&
        loss.count(data->name) &&
        (weights.count(data->name) ||
         (!others.empty() && !ofOthers.count(data->name))))
      ofLoss.insert(data->name);
}

void GraphTranslator::addLoss(Scope &scope) {
  std::string where = "--loss=" + options.loss;
  auto spec = parseLoss(options.loss);
  if (!spec)
    return misuse(where, spec.status().message());
  const std::string &outputName = spec->output, &labels = spec->labels;
  bool isBroken;
  const Datum *datum = find(outputName, scope, isBroken);
  if (isBroken)
    return;
  std::string why;
  Location loc = location("loss");
  Value value = datum ? materialize(*datum, loc, why) : Value();
  if (!value) {
    std::string outputs;
    for (const NamedType &output : model.graph.outputs)
      outputs += (outputs.empty() ? "'" : ", '") + output.name + "'";
    return misuse(where, "the graph has no value '" + outputName +
                             "'; its outputs are " + outputs);
  }
  auto operands = lossOperands(*spec, Expr(builder, loc, value));
  if (!operands)
    return misuse(where, operands.status().message());
  noteLoss(spec->kind, outputName);
  if (!operands->note.empty())
    notes.push_back(where + ": " + operands->note);
  const Datum *given = find(labels, scope, isBroken);
  Value target;
  if (given) {
    target = materialize(*given, loc, why);
    if (!target || target.getType() != operands->labels)
      return misuse(where, "the graph has another '" + labels + "'");
  } else {
    auto role = RoleAttr::get(builder.getContext(), RoleKind::Input, labels);
    if (operands->classes)
      role = role.with(RoleAttr::kHigh,
                       builder.getI64IntegerAttr(operands->classes));
    target = addArgument(operands->labels, role, location(labels));
  }
  ScopedDiagnosticHandler handler(
      builder.getContext(), [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
          return failure();
        problem(where, diagnostic.str(),
                StringRef(diagnostic.str()).starts_with("unsupported"));
        return success();
      });
  auto made = buildLoss(builder, loc, *spec, operands->x, target);
  loss = succeeded(made) ? *made : Value();
}
