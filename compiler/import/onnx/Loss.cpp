//===- Loss.cpp - a loss for a graph that has none, or its own ------------===//
//
// `--loss=KIND:OUTPUT,LABELS`: OUTPUT is any value of the graph, LABELS an
// input that is made here, of the type that the loss wants beside OUTPUT.
// `--loss=NAME`: an output of the graph.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Function.h"
#include "compiler/import/onnx/GraphTranslator.h"
#include "compiler/import/onnx/Known.h"
#include "ir/BuildOp.h"
#include "ir/ops/Inference.h"
#include "runtime/artifact/NearestName.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

namespace {
struct LossKind {
  StringRef name, function;
  bool takesClasses; ///< labels are numbers of classes
  StringRef meaning;
};
} // namespace

static constexpr LossKind kinds[] = {
    {"cross_entropy", "cross_entropy", true,
     "logits [N, C] or [N, C, d...]; classes, i64 [N, d...]"},
    {"nll", "nll_loss", true, "logarithms of probabilities; classes"},
    {"mse", "mse_loss", false, "anything; the same type"},
    {"l1", "l1_loss", false, "anything; the same type"},
    {"huber", "huber_loss", false, "anything; the same type"},
    {"bce_with_logits", "binary_cross_entropy_with_logits", false,
     "logits; probabilities"},
    {"kl", "kl_div", false, "logarithms of probabilities; probabilities"},
};

std::vector<std::pair<std::string, std::string>> onnx::lossKinds() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const LossKind &kind : kinds)
    all.emplace_back(kind.name, kind.meaning);
  return all;
}

Result<LossSpec> onnx::parseLoss(const std::string &text) {
  auto [kind, names] = StringRef(text).split(':');
  auto [output, labels] = names.split(',');
  SmallVector<std::string_view> known;
  for (const LossKind &one : kinds)
    known.push_back(one.name);
  std::string wrong = "expected --loss=KIND:OUTPUT,LABELS";
  if (!llvm::is_contained(known, std::string_view(kind)))
    return Status::usage(wrong + " with one of the kinds " +
                         llvm::join(known, ", ") + ", but got '" + kind.str() +
                         "'" + didYouMean(kind, known));
  if (output.empty() || labels.empty() || labels.contains(','))
    return Status::usage(wrong + ", but got '" + text + "'");
  return LossSpec{kind.str(), output.str(), labels.str()};
}

/// Brings [N, C, d...] into [N, d..., C], and [N, C, 1, ...] into [N, C].
static Expr classesLast(const Expr &x) {
  if (x.rank() <= 2)
    return x;
  if (llvm::all_of(x.shape().drop_front(2), [](int64_t n) { return n == 1; }))
    return x.reshape(x.shape().take_front(2));
  SmallVector<int64_t> order = {0};
  for (int64_t i = 2; i < x.rank(); ++i)
    order.push_back(i);
  order.push_back(1);
  return x.permute(order);
}

/// Says where OUTPUT is what the loss computes itself: losses then come out
/// wrong, and nothing else does.
void GraphTranslator::noteLoss(const std::string &kind,
                               const std::string &output) {
  static constexpr StringRef views[] = {"Identity", "Transpose", "Reshape",
                                        "Squeeze",  "Unsqueeze", "Flatten",
                                        "Cast"};
  static constexpr struct {
    StringRef kind, op, takes, use;
  } wrong[] = {
      {"cross_entropy", "Softmax", "logits", "the input of the Softmax"},
      {"nll", "Softmax", "logarithms of probabilities",
       "a LogSoftmax, or cross_entropy of its input"},
      {"kl", "Softmax", "logarithms of probabilities", "a LogSoftmax"},
      {"bce_with_logits", "Sigmoid", "logits", "the input of the Sigmoid"},
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
    if (one.kind == kind && one.op == it->second->op)
      notes.push_back("--loss=" + options.loss + ": '" + output +
                      "' comes out of a " + one.op.str() + ", but " + kind +
                      " takes " + one.takes.str() + ": use " + one.use.str());
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
  const auto *kind =
      llvm::find_if(kinds, [&](auto &k) { return k.name == spec->kind; });
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
  Expr x(builder, loc, value);
  if (!isa<FloatType>(x.type().getElementType()))
    return misuse(where, "expected '" + outputName +
                             "' to have floating-point elements");
  noteLoss(spec->kind, outputName);
  RankedTensorType type = x.type();
  int64_t classes = 0;
  if (kind->takesClasses) {
    if (x.rank() == 0)
      return misuse(where, "expected '" + outputName +
                               "' to have a dimension of classes");
    int64_t last = x.shape().back(), rank = x.rank();
    std::string shape = infer::text(x.shape());
    x = classesLast(x);
    classes = x.shape().back();
    if (rank > 2) {
      std::string note =
          where + ": '" + outputName + "' " + shape + " has " +
          std::to_string(classes) +
          " classes, along dimension 1, and a label for each of " +
          infer::text(x.shape().drop_back());
      if (x.rank() > 2)
        note += "; where the classes are the last dimension (" +
                std::to_string(last) +
                "), as in language models, the model has to transpose it "
                "before it gives it";
      notes.push_back(note);
    }
    type = RankedTensorType::get(x.shape().drop_back(), builder.getI64Type());
  }
  const Datum *given = find(labels, scope, isBroken);
  Value target;
  if (given) {
    target = materialize(*given, loc, why);
    if (!target || target.getType() != type)
      return misuse(where, "the graph has another '" + labels + "'");
  } else {
    auto role = RoleAttr::get(builder.getContext(), RoleKind::Input, labels);
    if (classes)
      role = role.with(RoleAttr::kHigh, builder.getI64IntegerAttr(classes));
    target = addArgument(type, role, location(labels));
  }
  ScopedDiagnosticHandler handler(
      builder.getContext(), [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
          return failure();
        problem(where, diagnostic.str(),
                StringRef(diagnostic.str()).starts_with("unsupported"));
        return success();
      });
  std::string op = ("tandem." + kind->function).str();
  if (RegisteredOperationName::lookup(op, builder.getContext())) {
    // As nll_loss has it, and PyTorch.
    SmallVector<NamedAttribute> attributes;
    if (kind->takesClasses)
      attributes.push_back(builder.getNamedAttr(
          "ignore_index", builder.getI64IntegerAttr(-100)));
    auto made = buildOp(builder, loc, kind->function, {x, target}, attributes);
    loss = succeeded(made) ? (*made)->getResult(0) : Value();
  } else {
    auto made = callFunction(builder, loc, kind->function, {x, target}, {});
    loss = succeeded(made) ? made->front() : Value();
  }
}
