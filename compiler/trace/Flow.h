//===- Flow.h - branches and loops that data decides ----------------------===//
//
//   Tensor y = cond(sum(x) > 0.0, {x},
//                   [](const Tensors &in) -> Tensors { return {in[0] * 2.0}; },
//                   [](const Tensors &in) -> Tensors { return {in[0]}; })[0];
//
// Each function is recorded at once, into a region of its own: what it computes
// with is handed to it, and tensors of the program outside are a mistake there.
// What it is handed are values: it cannot write them.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_TRACE_FLOW_H
#define TANDEM_COMPILER_TRACE_FLOW_H

#include "compiler/trace/Trace.h"

namespace tandem {

using Tensors = std::vector<Tensor>;

using Branch = std::function<Tensors(const Tensors &inputs)>;

/// What `then` makes of `inputs` where `condition`, one bool, holds, and else
/// what `otherwise` makes of them: as many tensors, of the same types.
Tensors cond(const Tensor &condition, const Tensors &inputs, const Branch &then,
             const Branch &otherwise, Where where = Where::current());

/// What an iteration gives, and what a scan does: new carries, and a slice of
/// each output (the last carries, and the outputs).
struct ScanStep {
  Tensors carries, outputs;
};
using ScanBody = std::function<ScanStep(
    const Tensors &carries, const Tensors &slices, const Tensors &constants)>;

struct ScanOptions {
  /// How many iterations; by default as many as the inputs have slices.
  std::optional<int64_t> length = {};
  /// One i64: iterations from this one on are left out. Slices of outputs there
  /// are zeros.
  Tensor trips = {};
  /// From the last slice to the first.
  bool reverse = false;
};

/// Runs `body` for each slice of the inputs along dimension 0. Differentiable.
///
///   ScanStep rnn = scan({h}, {xs}, {w}, [](const Tensors &carries,
///       const Tensors &slices, const Tensors &constants) -> ScanStep {
///     Tensor h = tanh(matmul(carries[0], constants[0]) + slices[0]);
///     return {{h}, {h}}; });
ScanStep scan(const Tensors &carries, const Tensors &inputs,
              const Tensors &constants, const ScanBody &body,
              const ScanOptions &options = {}, Where where = Where::current());

/// Runs `body`, which gives new carries, while `condition`, which gives one
/// bool, holds. Has no gradient.
Tensors
whileLoop(const Tensors &carries, const Tensors &constants,
          const std::function<Tensor(const Tensors &carries,
                                     const Tensors &constants)> &condition,
          const std::function<Tensors(const Tensors &carries,
                                      const Tensors &constants)> &body,
          Where where = Where::current());

} // namespace tandem

#endif
