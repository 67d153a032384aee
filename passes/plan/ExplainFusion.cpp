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

ExplainedFusion::Answer ExplainedFusion::between(Operation *a,
                                                 Operation *b) const {
  const Units &units = *impl->units;
  if (units.isRepeated(a) || units.isRepeated(b))
    return {Outcome::Repeated, {}};
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
