//===- Forward.h - `evaluate` of a model in stages ------------------------===//
//
// A batch goes through the program `evaluate` of one stage after the other, as
// far as the wanted outputs need it. All ranks make the same calls, and all get
// the outputs.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_PIPELINE_FORWARD_H
#define TANDEM_RUNTIME_PIPELINE_FORWARD_H

#include "runtime/pipeline/Pipeline.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tandem::pipeline {

/// Returns a manifest that has the inputs of the whole model and one program,
/// `evaluate`, without launches: the outputs of all stages, with the shapes of
/// whole values, and what they say of inputs and rows. `stages` are the
/// manifests of all, in their order. Fails with Unsupported where a stage has
/// no such program.
Result<artifact::Manifest>
wholeEvaluate(const std::vector<artifact::Manifest> &stages);

class Forward {
public:
  /// For some outputs, of `wholeEvaluate` of the same stages. The pipeline
  /// outlives it. What a batch needs is allocated here.
  static Result<Forward> make(Pipeline &pipeline,
                              const std::vector<artifact::Manifest> &stages,
                              const std::vector<std::string> &outputs);
  Forward(Forward &&) noexcept;
  Forward &operator=(Forward &&) noexcept;
  ~Forward();

  /// Computes the outputs of a batch; all ranks give the whole inputs, of which
  /// those may be missing that no output follows from. Valid until the next
  /// call: whole outputs, on the host, in the order of the names.
  Result<std::span<const runtime::Tensor>>
  run(std::span<const runtime::Argument> inputs);

private:
  struct State;
  explicit Forward(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

} // namespace tandem::pipeline

#endif
