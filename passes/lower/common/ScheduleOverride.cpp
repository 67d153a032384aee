//===- ScheduleOverride.cpp - what a schedule says, as numbers ------------===//
#include "passes/lower/common/ScheduleOverride.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

ScheduleOverride ScheduleOverride::of(KernelOp kernel) {
  return of(kernel.getScheduleAttr());
}

ScheduleOverride ScheduleOverride::of(ScheduleAttr schedule) {
  ScheduleOverride said;
  if (schedule)
    for (const ScheduleEntry &entry : schedule.getEntries())
      said.set(entry.key, entry.value);
  return said;
}

std::optional<ScheduleMethod> ScheduleOverride::method() const {
  if (!has(ScheduleKey::Method))
    return std::nullopt;
  return symbolizeScheduleMethod(
      static_cast<uint32_t>((*this)[ScheduleKey::Method]));
}

ScheduleAttr ScheduleOverride::attribute(MLIRContext *context) const {
  SmallVector<ScheduleEntry> entries;
  for (const ScheduleKeyRow &row : scheduleKeys())
    if (has(row.key))
      entries.push_back({row.key, (*this)[row.key], /*isChosen=*/false});
  return entries.empty() ? ScheduleAttr() : ScheduleAttr::get(context, entries);
}
