//===- Workspace.h - memory that a program's calls use again --------------===//
//
// Internal to the runtime. What a program allocated in some call and keeps for
// the next ones: copies, results that nobody's tensor receives, ways to a
// device and back, what contexts held. Guarded by the model's mutex, but for
// the pool of contexts, which has its own.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_CALL_WORKSPACE_H
#define TANDEM_RUNTIME_CALL_WORKSPACE_H

#include "runtime/artifact/Slice.h"
#include "runtime/call/Program.h"
#include "runtime/device/DeviceMemory.h"
#include "runtime/tensor/Tensor.h"

#include <memory>
#include <vector>

namespace tandem::runtime {

struct SavedValues;

/// What the outputs need that one call wanted alone, for the next call that
/// wants the same.
struct WantedSlice {
  artifact::Slice slice;
  std::vector<char> results, aliases; ///< for each: it was wanted
  bool isFound = false;
};

struct Workspace {
  /// With ways to a device and back only where work is queued.
  Workspace(const Program &program, bool isQueued);

  std::vector<Tensor> staged;      ///< for each argument, a dense copy
  std::vector<Tensor> internal;    ///< results that nobody's tensor receives
  std::vector<Upload> uploads;     ///< for each argument
  std::vector<Download> downloads; ///< for each result
  WantedSlice wanted;

  /// Of a program that prepares: whether `internal` has its results, and the
  /// versions of the variables that they were computed from.
  bool isPrepared = false;
  std::vector<uint64_t> preparedFor;

  std::vector<std::shared_ptr<SavedValues>> freeSaved; ///< of its contexts
  size_t savedMade = 0;
};

} // namespace tandem::runtime

#endif
