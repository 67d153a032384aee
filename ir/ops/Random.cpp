//===- Random.cpp - random numbers and dropout ----------------------------===//
#include "ir/Ops.h"
#include "ir/ops/Composite.h"
#include "ir/ops/Philox.h"
#include "ir/ops/Scalar.h"
#include "ir/reference/Generic.h"

#include <cmath>

using namespace mlir;
using namespace tandem;

#define GET_OP_CLASSES
#include "ir/ops/Random.cpp.inc"

void TandemDialect::addRandomOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/Random.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// philox
//===----------------------------------------------------------------------===//

/// Integer ops for a block: in each round two products of 32 by 32 bits to 64,
/// four exclusive ors and two sums; and the choice of a word.
static constexpr int64_t kOpsOfABlock = random::kRounds * 8 + 10;

static LogicalResult verifyDraw(Operation *op, int64_t draw, int64_t draws) {
  if (draw >= 0 && draw < draws)
    return success();
  return op->emitOpError() << "expected 'draw' to be in [0, " << draws
                           << "), but got " << draw;
}

std::optional<int64_t> PhiloxOp::getDrawNumber() {
  auto constant = getDraw().getDefiningOp<ConstantOp>();
  if (!constant)
    return std::nullopt;
  auto number = dyn_cast_or_null<IntegerAttr>(constant.getSplat());
  return number ? std::optional(number.getInt()) : std::nullopt;
}

LogicalResult PhiloxOp::verify() {
  return verifyDraw(*this, getDrawNumber().value_or(0), random::kDraws);
}

int64_t PhiloxOp::getFlops() {
  return kOpsOfABlock * getY().getType().getNumElements();
}

Value PhiloxOp::emitScalar(OpBuilder &b, Location loc, ValueRange x) {
  return scalar::philox(b, loc, x[0], x[1], x[2], x[3],
                        getY().getType().getElementType());
}

/// The number of a type at a position.
static double numberAt(Type element, int64_t seed, int64_t offset,
                       int64_t position, int64_t draw) {
  if (element.isInteger(32))
    return static_cast<int32_t>(random::bits(seed, offset, position, draw));
  return random::uniform(seed, offset, position, draw,
                         random::digitsOf(element));
}

/// An integer that the reference holds as a double.
static int64_t toInteger(double x) {
  return x < 0x1p63 ? static_cast<int64_t>(x) : INT64_MAX;
}

double PhiloxOp::referenceScalar(ArrayRef<double> x) {
  return numberAt(getY().getType().getElementType(), toInteger(x[0]),
                  toInteger(x[1]), toInteger(x[2]), toInteger(x[3]));
}

//===----------------------------------------------------------------------===//
// Numbers under a state
//===----------------------------------------------------------------------===//

LogicalResult RandomBitsOp::verify() {
  return verifyDraw(*this, getDraw(), random::kDraws);
}
LogicalResult RandomUniformOp::verify() {
  return verifyDraw(*this, getDraw(), random::kDraws);
}
LogicalResult RandomNormalOp::verify() {
  return verifyDraw(*this, getDraw(), random::kSecondDraw);
}

/// The numbers of a draw at all positions of `shape`.
static Expr draw(OpBuilder &b, Location loc, Value state,
                 ArrayRef<int64_t> shape, Type element, int64_t draw) {
  auto word = [&](int64_t i) {
    Value one = SliceOp::create(b, loc, state, ArrayRef<int64_t>{i},
                                ArrayRef<int64_t>{i + 1}, ArrayRef<int64_t>{1});
    return Expr(b, loc, one).reshape({}).broadcastTo(shape, {});
  };
  Expr seed = word(0), offset = word(1);
  int64_t n = seed.type().getNumElements();
  Expr position = composite::iota(seed, b.getI64Type(), {n}, 0).reshape(shape);
  return seed.wrap(PhiloxOp::create(
      b, loc, RankedTensorType::get(shape, element), seed, offset, position,
      ConstantOp::splat(b, loc, seed.type(), static_cast<double>(draw))));
}

template <typename Op> static Expr draw(OpBuilder &b, Op op) {
  RankedTensorType type = op.getY().getType();
  return draw(b, op.getLoc(), op.getState(), type.getShape(),
              type.getElementType(), op.getDraw());
}

SmallVector<Value> RandomBitsOp::decompose(OpBuilder &b) {
  return {draw(b, *this)};
}

SmallVector<Value> RandomUniformOp::decompose(OpBuilder &b) {
  return {draw(b, *this)};
}

