//===- CheckRandom.cpp - random numbers that would repeat -----------------===//
//
// What is drawn is a function of the state and of the draw's number
// (docs/rationale/random-numbers.md). So a state that no call advances, a loop
// that hands every iteration the same state, and two draws of one number repeat
// themselves, which no shape and no loss shows. Here they are errors.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"

#include "ir/Keys.h"
#include "ir/Ops.h"
#include "ir/Signature.h"
#include "ir/Where.h"
#include "ir/reference/Array.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tandem {
#define GEN_PASS_DEF_CHECKRANDOM
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

/// An op that draws, from which state, and its number.
struct Draw {
  Value state;
  int64_t number;
};

} // namespace

static std::optional<Draw> drawOf(Operation *op) {
  using Found = std::optional<Draw>;
  return TypeSwitch<Operation *, Found>(op)
      .Case<RandomBitsOp, RandomUniformOp, RandomNormalOp, BernoulliOp>(
          [](auto draw) -> Found {
            return Draw{draw.getState(), static_cast<int64_t>(draw.getDraw())};
          })
      .Case<DropoutOp>([](DropoutOp drop) -> Found {
        double p = drop.getP().convertToDouble();
        if (!drop.getTraining() || p == 0 || p == 1)
          return std::nullopt;
        return Draw{drop.getState(), static_cast<int64_t>(drop.getDraw())};
      })
      .Default([](Operation *) { return std::nullopt; });
}

/// A custom backward may draw what its forward drew, to make a mask again.
static bool isInCustomBackward(Operation *op) {
  for (Region *region = op->getParentRegion(); region;
       region = region->getParentRegion())
    if (auto custom = dyn_cast<CustomVjpOp>(region->getParentOp());
        custom && region == &custom.getBackward())
      return true;
  return false;
}

//===----------------------------------------------------------------------===//
// Where a state comes from
//===----------------------------------------------------------------------===//

/// Operand `index` of a loop's `carries` and then, after `between` others,
/// `constants`. `repeats` is set if each iteration sees the same.
static Value loopOperand(BlockArgument argument, ValueRange carries,
                         unsigned between, ValueRange constants, Block &body,
                         bool &repeats) {
  unsigned i = argument.getArgNumber(), n = carries.size();
  if (i < n) {
    Operation *end = body.getTerminator();
    repeats |= end->getOperand(i) == body.getArgument(i);
    return carries[i];
  }
  if (i < n + between)
    return {}; // a slice of its own for each iteration
  repeats = true;
  return constants[i - n - between];
}

/// The value around the op that has the region of `argument`, which it is
/// inside; null if there is none.
static Value outsideOf(BlockArgument argument, bool &repeats) {
  Operation *parent = argument.getOwner()->getParentOp();
  unsigned i = argument.getArgNumber();
  return TypeSwitch<Operation *, Value>(parent)
      .Case<CustomVjpOp>([&](CustomVjpOp custom) -> Value {
        return i < custom.getInputs().size() ? custom.getInputs()[i] : Value();
      })
      .Case<IfOp>([&](IfOp branch) { return branch.getInputs()[i]; })
      .Case<ScanOp>([&](ScanOp scan) {
        return loopOperand(argument, scan.getCarries(), scan.getInputs().size(),
                           scan.getConstants(), scan.getBody().front(),
                           repeats);
      })
      .Case<WhileOp>([&](WhileOp loop) {
        return loopOperand(argument, loop.getCarries(), 0, loop.getConstants(),
                           loop.getBody().front(), repeats);
      })
      .Default([](Operation *) { return Value(); });
}

/// The argument of the graph that `state` is; null if it is computed.
static BlockArgument argumentOf(Value state, bool &repeats) {
  while (auto argument = dyn_cast_or_null<BlockArgument>(state)) {
    if (isa<func::FuncOp>(argument.getOwner()->getParentOp()))
      return argument;
    state = outsideOf(argument, repeats);
  }
  return {};
}

/// `state` as it is called outside of custom forwards.
static Value outsideOfCustom(Value state) {
  bool repeats = false;
  while (auto argument = dyn_cast<BlockArgument>(state)) {
    Value outside = isa<CustomVjpOp>(argument.getOwner()->getParentOp())
                        ? outsideOf(argument, repeats)
                        : Value();
    if (!outside)
      break;
    state = outside;
  }
  return state;
}

//===----------------------------------------------------------------------===//
// What a state becomes
//===----------------------------------------------------------------------===//

