//===- Mixup.cpp - rows mixed with others of their batch ------------------===//
#include "compiler/Mixup.h"
#include "compiler/PassSteps.h"
#include "compiler/functions/Call.h"
#include "compiler/functions/IsTraining.h"
#include "ir/Dialect.h"
#include "ir/Keys.h"
#include "ir/Nearest.h"
#include "ir/Ops.h"
#include "ir/Signature.h"
#include "ir/ops/Composite.h"
#include "ir/ops/Inference.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace tandem;

Result<MixupSpec> tandem::parseMixupSpec(const std::string &text) {
  auto [names, option] = StringRef(text).rsplit(':');
  auto [input, labels] = names.split(',');
  MixupSpec spec{input.str(), labels.str()};
  if (names.size() == text.size() || input.empty() || labels.empty() ||
      labels.contains(',') || !option.consume_front("alpha="))
    return Status::usage("expected INPUT,LABELS:alpha=N, but got '" + text +
                         "'");
  if (option.find_first_not_of("0123456789.eE+-") != StringRef::npos ||
      option.getAsDouble(spec.alpha) ||
      !(spec.alpha >= 0.01 && spec.alpha <= 1000))
    return Status::usage("expected alpha to be from 0.01 to 1000, but got '" +
                         option.str() + "'");
  return spec;
}

//===----------------------------------------------------------------------===//
// Beta's quantiles
//===----------------------------------------------------------------------===//

