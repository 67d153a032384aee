//===- BatchRun.h - a batch by programs 'forward' and 'backward' ----------===//
//
// What a step does not give, its outputs and gradients, by the programs that it
// was made of. Nothing is learned from it: what they write is put back.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_BATCHRUN_H
#define TANDEM_TOOLS_COMMANDS_BATCHRUN_H

#include "tools/commands/Inputs.h"

#include <span>
#include <string_view>
#include <vector>

namespace tandem::commands {

/// The parameters and states that some programs write, on the host.
class KeptVariables {
public:
  static Result<KeptVariables> of(const runtime::Model &model,
                                  std::span<const std::string_view> programs);
  Status putBack(runtime::Model &model) const;

private:
  std::vector<NamedTensor> values_;
};

/// The places are those of the programs' results; others are undefined.
struct BatchResults {
  const artifact::Program *forward = nullptr, *backward = nullptr;
  std::vector<runtime::Tensor> outputs, gradients;
};

/// Runs 'forward', and with `wantsGradients` 'backward' with a cotangent of 1
/// for the loss, if the artifact has them. `hooks` get what is saved.
Result<BatchResults>
runBatch(runtime::Model &model, std::span<const runtime::Argument> inputs,
         bool wantsGradients,
         std::shared_ptr<const runtime::SavedHooks> hooks = nullptr);

} // namespace tandem::commands

#endif
