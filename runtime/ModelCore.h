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

#include "runtime/BoundProgram.h"
#include "runtime/CodeObject.h"
#include "runtime/HostMemory.h"
#include "runtime/Model.h"
#include "runtime/Overlap.h"
#include "runtime/SavedValues.h"
#include "runtime/ThreadPool.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tandem::runtime {

/// A parameter or state.
struct Variable {
  const artifact::Value *value = nullptr;
  Tensor tensor;
  bool isSet = false;
};

class ModelCore : public std::enable_shared_from_this<ModelCore> {
public:
  static Result<std::shared_ptr<ModelCore>>
  create(artifact::ArtifactReader reader, const Options &options);

  ~ModelCore();

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

  /// Makes the arena and the scratch memory large enough for `program`. On a
  /// device the arena is, since loading.
  Status reserve(const BoundProgram &program);
  void *arenaData() const { return arena ? arena->data() : nullptr; }
  /// Of a device: the programs' memory of the host.
  const void *hostData() const { return hostArena.data(); }
  void *scratchData() const { return scratch ? scratch->data() : nullptr; }
  /// Returns the constants, where the model lives.
  const std::byte *constantsData() const;

  /// True if what `program` prepares follows from the variables' values.
  bool isCurrent(const BoundProgram &program) const;
  /// Runs `program`, which prepares arguments of others, unless that is so.
  Status prepare(BoundProgram &program);

  /// Makes `stream` wait for the last call, whose memory the next one uses, and
  /// for `caller`, the stream that was current when it was asked for.
  Status follow(Stream stream, Stream caller);
  /// Makes `caller` wait for the call that `follow` began.
  Status leave(Stream stream, Stream caller);
  /// The same for what the model's variables are used for outside of calls.
  Status followCurrent();

  std::shared_ptr<ContextState> takeContext();
  std::shared_ptr<SavedValues> takeSaved(BoundProgram &program);
  void give(std::shared_ptr<SavedValues> saved);
  void give(std::shared_ptr<ContextState> context);

  artifact::ArtifactReader reader;
  Place place;
  bool useGraphs = false, useLibraries = false;
  CodeObject code;                        ///< on the host
  std::unique_ptr<DeviceCode> deviceCode; ///< on a device
  Fence fetched = nullptr; ///< when the last call's results were on the host
  std::unique_ptr<ThreadPool> pool;
  std::shared_ptr<MemoryAccount> account = std::make_shared<MemoryAccount>();
  HostMemory hostMemory; ///< of a device
  std::vector<Variable> variables;
  std::deque<BoundProgram> programs;   ///< contexts point into it
  std::mutex mutex;                    ///< held during a call
  std::atomic<std::thread::id> caller; ///< who holds it

private:
  explicit ModelCore(artifact::ArtifactReader reader)
      : reader(std::move(reader)) {}
  Status chooseTarget(const Options &options);
  Status chooseVariant(const std::string &wanted);
  Status loadCode();
  Result<std::vector<Tensor>> allocateVariables() const;
  Status createVariables();
  void clear(Storage &storage) const;
  Status bindPrograms();
  Status reserveOnDevice();

  std::shared_ptr<Storage> arena, scratch, constants;
  Tensor hostArena;
  /// The stream that all of the device's work of this model is ordered before;
  /// none before the first call.
  std::optional<Stream> lastStream;
  std::vector<std::pair<std::string_view, int>> byName; ///< sorted
  /// The variables that have bytes, sorted by address.
  std::vector<std::pair<AddressRange, int>> byAddress;

  std::mutex poolMutex; ///< guards the pools
  std::vector<std::shared_ptr<ContextState>> freeContexts;
  size_t contextsMade = 0;
};

} // namespace tandem::runtime

#endif