/// The continued fraction of the incomplete beta function for a = b, by
/// Lentz's method (Press et al., "Numerical recipes", 6.4).
static double betaFraction(double a, double x) {
  constexpr double tiny = 1e-300;
  auto kept = [](double v) { return std::abs(v) < tiny ? tiny : v; };
  double c = 1, d = 1 / kept(1 - 2 * a * x / (a + 1)), result = d;
  for (int m = 1; m < 10000; ++m) {
    double even = m * (a - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / kept(1 + even * d);
    c = kept(1 + even / c);
    result *= d * c;
    double odd = -(a + m) * (2 * a + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / kept(1 + odd * d);
    c = kept(1 + odd / c);
    result *= d * c;
    if (std::abs(d * c - 1) < 1e-15)
      break;
  }
  return result;
}

/// The part of Beta(a, a) below x, of x up to 1/2.
static double betaBelow(double a, double x) {
  if (x <= 0)
    return 0;
  double front = std::lgamma(2 * a) - 2 * std::lgamma(a) + a * std::log(x) +
                 a * std::log1p(-x);
  return std::exp(front) * betaFraction(a, x) / a;
}

std::vector<double> tandem::betaQuantiles(double alpha, int n) {
  std::vector<double> quantiles(n + 1);
  for (int i = 1; 2 * i < n; ++i) {
    // As a power of two: quantiles of a small alpha are tiny.
    double low = -1070, high = -1;
    for (int step = 0; step < 100; ++step) {
      double middle = (low + high) / 2;
      bool isBelow = betaBelow(alpha, std::exp2(middle)) < double(i) / n;
      (isBelow ? low : high) = middle;
    }
    quantiles[i] = std::exp2(high);
  }
  if (n % 2 == 0)
    quantiles[n / 2] = 0.5;
  for (int i = 0; 2 * i < n; ++i)
    quantiles[n - i] = 1 - quantiles[i];
  return quantiles;
}

//===----------------------------------------------------------------------===//
// The graph
//===----------------------------------------------------------------------===//

namespace {

class Mixer {
public:
  Mixer(func::FuncOp graph, MixupSpec spec, std::string loss)
      : graph(graph), spec(std::move(spec)), lossName(std::move(loss)),
        builder(graph.getContext()), loc(graph.getArgument(0).getLoc()),
        call(builder, loc, "mixup", {}, {}) {}

  Status run();

private:
  Block &block() { return graph.getBody().front(); }
  /// The input's tensor; null, and `status` says why, if it has no rows.
  Value rowsOf(const std::string &name, Status &status);
  /// The value of the loss, and the operand of the terminator that it is.
  Status findLoss();
  /// The ops between the labels and the loss, in their order.
  Status findReaders();
  Status findState();
  Expr drawPart();

  func::FuncOp graph;
  MixupSpec spec;
  std::string lossName;
  OpBuilder builder;
  Location loc;
  Call call;
  Value input, labels;
  OpOperand *loss = nullptr;
  SmallVector<Operation *> readers;
  Value state;      ///< what the state of random numbers is in this step
  int64_t draw = 0; ///< a number that no other op draws
};

} // namespace

Value Mixer::rowsOf(const std::string &name, Status &status) {
  SmallVector<StringRef> known;
  for (BlockArgument argument : graph.getArguments()) {
    RoleAttr role = roleOfArgument(graph, argument.getArgNumber());
    if (!role || role.getKind() != RoleKind::Input)
      continue;
    known.push_back(role.getName().getValue());
    if (role.getName() != name)
      continue;
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (type && type.getRank() > 0)
      return argument;
    status = Status::usage("expected '" + name +
                           "' to be a tensor of rows that the program does "
                           "not write");
    return {};
  }
  status = Status::usage("the model has no input '" + name + "'" +
                         didYouMean(name, known) + "; its inputs are '" +
                         llvm::join(known, "', '") + "'");
  return {};
}

Status Mixer::findLoss() {
  for (unsigned i = 0, n = graph.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(graph, i);
    if (!role || role.getKind() != RoleKind::Output ||
        role.getName() != lossName)
      continue;
    loss = &block().getTerminator()->getOpOperand(i);
    auto type = dyn_cast<RankedTensorType>(loss->get().getType());
    if (type && type.getRank() == 0 && isa<FloatType>(type.getElementType()))
      return Status::success();
    return Status::unsupported("'" + lossName +
                               "' is no number, or is written "
                               "by the program");
  }
  return Status::usage("the model has no loss '" + lossName + "'");
}

Status Mixer::findReaders() {
  llvm::SetVector<Operation *> after, before;
  auto add = [&](llvm::SetVector<Operation *> &list, Operation *op) {
    if (Operation *own = op ? block().findAncestorOpInBlock(*op) : nullptr)
      list.insert(own);
  };
  for (Operation *user : labels.getUsers())
    add(after, user);
  for (size_t i = 0; i < after.size(); ++i)
    for (Operation *user : after[i]->getUsers())
      add(after, user);
  add(before, loss->get().getDefiningOp());
  for (size_t i = 0; i < before.size(); ++i)
    before[i]->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        add(before, operand.getDefiningOp());
    });
  for (Operation &op : block())
    if (after.contains(&op) && before.contains(&op)) {
      if (!isMemoryEffectFree(&op))
        return Status::unsupported("'" + op.getName().getStringRef().str() +
                                   "' between '" + spec.labels + "' and '" +
                                   lossName + "' reads or writes storage");
      readers.push_back(&op);
    }
  return readers.empty()
             ? Status::usage("'" + lossName + "' does not follow from '" +
                             spec.labels + "'")
             : Status::success();
}

Status Mixer::findState() {
  bool isComputed = false;
  Type words = RankedTensorType::get({2}, builder.getI64Type());
  graph.walk([&](Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case<RandomBitsOp, RandomUniformOp, RandomNormalOp, BernoulliOp,
              DropoutOp>([&](auto other) {
          draw = std::max(draw, static_cast<int64_t>(other.getDraw()) + 1);
        })
        .Case<PhiloxOp>([&](PhiloxOp philox) {
          std::optional<int64_t> number = philox.getDrawNumber();
          isComputed |= !number;
          draw = std::max(draw, number.value_or(0) + 1);
        });
  });
  if (isComputed)
    return Status::unsupported("the number of a draw of the model is computed, "
                               "so that no other can be told from it");
  auto found = findArgument(graph, RoleKind::State, "random");
  if (!found && findValue(graph, "random"))
    return Status::usage("the model has another value 'random', which is the "
                         "name of the state of random numbers");
  if (found) {
    BlockArgument random = graph.getArgument(*found);
    auto type = dyn_cast<RefType>(random.getType());
    if (!type || type.getTensorType() != words)
      return Status::unsupported("the state 'random' is not one that the "
                                 "program advances");
    state = ReadOp::create(builder, loc, random);
    return Status::success();
  }
  unsigned index = graph.getNumArguments();
  auto type = RefType::get(graph.getContext(), {2}, builder.getI64Type());
  (void)graph.insertArgument(index, type, {}, loc);
  auto seed = builder.getDictionaryAttr(
      builder.getNamedAttr(key::kKind, builder.getStringAttr("seed")));
  setRoleOfArgument(graph, index,
                    RoleAttr::get(graph.getContext(), RoleKind::State, "random")
                        .with(RoleAttr::kInit, seed));
  Value random = graph.getArgument(index);
  state = ReadOp::create(builder, loc, random);
  // Its offset grows by one a step: [seed, offset] + [0, 1].
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(block().getTerminator());
  Expr next =
      call.at(state) + call.integersOf(builder.getI64Type(), {2}, {0, 1});
  WriteOp::create(builder, loc, next, random);
  return Status::success();
}

