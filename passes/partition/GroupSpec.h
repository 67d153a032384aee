//===- GroupSpec.h - ".*bias|.*norm.*:weight_decay=0" ---------------------===//
#ifndef TANDEM_PASSES_PARTITION_GROUPSPEC_H
#define TANDEM_PASSES_PARTITION_GROUPSPEC_H

#include "passes/partition/OptimizerSpec.h"
#include "passes/partition/optimizers/Schedules.h"

namespace tandem {

/// What an optimizer does otherwise for some params.
struct GroupSpec {
  std::string pattern; ///< an expression that matches a whole name
  OptimizerSpec spec;  ///< the optimizer's, with the group's own numbers
  std::vector<std::string> own; ///< the options that it says
  bool hasRate = false;
  std::optional<ScheduleSpec> schedule; ///< nothing: the optimizer's

  bool matches(llvm::StringRef param) const;
};

/// Parses `REGEX:KEY=VALUE,...`, where keys are the optimizer's options and, as
/// the last one, `lr_schedule`, whose value goes to the end. The expression
/// ends at the first colon that is followed by `KEY=`. Otherwise returns
/// nothing, and `error` says everything that is wrong.
std::optional<GroupSpec> parseGroupSpec(llvm::StringRef text,
                                        const OptimizerSpec &optimizer,
                                        std::string &error);

} // namespace tandem

#endif
