//===- Check.h - compares a workload's numbers with expected ones ---------===//
#ifndef TANDEM_TOOLS_BENCH_WORKLOADS_CHECK_H
#define TANDEM_TOOLS_BENCH_WORKLOADS_CHECK_H

#include "runtime/Tensor.h"
#include "tools/bench/workloads/Workloads.h"

namespace tandem::workloads {

/// Returns batch `b` of one input of the workload.
Result<runtime::Tensor> makeBatch(const DataSpec &spec, int b);

/// Runs forward and backward once and three steps, prints what it compares, and
/// fails with Code::Differs where a number is off by more than 1e-4 relative.
Status check(const Workload &workload, const std::string &artifact,
             const std::string &expectedFolder, int threads);

} // namespace tandem::workloads

#endif