/// The inverse of Beta's distribution at a uniform number, between the nearest
/// two of 257 quantiles: sum of t[i] max(0, 1 - |256 u - i|). 1 where the
/// program does not train.
Expr Mixer::drawPart() {
  constexpr int pieces = 256;
  Type f32 = builder.getF32Type();
  Expr u = call.op("random_uniform", state, {call.integerAttr("draw", draw)},
                   RankedTensorType::get({}, f32));
  std::vector<double> quantiles = betaQuantiles(spec.alpha, pieces);
  Expr t = call.numbersOf(f32, {pieces + 1}, quantiles);
  Expr i = composite::iota(t, f32, t.shape(), 0);
  Expr weight = 1.0 - abs((u * double(pieces)).broadcastTo(t.shape(), {}) - i);
  Expr part = (t * maximum(weight, weight.like(0))).reduceSum({0});
  return select(isTraining(builder, loc), part, part.like(1));
}

Status Mixer::run() {
  Status status;
  builder.setInsertionPointToStart(&block());
  if (!(input = rowsOf(spec.input, status)) ||
      !(labels = rowsOf(spec.labels, status)))
    return status;
  auto type = cast<RankedTensorType>(input.getType());
  auto labelType = cast<RankedTensorType>(labels.getType());
  if (!isa<FloatType>(type.getElementType()) ||
      type.getDimSize(0) != labelType.getDimSize(0))
    return Status::usage("expected '" + spec.input +
                         "' to have floating-point elements and as many rows "
                         "as '" +
                         spec.labels + "', but got " +
                         infer::text(type.getShape()) + " and " +
                         infer::text(labelType.getShape()));
  if (status = findLoss(); !status)
    return status;
  if (status = findReaders(); !status)
    return status;
  if (status = findState(); !status)
    return status;
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : input.getUses())
    uses.push_back(&use);
  Expr part = drawPart(), trains = isTraining(builder, loc);
  auto mixed = [&](const Expr &own, const Expr &other) {
    Type element = own.type().getElementType();
    Expr m = part.cast(element).broadcastTo(own.shape(), {});
    // Where it evaluates it is `own`, whatever `other` is.
    return select(trains.broadcastTo(own.shape(), {}),
                  m * own + (1.0 - m) * other, own);
  };
  Expr x = call.at(input);
  x = mixed(x, x.reverse({0}));
  for (OpOperand *use : uses)
    use->set(x);
  IRMapping copies;
  copies.map(labels, call.at(labels).reverse({0}).value);
  builder.setInsertionPoint(block().getTerminator());
  for (Operation *op : readers)
    builder.clone(*op, copies);
  Expr own = call.at(loss->get());
  loss->set(mixed(own, call.at(copies.lookup(loss->get()))));
  return Status::success();
}

Status tandem::mixRows(ModuleOp module, const std::string &text,
                       const std::string &loss) {
  if (text.empty())
    return Status::success();
  auto spec = parseMixupSpec(text);
  auto graph = module.lookupSymbol<func::FuncOp>("graph");
  if (spec && (!graph || phaseReached(module) > 1))
    return Status::usage("--mixup has no effect on a module that is past "
                         "'capture'; this one is at " +
                         placeOf(module));
  Status status = spec.status();
  if (spec && graph.getNumArguments())
    status = Mixer(graph, *spec, loss).run();
  return status ? status : std::move(status).in("--mixup");
}
