//===- ScheduleSearch.cpp - which schedules of a kernel are worth trying --===//
#include "passes/lower/cpu/ScheduleSearch.h"
#include "passes/lower/common/Kernels.h"
#include "passes/lower/cpu/ExplainMethods.h"
#include "passes/lower/cpu/Methods.h"

#include "ir/ScheduleMethods.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

ScheduleSearch::ScheduleSearch(KernelOp kernel) : target(CpuModel::of(kernel)) {
  MethodLog log = considerMethods(kernel);
  if (log.rows.empty() || !log.chosen)
    return;
  chosen = symbolizeScheduleMethod(log.rows[*log.chosen].name);
  for (const MethodLog::Row &row : log.rows)
    if (row.fit.isPossible() && log.isTuned)
      tried.push_back(*symbolizeScheduleMethod(row.name));
  if (tried.size() < 2)
    tried.clear();
  auto add = [&](const auto &table) {
    for (const auto &row : table.rows)
      roundsOf[*symbolizeScheduleMethod(row.name)] = row.rounds;
  };
  if (isLoopKernel(kernel))
    add(loopMethods());
  else
    add(*methodsOf(findAnchor(kernel)->getName()));
}

size_t ScheduleSearch::rounds() const {
  if (!chosen)
    return 0;
  size_t most = roundsOf.at(*chosen).size();
  for (ScheduleMethod method : tried)
    most = std::max(most, roundsOf.at(method).size());
  return most || !tried.empty() ? 1 + most : 0;
}

SmallVector<ScheduleOverride>
ScheduleSearch::variants(size_t round, const ScheduleOverride &best) const {
  SmallVector<ScheduleOverride> list;
  if (round == 0) {
    for (ScheduleMethod method : tried) {
      list.push_back(best);
      list.back().setMethod(method);
    }
    return list;
  }
  if (!chosen)
    return list;
  auto at = roundsOf.find(best.method().value_or(*chosen));
  if (at == roundsOf.end() || round > at->second.size())
    return list;
  return at->second[round - 1](best, target);
}
