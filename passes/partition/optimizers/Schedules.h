//===- Schedules.h - the rate as a function of the number of updates ------===//
//
// A table as that of optimizers (Optimizers.h). The rate is computed in the
// update, from the state OPT.lr, which stays the rate that the schedule is of
// and which programs can set, and from the number of updates that were made:
// one that is skipped does not count.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PARTITION_OPTIMIZERS_SCHEDULES_H
#define TANDEM_PASSES_PARTITION_OPTIMIZERS_SCHEDULES_H

#include "passes/partition/optimizers/Optimizers.h"

#include "ir/Expr.h"

#include "llvm/ADT/StringMap.h"

#include <string>
#include <utility>
#include <vector>

namespace tandem {

struct ScheduleSpec;

struct ScheduleKind {
  llvm::StringLiteral name;
  llvm::ArrayRef<OptimizerOption> options;
  /// It can have a warm-up before it: the options `warmup` and `from`.
  bool warmsUp;
  /// The rate for `rate` and the number `count` of updates before this one;
  /// both are scalars of f64. After the warm-up, whose updates are in `count`.
  Expr (*at)(const ScheduleSpec &spec, const Expr &rate, const Expr &count);
  llvm::StringLiteral meaning;
  llvm::StringLiteral source;
};

/// Returns all schedules.
llvm::ArrayRef<ScheduleKind> scheduleKinds();
/// Returns the options of the warm-up.
llvm::ArrayRef<OptimizerOption> warmupOptions();

/// A schedule and a value for each of its options.
struct ScheduleSpec {
  const ScheduleKind *kind = nullptr;
  llvm::StringMap<double> values;
  /// Of a table: updates, which rise, and what the rate is of `lr` there.
  std::vector<std::pair<double, double>> points;

  double option(llvm::StringRef name) const { return values.lookup(name); }
  /// The rate of the update after `count` others.
  Expr rate(const Expr &base, const Expr &count) const;
};

/// Parses `NAME`, `NAME:KEY=VALUE,...` or `table:UPDATES=PART,...`. Otherwise
/// returns nothing, and `error` says everything that is wrong.
std::optional<ScheduleSpec> parseScheduleSpec(llvm::StringRef text,
                                              std::string &error);

} // namespace tandem

#endif
