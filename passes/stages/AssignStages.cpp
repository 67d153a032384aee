//===- AssignStages.cpp - which op is of which stage ----------------------===//
//
// Without annotations: the cuts for which the largest of the stages' times is
// least, found by dynamic programming over positions. The time of a stage is
// that of its ops and of sending what it gives; what a backward takes is about
// twice that everywhere, and changes nothing.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/autodiff/Decompose.h"
#include "passes/common/EraseDeadOps.h"
#include "passes/stages/StageFlow.h"
#include "passes/target/Rates.h"

#include "ir/Ops.h"
#include "ir/Pipeline.h"
#include "ir/Sharding.h"

#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Regex.h"

namespace tandem {
#define GEN_PASS_DEF_ASSIGNSTAGES
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

static std::optional<int64_t> stageOf(Operation *op) {
  if (auto stage = op->getAttrOfType<IntegerAttr>(kStageAttr))
    return stage.getInt();
  return std::nullopt;
}

namespace {

class Assigner {
public:
  Assigner(func::FuncOp graph, Pipeline pipeline)
      : graph(graph), stages(static_cast<size_t>(pipeline.stages)),
        flow(graph) {}

  /// Sets `tandem.stage` of all ops.
  LogicalResult run();

private:
  LogicalResult follow();
  LogicalResult cut();
  /// What makes the loss; null if that is not known.
  Operation *lossOf();
  LogicalResult checkBound();
  LogicalResult checkPlan();
  std::vector<double> costs();
  /// The bytes that a stage that ends behind a position gives.
  std::vector<double> bytesBehind();

