//===- TandemModel.h - Tandem's contender of a case -----------------------===//
#ifndef TANDEM_TOOLS_BENCH_CPU_TANDEMMODEL_H
#define TANDEM_TOOLS_BENCH_CPU_TANDEMMODEL_H

#include "tools/bench/compile/CompileText.h"
#include "tools/bench/cpu/Case.h"

namespace tandem::bench {

/// Compiles a case's program as a user would for `target`.
Result<Artifact> compile(const Case &c, const std::string &target);

/// A contender that calls the program as a user would: through the runtime,
/// with tensors for all inputs and destinations for all outputs.
Result<Contender> tandemContender(const Case &c, const Artifact &artifact,
                                  const std::vector<Tensor> &inputs,
                                  const std::vector<Tensor> &outputs,
                                  int threads);

} // namespace tandem::bench

#endif
