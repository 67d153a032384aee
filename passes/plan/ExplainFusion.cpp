//===- ExplainFusion.cpp - why two ops are in one kernel or not -----------===//
#include "passes/plan/ExplainFusion.h"
#include "passes/plan/Units.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tandem;

struct ExplainedFusion::Impl {
  explicit Impl(RunConditions found) : conditions(std::move(found)) {}
  RunConditions conditions;
  FusionLog log;
  std::optional<Units> units;
};

ExplainedFusion::ExplainedFusion(std::unique_ptr<Impl> impl)
    : impl(std::move(impl)) {}
ExplainedFusion::ExplainedFusion(ExplainedFusion &&) = default;
ExplainedFusion::~ExplainedFusion() = default;

FailureOr<ExplainedFusion> ExplainedFusion::of(func::FuncOp func) {
  FailureOr<RunConditions> conditions = RunConditions::of(func);
  if (failed(conditions))
    return failure();
  auto impl = std::make_unique<Impl>(std::move(*conditions));
  impl->units.emplace(func, impl->conditions, &impl->log);
  fuse(*impl->units);
  return ExplainedFusion(std::move(impl));
}

/// The kernels that have `op`: its own, or, if it has none, those whose ops use
/// it, also through others that have none.
static llvm::SmallDenseSet<unsigned> kernelsWith(const Units &units,
                                                 Operation *op) {
  llvm::SmallDenseSet<unsigned> kernels;
  llvm::SmallPtrSet<Operation *, 8> seen;
  SmallVector<Operation *> work = {op};
  while (!work.empty()) {
    Operation *next = work.pop_back_val();
    if (!units.isRepeated(next)) {
      kernels.insert(units.unit(next));
      continue;
    }
    for (Operation *user : next->getUsers())
      if (!user->hasTrait<OpTrait::IsTerminator>() && seen.insert(user).second)
        work.push_back(user);
  }
  return kernels;
}

ExplainedFusion::Answer ExplainedFusion::between(Operation *a,
                                                 Operation *b) const {
  const Units &units = *impl->units;
  if (units.isRepeated(a) || units.isRepeated(b)) {
    auto ofA = kernelsWith(units, a), ofB = kernelsWith(units, b);
    bool meet = llvm::any_of(ofA, [&](unsigned x) { return ofB.contains(x); });
    return {meet ? Outcome::One : Outcome::Repeated, {}};
  }
  if (units.unit(a) == units.unit(b))
    return {Outcome::One, {}};
  for (const FusionLog::Refusal &one : llvm::reverse(impl->log.refusals))
    for (int side : {0, 1})
      if (llvm::is_contained(one.ops[side], a) &&
          llvm::is_contained(one.ops[1 - side], b))
        return {Outcome::Refused, one.why};
  return {Outcome::NotTried, {}};
}

std::vector<ExplainedFusion::Refused> ExplainedFusion::refused() const {
  const Units &units = *impl->units;
  llvm::MapVector<std::pair<unsigned, unsigned>, Refused> last;
  auto isIn = [&](Operation *op) { return !units.isRepeated(op); };
  for (const FusionLog::Refusal &one : impl->log.refusals) {
    auto a = llvm::find_if(one.ops[0], isIn),
         b = llvm::find_if(one.ops[1], isIn);
    if (a == one.ops[0].end() || b == one.ops[1].end())
      continue;
    unsigned of[] = {units.unit(*a), units.unit(*b)};
    if (of[0] != of[1])
      last[{std::min(of[0], of[1]), std::max(of[0], of[1])}] = {*a, *b,
                                                                one.why};
  }
  std::vector<Refused> all;
  for (const auto &[pair, refused] : last)
    all.push_back(refused);
  return all;
}
