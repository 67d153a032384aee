//===- ModelCall.h - a model that is called again and again ---------------===//
#ifndef TANDEM_TOOLS_BENCH_CUDA_MODELCALL_H
#define TANDEM_TOOLS_BENCH_CUDA_MODELCALL_H

#include "tools/bench/cuda/Samples.h"

namespace tandem::gpu {

/// Calls a model, forward and backward where it has these, else 'evaluate',
/// with the same tensors each time, which are where the model is.
class ModelCall {
public:
  /// Inputs are drawn, and rounded to `rounding`. The model has to outlive it.
  static Result<ModelCall> make(runtime::Model &model, DType rounding);

  /// False if a state counts the calls: then each is made the first.
  bool isPure() const;
  /// Makes a call and returns its outputs but the loss, and the gradients of
  /// its inputs, "d_x", on the host. The first call makes their tensors, later
  /// ones write to them.
  Result<std::vector<NamedTensor>> outputsOfRun();
  /// The same of a call that is recorded as a graph on a stream, as a caller
  /// would do it.
  Result<std::vector<NamedTensor>> outputsOfCapture();

private:
  explicit ModelCall(runtime::Model &model) : model(&model) {}
  bool isTrained() const;
  /// Queues a call.
  Status run();
  /// Overwrites the outputs, so that a call that writes nothing is seen.
  Status clear();
  Result<std::vector<NamedTensor>> outputs() const;

  runtime::Model *model;
  std::vector<NamedTensor> inputs, forward, gradients;
  runtime::Tensor one; ///< the cotangent of the loss
};

} // namespace tandem::gpu

#endif