  func::FuncOp graph;
  size_t stages;
  StageFlow flow;
  /// For each position the stage of its op.
  std::vector<int64_t> chosen;
};

} // namespace

/// Of what the model says of some ops.
LogicalResult Assigner::follow() {
  int64_t current = 0;
  Operation *last = nullptr;
  for (Operation *op : flow.ops()) {
    if (auto stage = stageOf(op)) {
      if (*stage >= static_cast<int64_t>(stages))
        return op->emitError() << "expected one of " << stages
                               << " stages, but got stage " << *stage;
      if (*stage < current || *stage > current + 1) {
        auto error = op->emitError()
                     << "expected stage " << current << " or the next one, "
                     << "but got stage " << *stage
                     << ": stages are pieces of the graph in its order";
        if (last)
          error.attachNote(last->getLoc()) << "stage " << current << " is here";
        return error;
      }
      current = *stage;
      last = op;
    }
    chosen.push_back(current);
  }
  if (current + 1 == static_cast<int64_t>(stages))
    return success();
  return graph.emitError() << "expected ops of " << stages
                           << " stages, but the last one is of stage "
                           << current;
}

Operation *Assigner::lossOf() {
  auto module = graph->getParentOfType<ModuleOp>();
  auto named = module->getAttrOfType<StringAttr>(kLossAttr);
  auto index = findResult(graph, RoleKind::Output,
                          named ? named.getValue() : StringRef("loss"));
  return index ? graph.getBody()
                     .front()
                     .getTerminator()
                     ->getOperand(*index)
                     .getDefiningOp()
               : nullptr;
}

std::vector<double> Assigner::costs() {
  OwningOpRef<func::FuncOp> copy = graph.clone();
  Builder b(graph.getContext());
  // Ops that a composite becomes have its attributes.
  for (auto [i, op] :
       llvm::enumerate(copy->getBody().front().without_terminator()))
    op.setAttr(kStageAttr, b.getI64IntegerAttr(static_cast<int64_t>(i)));
  std::vector<double> seconds(flow.ops().size());
  if (failed(decomposeComposites(*copy)))
    return seconds;
  Rates rates = Rates::of(graph);
  for (Operation &op : copy->getBody().front().without_terminator())
    if (auto at = stageOf(&op); at && isa<CostOpInterface>(op))
      seconds[static_cast<size_t>(*at)] += rates.secondsAlone(&op);
  for (auto [i, op] : llvm::enumerate(flow.ops()))
    if (flow.isFloating(op))
      seconds[i] = 0;
  return seconds;
}

std::vector<double> Assigner::bytesBehind() {
  std::vector<double> bytes(flow.ops().size());
  for (const auto &[value, range] : flow.carried())
    for (unsigned at = range.first; at < range.last; ++at)
      bytes[at] += static_cast<double>(
          byteSize(cast<RankedTensorType>(value.getType())));
  return bytes;
}

LogicalResult Assigner::cut() {
  size_t count = flow.ops().size();
  std::vector<double> seconds = costs(), bytes = bytesBehind();
  Rates rates = Rates::of(graph);
  // Where a stage may end: behind an op of its own, and not between what
  // belongs together.
  std::vector<bool> mayEnd(count);
  for (auto [i, op] : llvm::enumerate(flow.ops()))
    mayEnd[i] = !flow.isFloating(op);
  for (const StageFlow::Bound &bound : flow.bound())
    for (unsigned at = bound.first; at < bound.last; ++at)
      mayEnd[at] = false;
  std::vector<size_t> ends = {0}; // positions behind an op
  std::vector<double> before = {0};
  double sum = 0;
  // The loss is the last stage's.
  size_t last = count;
  if (Operation *loss = lossOf())
    last = flow.positionOf(loss);
  for (size_t i = 0; i < count; ++i) {
    sum += seconds[i];
    if ((mayEnd[i] && i < last) || i + 1 == count) {
      ends.push_back(i + 1);
      before.push_back(sum);
    }
  }
  size_t places = ends.size();
  if (places <= stages)
    return graph.emitError()
           << "expected at least " << stages << " ops that can be in stages of "
           << "their own, but got " << places - 1;
  // best[s][e]: the least time of the slowest of s + 1 stages up to place e;
  // of equal ones that with the fewest bytes.
  struct Best {
    double slowest = HUGE_VAL, sent = HUGE_VAL;
    size_t from = 0;
  };
  std::vector<std::vector<Best>> best(stages, std::vector<Best>(places));
  for (size_t s = 0; s < stages; ++s)
    for (size_t e = s + 1; e < places; ++e) {
      double given = s + 1 < stages ? bytes[ends[e] - 1] : 0;
      for (size_t b = s; b < e; ++b) {
        if (s == 0 && b > 0)
          break;
        Best one = s ? best[s - 1][b] : Best{0, 0, 0};
        double time = before[e] - before[b] + given / rates.links;
        Best with = {std::max(one.slowest, time), one.sent + given, b};
        Best &old = best[s][e];
        if (std::pair(with.slowest, with.sent) <
            std::pair(old.slowest, old.sent))
          old = with;
      }
    }
  chosen.assign(count, static_cast<int64_t>(stages) - 1);
  size_t end = places - 1;
  for (size_t s = stages; s-- > 0;) {
    size_t from = best[s][end].from;
    for (size_t i = ends[from]; i < ends[end]; ++i)
      chosen[i] = static_cast<int64_t>(s);
    end = from;
  }
  return success();
}

/// What is overwritten is read in the stage that overwrites it.
LogicalResult Assigner::checkBound() {
  bool isWrong = false;
  for (const StageFlow::Bound &bound : flow.bound()) {
    if (chosen[bound.first] == chosen[bound.last])
      continue;
    isWrong = true;
    RoleAttr role = roleOfArgument(graph, bound.argument.getArgNumber());
    auto error = flow.ops()[bound.last]->emitError()
                 << "'" << role.str() << "' is overwritten, and used in stages "
                 << chosen[bound.first] << " and " << chosen[bound.last];
    error.attachNote(flow.ops()[bound.first]->getLoc())
        << "stage " << chosen[bound.first] << " is here";
  }
  return failure(isWrong);
}

/// A plan of shardings is of the whole model: a stage may have nothing that an
/// expression matches.
LogicalResult Assigner::checkPlan() {
  auto module = graph->getParentOfType<ModuleOp>();
  auto plan = module->getAttrOfType<DictionaryAttr>(kShardAttr);
  if (!plan)
    return success();
  SmallVector<StringRef> names;
  for (unsigned i = 0, n = graph.getNumArguments(); i < n; ++i)
    names.push_back(roleOfArgument(graph, i).getName());
  for (unsigned i = 0, n = graph.getNumResults(); i < n; ++i)
    names.push_back(roleOfResult(graph, i).getName());
  bool isWrong = false;
  for (NamedAttribute entry : plan) {
    llvm::Regex expression(("^(" + entry.getName().strref() + ")$").str());
    if (llvm::any_of(names,
                     [&](StringRef name) { return expression.match(name); }))
      continue;
    isWrong = true;
    module.emitError() << "no input, param, state or output has a name that '"
                       << entry.getName().strref()
                       << "' matches, as the plan of shardings asks";
  }
  return failure(isWrong);
}

LogicalResult Assigner::run() {
  bool isSaid = llvm::any_of(
      flow.ops(), [](Operation *op) { return op->hasAttr(kStageAttr); });
  if (failed(checkPlan()) || failed(isSaid ? follow() : cut()) ||
      failed(checkBound()))
    return failure();
  Builder b(graph.getContext());
  for (auto [op, stage] : llvm::zip_equal(flow.ops(), chosen))
    op->setAttr(kStageAttr, b.getI64IntegerAttr(stage));
  return success();
}

namespace {

struct AssignStages : tandem::impl::AssignStagesBase<AssignStages> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    auto pipeline = Pipeline::of(module);
    auto graph = module.lookupSymbol<func::FuncOp>("graph");
    if (!pipeline || pipeline->stage || !graph)
      return markAllAnalysesPreserved();
    // What nothing reads would have values sent to its stage.
    eraseDeadOps(graph);
    if (failed(Assigner(graph, *pipeline).run()))
      signalPassFailure();
  }
};

} // namespace