/// What `value` is where `state` is `words`; nothing if it follows from more
/// than that.
static std::optional<reference::Array> valueAt(Value value, Value state,
                                               const reference::Array &words,
                                               int depth = 0) {
  if (value == state)
    return words;
  auto op = dyn_cast_or_null<ReferenceOpInterface>(value.getDefiningOp());
  constexpr int kDeepest = 16;
  if (!op || op->getNumRegions() || depth == kDeepest)
    return std::nullopt;
  SmallVector<reference::Array> in, out;
  for (Value operand : op->getOperands()) {
    auto array = isa<RankedTensorType>(operand.getType())
                     ? valueAt(operand, state, words, depth + 1)
                     : std::nullopt;
    if (!array)
      return std::nullopt;
    in.push_back(std::move(*array));
  }
  for (Type type : op->getResultTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || tensor.getNumElements() > 64)
      return std::nullopt;
    out.emplace_back(tensor);
  }
  SmallVector<const reference::Array *> operands;
  for (reference::Array &array : in)
    operands.push_back(&array);
  op.evaluate(operands, out);
  return std::move(out[cast<OpResult>(value).getResultNumber()]);
}

/// True if a call leaves some state as it is: the first one of a run with the
/// seed 0, or any other.
static bool stays(Value update, Value state) {
  for (auto [seed, offset] : {std::pair(0.0, 0.0), {12345.0, 7.0}}) {
    reference::Array words(ArrayRef<int64_t>{2});
    words[0] = seed;
    words[1] = offset;
    auto next = valueAt(update, state, words);
    if (next && (*next)[0] == seed && (*next)[1] == offset)
      return true;
  }
  return false;
}

static LogicalResult checkState(func::FuncOp graph, BlockArgument state,
                                Operation *draw) {
  RoleAttr role = roleOfArgument(graph, state.getArgNumber());
  if (!role || role.getKind() != RoleKind::State)
    return success();
  StringRef name = role.getName();
  auto init = role.getProperty<DictionaryAttr>(RoleAttr::kInit);
  if (auto kind = init ? init.getAs<StringAttr>(key::kKind) : StringAttr();
      kind && kind != "seed")
    draw->emitWarning() << "'" << draw->getName() << "' draws from the state '"
                        << name << "', which begins with the same numbers in "
                        << "every run, whatever --seed says; an initial value "
                           "of kind 'seed' follows it";
  auto result = findResult(graph, RoleKind::Update, name);
  if (result &&
      !stays(graph.getBody().front().getTerminator()->getOperand(*result),
             state))
    return success();
  return draw->emitError()
         << "'" << draw->getName() << "' draws from the state '" << name
         << "', which the program "
         << (result ? "writes and does not change" : "never writes")
         << ": every step would draw the same numbers; write '" << name
         << "' plus [0, 1] to it once";
}

namespace {

struct CheckRandom : tandem::impl::CheckRandomBase<CheckRandom> {
  using CheckRandomBase::CheckRandomBase;

  void runOnOperation() final {
    if (auto graph = getOperation().lookupSymbol<func::FuncOp>("graph"))
      if (failed(checkGraph(graph)))
        signalPassFailure();
  }

  LogicalResult checkGraph(func::FuncOp graph) {
    bool ok = true;
    DenseMap<std::pair<Value, int64_t>, Operation *> drawn;
    llvm::MapVector<BlockArgument, Operation *> states;
    graph.walk([&](Operation *op) {
      if (auto drop = dyn_cast<DropoutOp>(op); drop && !drop.getTraining())
        op->emitWarning() << "'" << op->getName()
                          << "' without 'training' drops nothing";
      auto draw = drawOf(op);
      if (!draw || isInCustomBackward(op))
        return;
      auto [it, isFirst] =
          drawn.try_emplace({outsideOfCustom(draw->state), draw->number}, op);
      if (!isFirst) {
        auto error = op->emitError()
                     << "'" << op->getName() << "' has draw " << draw->number
                     << ", as " << whereIs(it->second)
                     << " of the same state: both would draw the same numbers";
        error.attachNote(it->second->getLoc()) << "the other one is here";
        ok = false;
      }
      bool repeats = false;
      BlockArgument state = argumentOf(draw->state, repeats);
      if (repeats) {
        op->emitError() << "'" << op->getName()
                        << "' draws the same numbers in each iteration: carry "
                           "the state, and add [0, 1] to it in the loop";
        ok = false;
      }
      if (state)
        states.try_emplace(state, op);
    });
    for (auto [state, draw] : states)
      ok &= succeeded(checkState(graph, state, draw));
    return success(ok);
  }
};

} // namespace
