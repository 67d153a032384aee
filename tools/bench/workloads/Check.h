//===- Check.h - compares a workload's numbers with expected ones ---------===//
#ifndef TANDEM_TOOLS_BENCH_WORKLOADS_CHECK_H
#define TANDEM_TOOLS_BENCH_WORKLOADS_CHECK_H

#include "runtime/model/Model.h"
#include "tools/bench/workloads/Workloads.h"
#include "tools/commands/Commands.h"

#include <optional>

namespace tandem::workloads {

/// Returns batch `b` of one input of the workload; floating-point ones have
/// type `dtype`.
Result<runtime::Tensor> makeBatch(const DataSpec &spec, int b, DType dtype);

/// Runs forward and backward once and three steps, prints what it compares, and
/// fails with Code::Differs where a number is off by more than `tolerance`
/// (relative; by default 1e-4 for an f32 model, 1e-6 for an f64 one, which is
/// compared with numbers that were computed in f64).
Status check(const Workload &workload, const std::string &artifact,
             const std::string &expectedFolder, std::optional<double> tolerance,
             const runtime::Options &options);

/// The command `check NAME X.tdm --expected=DIR`.
commands::Command checkCommand();

/// The workload `name`, or an error with the list of those there are.
Result<const Workload *> named(const std::string &name);

} // namespace tandem::workloads

#endif
