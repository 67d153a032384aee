//===- OpsTraining.cpp - ONNX: optimizers of ai.onnx.preview.training
//------===//
//
// Optimizers as ONNX has them: a rate, a count of updates, then for n tensors n
// values, n gradients and n of each moment. Computed in the tensors' type.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/onnx/Translator.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

namespace {

/// One tensor and what belongs to it, and the rate and count in its shape.
struct Updated {
  Expr rate, count, x, gradient, first, second;
  Expr hasStarted; ///< the count is above 0
};

} // namespace

/// Calls `update` for each tensor; it returns its `kinds - 1` results: the new
/// value and moments.
template <typename Update>
static LogicalResult forEachTensor(Node &node, size_t kinds, Update update) {
  size_t operands = node.numOperands();
  if (operands < 2 + kinds || (operands - 2) % kinds)
    return node.error("expected a rate, a count, and " + Twine(kinds) +
                      " operands for each tensor, but got " + Twine(operands));
  for (size_t i = 0; i < operands; ++i)
    if (!node.type(i))
      return node.error("expected operand " + Twine(i) +
                        " to be a dense tensor");
  size_t n = (operands - 2) / kinds;
  for (size_t i = 0; i < n; ++i) {
    SmallVector<Expr> own;
    for (size_t kind = 0; kind < kinds; ++kind) {
      Expr value = node.expr(2 + kind * n + i);
      if (!value)
        return failure();
      own.push_back(value);
      if (!isa<FloatType>(value.type().getElementType()) ||
          value.type() != own[0].type())
        return node.error("expected the operands of a tensor to have its "
                          "floats and its shape");
    }
    Expr rate = node.expr(0), count = node.expr(1);
    if (!rate || !count)
      return failure();
    if (rate.type().getNumElements() != 1 || count.type().getNumElements() != 1)
      return node.error("expected a rate and a count of one number each");
    auto spread = [&](const Expr &value) {
      return value.reshape({})
          .cast(own[0].type().getElementType())
          .broadcastTo(own[0].shape(), {});
    };
    Updated tensor{spread(rate),
                   spread(count),
                   own[0],
                   own[1],
                   own[2],
                   kinds > 3 ? own[3] : own[2],
                   {}};
    tensor.hasStarted =
        compare(ComparePredicate::gt, tensor.count, tensor.count.like(0));
    SmallVector<Expr> made = update(tensor);
    for (auto [kind, result] : llvm::enumerate(made))
      node.result(kind * n + i, result.value);
  }
  return success();
}

static LogicalResult translateAdagrad(Node &node) {
  double decay = node.number("decay_factor", 0);
  double epsilon = node.number("epsilon", 1e-6f);
  double norm = node.number("norm_coefficient", 0);
  return forEachTensor(node, 3, [&](const Updated &t) -> SmallVector<Expr> {
    Expr rate = t.rate / (1.0 + t.count * decay);
    Expr gradient = t.x * norm + t.gradient;
    Expr squares = t.first + gradient * gradient;
    return {t.x - rate * gradient / (sqrt(squares) + epsilon), squares};
  });
}

static LogicalResult translateAdam(Node &node) {
  double alpha = node.number("alpha", 0.9f), beta = node.number("beta", 0.999f);
  double epsilon = node.number("epsilon", 1e-6f);
  double norm = node.number("norm_coefficient", 0);
  double after = node.number("norm_coefficient_post", 0);
  return forEachTensor(node, 4, [&](const Updated &t) -> SmallVector<Expr> {
    Expr gradient = t.x * norm + t.gradient;
    Expr mean = t.first * alpha + gradient * (1 - alpha);
    Expr squares = t.second * beta + gradient * gradient * (1 - beta);
    // Of a first step nothing is corrected; 0 / 0 would reach its gradient.
    Expr count = select(t.hasStarted, t.count, t.x.like(1));
    Expr corrected = t.rate * sqrt(1.0 - pow(t.x.like(beta), count)) /
                     (1.0 - pow(t.x.like(alpha), count));
    Expr rate = select(t.hasStarted, corrected, t.rate);
    Expr x = t.x - rate * mean / (sqrt(squares) + epsilon);
    return {x * (1 - after), mean, squares};
  });
}

static LogicalResult translateMomentum(Node &node) {
  double alpha = node.number("alpha", 0), beta = node.number("beta", 0);
  double norm = node.number("norm_coefficient", 0);
  bool isNesterov = node.choice("mode", {"standard", "nesterov"}) == "nesterov";
  return forEachTensor(node, 3, [&](const Updated &t) -> SmallVector<Expr> {
    Expr gradient = t.x * norm + t.gradient;
    Expr weight = select(t.hasStarted, t.x.like(beta), t.x.like(1));
    Expr momentum = t.first * alpha + weight * gradient;
    Expr step = isNesterov ? gradient + momentum * alpha : momentum;
    return {t.x - t.rate * step, momentum};
  });
}

void onnx::addTrainingOps(OpTable &table) {
  static constexpr StringRef domain = "ai.onnx.preview.training";
  table.add(domain, "Adagrad", translateAdagrad);
  table.add(domain, "Adam", translateAdam);
  table.add(domain, "Momentum", translateMomentum);
}
