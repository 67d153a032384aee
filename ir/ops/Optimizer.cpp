//===- Optimizer.cpp - parameter updates ----------------------------------===//
#include "ir/Ops.h"
#include "ir/ops/Composite.h"
#include "ir/reference/Generic.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::infer;

#define GET_OP_CLASSES
#include "ir/ops/Optimizer.cpp.inc"

void TandemDialect::addOptimizerOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/Optimizer.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Types and attributes
//===----------------------------------------------------------------------===//

/// The first `tensors` operands have the parameter's shape, the rest are
/// scalars; the results are the new values of the tensors but the gradient.
static LogicalResult inferUpdates(Loc loc, ValueRange operands,
                                  ArrayRef<StringRef> names, size_t tensors,
                                  Types &types) {
  auto shape = infer::shapeOf(loc, operands[0].getType());
  if (failed(shape))
    return failure();
  for (auto [i, name] : llvm::enumerate(names)) {
    Sizes expected = i < tensors ? *shape : Sizes();
    if (failed(expectShape(loc, name, operands[i].getType(), expected)))
      return failure();
    if (i < tensors && name != "grad")
      types.push_back(operands[i].getType());
  }
  return success();
}

LogicalResult SgdOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor adaptor,
                                      Types &types) {
  return inferUpdates(loc, adaptor.getOperands(), {"param", "grad", "lr"}, 2,
                      types);
}
LogicalResult MomentumOp::inferReturnTypes(MLIRContext *, Loc loc,
                                           Adaptor adaptor, Types &types) {
  return inferUpdates(loc, adaptor.getOperands(),
                      {"param", "grad", "velocity", "lr"}, 3, types);
}
LogicalResult AdamOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor adaptor,
                                       Types &types) {
  return inferUpdates(loc, adaptor.getOperands(),
                      {"param", "grad", "m", "v", "step", "lr"}, 4, types);
}
LogicalResult AdamWOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor adaptor,
                                        Types &types) {
  return inferUpdates(loc, adaptor.getOperands(),
                      {"param", "grad", "m", "v", "step", "lr"}, 4, types);
}

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

static double number(const APFloat &value) { return value.convertToDouble(); }

/// Each attribute of the op that has one of these names is finite and in
/// [0, high).
static LogicalResult
verifyNumbers(Operation *op, ArrayRef<std::pair<StringRef, double>> highs) {
  LogicalResult result = success();
  for (auto [name, high] : highs) {
    auto value = cast<FloatAttr>(*op->getInherentAttr(name));
    if (failed(composite::verifyNumber(op, name, value.getValueAsDouble(), 0,
                                       high)))
      result = failure();
  }
  return result;
}

LogicalResult SgdOp::verify() {
  return verifyNumbers(*this, {{"weight_decay", kInfinity}});
}
LogicalResult MomentumOp::verify() {
  if (failed(verifyNumbers(*this, {{"momentum", kInfinity},
                                   {"weight_decay", kInfinity},
                                   {"dampening", kInfinity}})))
    return failure();
  if (getNesterov() && (getMomentum().isZero() || !getDampening().isZero()))
    return emitOpError() << "expected 'nesterov' with a momentum above 0 and "
                            "without dampening";
  return success();
}
LogicalResult AdamOp::verify() {
  return verifyNumbers(*this, {{"beta1", 1},
                               {"beta2", 1},
                               {"epsilon", kInfinity},
                               {"weight_decay", kInfinity}});
}
LogicalResult AdamWOp::verify() {
  return verifyNumbers(*this, {{"beta1", 1},
                               {"beta2", 1},
                               {"epsilon", kInfinity},
                               {"weight_decay", kInfinity}});
}

//===----------------------------------------------------------------------===//
// Decompositions
//===----------------------------------------------------------------------===//

namespace {
/// Arithmetic in the compute type of one update.
struct Update {
  Update(OpBuilder &b, Operation *op)
      : b(b), op(op), type(composite::computeType(op->getOperand(0))),
        shape(cast<RankedTensorType>(op->getOperand(0).getType()).getShape()) {}

  Expr in(Value value) { return composite::in(b, op->getLoc(), value, type); }
  /// A scalar in f64.
  Expr exact(Value value) {
    return composite::in(b, op->getLoc(), value, b.getF64Type());
  }
  /// A scalar for every element of the parameter.
  Expr spread(const Expr &scalar) {
    return scalar.cast(type).broadcastTo(shape, {});
  }
  /// `value` as the new value of `old`.
  Value out(const Expr &value, Value old) {
    return value.cast(getElementTypeOrSelf(old));
  }

  OpBuilder &b;
  Operation *op;
  Type type;
  ArrayRef<int64_t> shape;
};
} // namespace

/// value + factor * other, which is value if factor is 0.
static Expr plusScaled(const Expr &value, double factor, const Expr &other) {
  return factor == 0 ? value : value + factor * other;
}