SmallVector<Value> RandomNormalOp::decompose(OpBuilder &b) {
  RankedTensorType type = getY().getType();
  Type wide = composite::computeType(getY());
  auto uniform = [&](int64_t number) {
    return draw(b, getLoc(), getState(), type.getShape(), wide, number);
  };
  Expr u = uniform(getDraw()), v = uniform(getDraw() + random::kSecondDraw);
  Expr y = sqrt(-2.0 * log(1.0 - u)) * cos(2 * M_PI * v);
  return {y.cast(type.getElementType())};
}

/// Fills `out` with what `number` makes of each position.
template <typename Op, typename Number>
static void fill(Op op, const reference::Array &state, reference::Array &out,
                 Number number) {
  int64_t seed = toInteger(state[0]), offset = toInteger(state[1]);
  for (int64_t i = 0; i < out.size(); ++i)
    out[i] = number([&](Type element, int64_t draw) {
      return numberAt(element, seed, offset, i, draw);
    });
}

template <typename Op>
static void evaluateDraw(Op op, reference::Inputs in, reference::Outputs out) {
  Type element = op.getY().getType().getElementType();
  fill(op, *in[0], out[0],
       [&](auto number) { return number(element, op.getDraw()); });
}

void RandomBitsOp::evaluate(reference::Inputs in, reference::Outputs out) {
  evaluateDraw(*this, in, out);
}

void RandomUniformOp::evaluate(reference::Inputs in, reference::Outputs out) {
  evaluateDraw(*this, in, out);
}

void RandomNormalOp::evaluate(reference::Inputs in, reference::Outputs out) {
  Type wide = composite::computeType(getY());
  fill(*this, *in[0], out[0], [&](auto number) {
    double u = number(wide, getDraw());
    double v = number(wide, getDraw() + random::kSecondDraw);
    return std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * M_PI * v);
  });
}

//===----------------------------------------------------------------------===//
// bernoulli, dropout
//===----------------------------------------------------------------------===//

template <typename Op> static LogicalResult verifyChoice(Op op) {
  double p = op.getP().convertToDouble();
  if (!(p >= 0 && p <= 1))
    return op.emitOpError() << "expected 'p' to be in [0, 1], but got " << p;
  return verifyDraw(op, op.getDraw(), random::kDraws);
}

LogicalResult BernoulliOp::verify() { return verifyChoice(*this); }
LogicalResult DropoutOp::verify() { return verifyChoice(*this); }

/// True with the probability of the op's `p`.
template <typename Op> static Expr choice(OpBuilder &b, Op op) {
  Expr u = draw(b, op.getLoc(), op.getState(), op.getY().getType().getShape(),
                b.getF32Type(), op.getDraw());
  return compare(ComparePredicate::lt, u, u.like(op.getP().convertToDouble()));
}

/// The same of the numbers of the reference. The probability is that of f32,
/// so that both choose alike.
template <typename Op, typename Number>
static bool choose(Op op, Number number) {
  Type type = Float32Type::get(op.getContext());
  return number(type, op.getDraw()) <
         static_cast<float>(op.getP().convertToDouble());
}

SmallVector<Value> BernoulliOp::decompose(OpBuilder &b) {
  return {choice(b, *this)};
}

void BernoulliOp::evaluate(reference::Inputs in, reference::Outputs out) {
  fill(*this, *in[0], out[0],
       [&](auto number) { return choose(*this, number); });
}

void DropoutOp::setInference() { setTraining(false); }

SmallVector<Value> DropoutOp::decompose(OpBuilder &b) {
  double p = getP().convertToDouble();
  if (!getTraining() || p == 0)
    return {getX()};
  Expr x = composite::in(b, getLoc(), getX(), composite::computeType(getX()));
  Expr zero = x.like(0.0), y;
  if (p == 1) {
    // Nothing is left to scale, and 1 / (1 - p) is no number.
    auto type = RankedTensorType::get(x.shape(), b.getI1Type());
    y = select(x.wrap(ConstantOp::splat(b, getLoc(), type, 0)), x, zero);
  } else {
    y = select(choice(b, *this), zero, x * (1 / (1 - p)));
  }
  return {y.cast(getY().getType().getElementType())};
}

void DropoutOp::evaluate(reference::Inputs in, reference::Outputs out) {
  double p = getP().convertToDouble();
  int64_t i = 0;
  fill(*this, *in[1], out[0], [&](auto number) {
    double x = (*in[0])[i++];
    if (!getTraining())
      return x;
    return choose(*this, number) ? 0 : x / (1 - p);
  });
}
