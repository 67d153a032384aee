//===- ModelCore.h - what a Model is made of ------------------------------===//
//
// Internal to the runtime. The artifact with its code, the store of parameters
// and states, the programs bound to them, the memory they share, and the pools
// of what contexts hold. `mutex` is held during each call, so that the shared
// memory and the programs' tables need no further lock; the pools have their
// own, because a context may be dropped while a call runs.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_MODELCORE_H
#define TANDEM_RUNTIME_MODELCORE_H

#include "runtime/CodeObject.h"
#include "runtime/Model.h"
#include "runtime/Overlap.h"
#include "runtime/ThreadPool.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

namespace tandem::runtime {

/// A parameter or state.
struct Variable {
  const artifact::Value *value = nullptr;
  Tensor tensor;
  bool isSet = false;
};

struct BoundLaunch {
  KernelFunction function = nullptr;
  int64_t work = 0, grain = 1;
  size_t firstPointer = 0; ///< in BoundProgram::pointers
  bool isSmall = false;    ///< not worth waking a thread
};

struct BoundArgument {
  int variable = -1; ///< of the store; -1: the caller or a context gives it
  bool isUpdated = false;
  /// Backward: the result (role saved) or argument (role input) of the forward
  /// that this is. Forward: the argument of the backward that this input is.
  int partner = -1;
};

struct BoundResult {
  int variable = -1; ///< the store's variable that an update overwrites
  int argument = -1; ///< the argument that an update is of
};

/// A program with everything resolved that does not change between calls, and
/// the tables that a call fills in.
struct BoundProgram {
  const artifact::Program *program = nullptr;
  std::vector<BoundArgument> arguments;
  std::vector<BoundResult> results;
  std::vector<BoundLaunch> launches;
  std::vector<int> pointerBuffer; ///< for each pointer, the program's buffer
  int64_t scratchBytes = 0;       ///< of one thread

  // Filled in by each call.
  std::vector<void *> pointers, argumentData, resultData, bufferData;
  std::vector<const Tensor *> given; ///< for each argument, or null
  std::vector<Tensor *> wanted;      ///< for each result, or null
  std::vector<Tensor> fresh;         ///< new tensors for undefined destinations
  std::vector<std::pair<AddressRange, int>> ranges; ///< of destinations

  // Memory that the program keeps once it was needed.
  std::vector<Tensor> staged;   ///< dense copies of arguments
  std::vector<Tensor> internal; ///< results that nobody's tensor receives
};

/// What one forward keeps for its backward.
struct SavedValues {
  /// An input of the backward: the caller's tensor, or a copy of it.
  struct Input {
    Tensor given;         ///< the caller's tensor
    uint64_t version = 0; ///< of it, at the forward
    bool isCopied =
        false;   ///< the forward read `copy`, and so does the backward
    Tensor copy; ///< stays allocated once it was needed
  };
  std::vector<Tensor> results;    ///< for each result of the forward, if saved
  std::vector<Input> inputs;      ///< for each argument of the backward
  std::vector<uint64_t> versions; ///< of the store's variables
};

/// What a Context points to.
struct ContextState {
  std::mutex mutex;                   ///< guards `saved`
  std::unique_ptr<SavedValues> saved; ///< none once it is used
  std::weak_ptr<ModelCore> owner;
};

class ModelCore : public std::enable_shared_from_this<ModelCore> {
public:
  static Result<std::shared_ptr<ModelCore>>
  create(artifact::ArtifactReader reader, const Options &options);

  const artifact::Manifest &manifest() const { return reader.manifest(); }
  Status initializeVariables(uint64_t seed);
  BoundProgram *find(std::string_view program);
  /// Returns the index in `variables`, or -1.
  int findVariable(std::string_view name) const;

  /// Returns the first variable that has addresses in common with `range` and
  /// for which `wanted(index)` holds, or -1.
  template <typename Fn>
  int findOverlapping(const AddressRange &range, Fn wanted) const {
    auto it = std::partition_point(
        byAddress.begin(), byAddress.end(),
        [&](const auto &entry) { return entry.first.high <= range.low; });
    for (; it != byAddress.end() && it->first.meets(range); ++it)
      if (wanted(it->second))
        return it->second;
    return -1;
  }

  /// Makes the arena and the scratch memory large enough for `program`.
  Status reserve(const BoundProgram &program);
  void *arenaData() const { return arena ? arena->data() : nullptr; }
  void *scratchData() const { return scratch ? scratch->data() : nullptr; }

  std::shared_ptr<ContextState> takeContext();
  Result<std::unique_ptr<SavedValues>> takeSaved();
  void give(std::unique_ptr<SavedValues> saved);
  void give(std::shared_ptr<ContextState> context);

  artifact::ArtifactReader reader;
  CodeObject code;
  std::unique_ptr<ThreadPool> pool;
  std::shared_ptr<MemoryAccount> account = std::make_shared<MemoryAccount>();
  std::vector<Variable> variables;
  std::vector<BoundProgram> programs;
  std::mutex mutex; ///< held during a call

private:
  explicit ModelCore(artifact::ArtifactReader reader)
      : reader(std::move(reader)) {}
  Status checkTarget() const;
  Status createVariables();
  Status bindPrograms();
  void bind(BoundProgram &bound, const std::vector<KernelFunction> &functions);
  void pairContexts();

  std::shared_ptr<Storage> arena, scratch;
  std::vector<std::pair<std::string_view, int>> byName; ///< sorted
  /// The variables that have bytes, sorted by address.
  std::vector<std::pair<AddressRange, int>> byAddress;

  std::mutex poolMutex; ///< guards the pools
  std::vector<std::unique_ptr<SavedValues>> freeSaved;
  std::vector<std::shared_ptr<ContextState>> freeContexts;
  size_t savedMade = 0, contextsMade = 0;
};

} // namespace tandem::runtime

#endif
