//===- Models.h - the benchmark models, as traced programs ----------------===//
#ifndef TANDEM_TOOLS_BENCH_WORKLOADS_MODELS_H
#define TANDEM_TOOLS_BENCH_WORKLOADS_MODELS_H

#include "compiler/trace/Trace.h"
#include "tools/bench/workloads/Workloads.h"

#include <optional>

namespace tandem::workloads {

enum class Purpose {
  Training, ///< the labels are an input, the loss and the scores are outputs
  Inference ///< scores alone: what is deployed
};

/// Records the workload's model with floating-point elements of type `dtype`,
/// for batches of `rows` instead of the workload's; `isSmall` with few rows,
/// layers and columns, so that an emulated GPU runs it in a minute.
void trace(const Workload &workload, Trace &trace, DType dtype,
           Purpose purpose = Purpose::Training,
           std::optional<int64_t> rows = std::nullopt, bool isSmall = false);

} // namespace tandem::workloads

#endif
