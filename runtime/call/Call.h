//===- Call.h - one run of a program --------------------------------------===//
//
// Internal to the runtime. Checks all arguments of a call against the program's
// roles, finds a place for every argument and result, runs the launches in
// order, and writes updates, destinations and handles: the steps of Steps.h. A
// failed check changes nothing; every allocation is made before the first
// launch; only hooks can fail after that, and devices. No step allocates once
// the program's tables and memory have their sizes, but messages do. The caller
// holds the model's mutex.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_CALL_CALL_H
#define TANDEM_RUNTIME_CALL_CALL_H

#include "runtime/call/Program.h"
#include "runtime/model/Model.h"

namespace tandem::runtime {

struct RunTimes;
struct SavedValues;

/// What a call of a forward or backward does beside running.
struct CallMode {
  /// Receives what a forward saves; null: nothing is kept, grad mode is off.
  SavedValues *gives = nullptr;
  /// What a backward reads; null for other programs.
  const std::shared_ptr<SavedValues> *takes = nullptr;
  bool retain = false;       ///< `takes` serves another call
  bool createGraph = false;  ///< gradients are enabled during a backward
  RunTimes *times = nullptr; ///< gets what the run took
  bool onlyWanted = false;   ///< what no wanted output needs does not run
};

struct CallOutcome {
  Status status;
  /// The call got so far that what it takes may be used up.
  bool hasStarted = false;
  /// No cotangent (gradient, for an update) was defined: nothing ran.
  bool isNothing = false;
};

CallOutcome runCall(ModelCore &core, const Program &program,
                    std::span<const Argument> inputs,
                    std::span<const Destination> outputs,
                    const CallMode &mode = {});

} // namespace tandem::runtime

#endif
