//===- StepMemory.h - the memory of a training step -----------------------===//
//
// What the runtime holds while a model trains with the programs of a planned
// module: all of it is allocated by the end of the first step, and the count is
// of that moment. A step is `@step` where there is one, else `@forward` and
// `@backward` with the saved values between them, else `@evaluate`. Sizes are
// those of allocations: each is at least one line of 64 bytes.
//
// The scratch memory of kernels is counted once: how many threads or streams
// there are, each of which has its own, is known when the model is loaded.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PLAN_STEPMEMORY_H
#define TANDEM_PASSES_PLAN_STEPMEMORY_H

#include "mlir/IR/BuiltinOps.h"

namespace tandem {

struct StepMemory {
  int64_t parameters = 0;
  int64_t states = 0;
  int64_t constants = 0;
  /// What the caller gives: inputs and cotangents.
  int64_t inputs = 0;
  /// What it gets: outputs and gradients.
  int64_t outputs = 0, gradients = 0;
  /// Between forward and backward, beside outputs.
  int64_t saved = 0;
  /// Updates and copies of arguments that are not made in place.
  int64_t staged = 0;
  /// One for all programs.
  int64_t arena = 0;
  /// What is saved in the host's memory, where the programs are a device's: no
  /// part of the peak.
  int64_t host = 0;
  /// What is computed of parameters and states alone, and kept.
  int64_t prepared = 0;
  /// What the kernels of a step need beside their buffers, of each thread, or
  /// of each stream of a device: no part of the peak.
  int64_t scratch = 0;

  int64_t resident() const {
    return parameters + states + constants + prepared;
  }
  int64_t peak() const {
    return resident() + inputs + outputs + gradients + saved + staged + arena;
  }
};

/// Reads the memory of a step off a module of the phase plan, or one whose
/// programs of a step alone are planned.
StepMemory stepMemory(mlir::ModuleOp planned);

/// True if a planned kernel says no scratch: by which method it is computed is
/// not chosen yet, or anew.
bool lacksScratch(mlir::ModuleOp planned);

/// What the attribute `tandem.step_memory` of such a module says.
mlir::DictionaryAttr describeStepMemory(mlir::ModuleOp planned);

/// Plans the programs of a copy of `partitioned` and returns what a step would
/// need. Says nothing, and changes nothing. The dialects that plan needs must
/// be loaded (Passes.td).
mlir::FailureOr<StepMemory> rehearsePlan(mlir::ModuleOp partitioned);

} // namespace tandem

#endif