SmallVector<Value> SgdOp::decompose(OpBuilder &b) {
  Update u(b, *this);
  Expr param = u.in(getParam());
  Expr g = plusScaled(u.in(getGrad()), number(getWeightDecay()), param);
  return {u.out(param - u.spread(u.in(getLr())) * g, getParam())};
}

SmallVector<Value> MomentumOp::decompose(OpBuilder &b) {
  Update u(b, *this);
  double momentum = number(getMomentum()), kept = 1 - number(getDampening());
  Expr param = u.in(getParam());
  Expr g = plusScaled(u.in(getGrad()), number(getWeightDecay()), param);
  Expr velocity = momentum * u.in(getVelocity()) + (kept == 1 ? g : kept * g);
  Expr direction = getNesterov() ? g + momentum * velocity : velocity;
  return {u.out(param - u.spread(u.in(getLr())) * direction, getParam()),
          u.out(velocity, getVelocity())};
}

/// base^step for a step of at least 1. An exponential takes a third of the time
/// of a power, and each parameter has two of them.
static Expr powerOf(double base, const Expr &step) {
  return base == 0 ? step.like(0.0) : exp(step * std::log(base));
}

template <typename Op>
static SmallVector<Value> decomposeAdam(Op op, OpBuilder &b, bool decoupled) {
  Update u(b, op);
  double beta1 = number(op.getBeta1()), beta2 = number(op.getBeta2());
  double decay = number(op.getWeightDecay());
  Expr param = u.in(op.getParam()), g = u.in(op.getGrad());
  Expr m = u.in(op.getM()), v = u.in(op.getV());
  // In f32, 1 - beta2^step would lose four digits in the first steps.
  Expr step = u.exact(op.getStep()), lr = u.exact(op.getLr());
  Expr correction1 = 1.0 - powerOf(beta1, step);
  Expr correction2 = 1.0 - powerOf(beta2, step);

  if (!decoupled)
    g = plusScaled(g, decay, param);
  else if (decay != 0)
    param = param * u.spread(1.0 - lr * decay);
  m = m + (1 - beta1) * (g - m);
  v = beta2 * v + (1 - beta2) * (g * g);
  // One division an element: more of them take longer than memory does.
  Expr denominator =
      sqrt(v) * u.spread(1.0 / sqrt(correction2)) + number(op.getEpsilon());
  param = param - u.spread(lr / correction1) * (m / denominator);
  return {u.out(param, op.getParam()), u.out(m, op.getM()),
          u.out(v, op.getV())};
}

SmallVector<Value> AdamOp::decompose(OpBuilder &b) {
  return decomposeAdam(*this, b, /*decoupled=*/false);
}
SmallVector<Value> AdamWOp::decompose(OpBuilder &b) {
  return decomposeAdam(*this, b, /*decoupled=*/true);
}

//===----------------------------------------------------------------------===//
// Reference
//===----------------------------------------------------------------------===//

void SgdOp::evaluate(reference::Inputs in, reference::Outputs out) {
  double lr = (*in[2])[0], decay = number(getWeightDecay());
  for (int64_t i = 0; i < out[0].size(); ++i)
    out[0][i] = (*in[0])[i] - lr * ((*in[1])[i] + decay * (*in[0])[i]);
}

void MomentumOp::evaluate(reference::Inputs in, reference::Outputs out) {
  double lr = (*in[3])[0], decay = number(getWeightDecay());
  double momentum = number(getMomentum()), dampening = number(getDampening());
  for (int64_t i = 0; i < out[0].size(); ++i) {
    double g = (*in[1])[i] + decay * (*in[0])[i];
    double velocity = momentum * (*in[2])[i] + (1 - dampening) * g;
    out[0][i] =
        (*in[0])[i] - lr * (getNesterov() ? g + momentum * velocity : velocity);
    out[1][i] = velocity;
  }
}

template <typename Op>
static void evaluateAdam(Op op, reference::Inputs in, reference::Outputs out,
                         bool decoupled) {
  double step = (*in[4])[0], lr = (*in[5])[0];
  double beta1 = number(op.getBeta1()), beta2 = number(op.getBeta2());
  double decay = number(op.getWeightDecay());
  for (int64_t i = 0; i < out[0].size(); ++i) {
    double param = (*in[0])[i], g = (*in[1])[i];
    if (decoupled)
      param -= lr * decay * param;
    else
      g += decay * param;
    double m = beta1 * (*in[2])[i] + (1 - beta1) * g;
    double v = beta2 * (*in[3])[i] + (1 - beta2) * g * g;
    double unbiasedM = m / (1 - std::pow(beta1, step));
    double unbiasedV = v / (1 - std::pow(beta2, step));
    out[0][i] = param - lr * unbiasedM /
                            (std::sqrt(unbiasedV) + number(op.getEpsilon()));
    out[1][i] = m;
    out[2][i] = v;
  }
}

void AdamOp::evaluate(reference::Inputs in, reference::Outputs out) {
  evaluateAdam(*this, in, out, /*decoupled=*/false);
}
void AdamWOp::evaluate(reference::Inputs in, reference::Outputs out) {
  evaluateAdam(*this, in, out, /*decoupled=*/true);
}
