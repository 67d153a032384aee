//===- ModelCore.h - what a Model is made of ------------------------------===//
//
// Internal to the runtime. The artifact with its code, the store of parameters
// and states, the programs bound to them, the memory they share, and the pools
// of what contexts hold. The programs never change after loading. `mutex` is
// held during each call, so that the shared memory, the frames and the
// workspaces need no further lock; the pools have their own, because a context
// may be dropped while a call runs.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_MODEL_MODELCORE_H
#define TANDEM_RUNTIME_MODEL_MODELCORE_H

#include "runtime/call/CallFrame.h"
#include "runtime/call/Program.h"
#include "runtime/call/SavedValues.h"
#include "runtime/call/Workspace.h"
#include "runtime/device/HostMemory.h"
#include "runtime/model/HookMutex.h"
#include "runtime/model/Model.h"
#include "runtime/tensor/Overlap.h"

#include <algorithm>
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
  /// Fails where there are several ranks, and no communicator for them.
  Status checkRanks() const;
  /// In the manifest's order.
  std::span<const Program> programs() const { return bound; }
  /// Returns the program of that name, or null; of several sizes that of the
  /// first one.
  const Program *find(std::string_view name) const { return find(name, 0); }
  /// The same of one size, which may be the first one's that serves all.
  const Program *find(std::string_view name, size_t size) const;
  /// The same of the first size whose shapes the inputs have. Fails with Usage
  /// where there is none, and names those that there are.
  Result<const Program *> choose(std::string_view name,
                                 std::span<const Argument> inputs) const;
  CallFrame &frame(const Program &program) { return frames[program.index]; }
  Workspace &workspace(const Program &program) {
    return workspaces[program.index];
  }
  const Workspace &workspace(const Program &program) const {
    return workspaces[program.index];
  }
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

  /// Makes the arena large enough for `program`, and what its code needs. Where
  /// work is queued the arena is, since loading.
  Status reserve(const Program &program);
  void *arenaData() const { return arena ? arena->data() : nullptr; }
  /// Returns the programs' memory of the host, for a device's copies.
  void *hostData() const { return const_cast<void *>(hostArena.data()); }
  /// Returns the constants, where the model lives. Validated: no launch writes
  /// to them.
  void *constantsData() const {
    return constants ? constants->data() : nullptr;
  }

  /// True if what `program` prepares follows from the variables' values.
  bool isCurrent(const Program &program) const;
  /// Runs the program that prepares arguments of `taker`, unless that is so; of
  /// a step also where variables may have been written unseen.
  Status prepare(const Program &taker);
  /// What is prepared is about to be overwritten by `taker`; or now is what it
  /// gave, after it wrote to variables once.
  void beginRenewal(const Program &taker);
  void endRenewal(const Program &taker);

  /// Makes `stream` wait for the last call, whose memory the next one uses, and
  /// for `caller`, the stream that was current when it was asked for.
  Status follow(Stream stream, Stream caller);
  /// Makes `caller` wait for the call that `follow` began.
  Status leave(Stream stream, Stream caller);
  /// The same for what the model's variables are used for outside of calls.
  Status followCurrent();

  std::shared_ptr<ContextState> takeContext();
  std::shared_ptr<SavedValues> takeSaved(const Program &program);
  void give(std::shared_ptr<SavedValues> saved);
  void give(std::shared_ptr<ContextState> context);

  artifact::ArtifactReader reader;
  DeviceMemory place;
  bool useGraphs = false;
  std::unique_ptr<DeviceCode> code;
  Fence fetched = nullptr; ///< when the last call's results were on the host
  std::shared_ptr<MemoryAccount> account = std::make_shared<MemoryAccount>();
  HostMemory hostMemory; ///< that a device's copies use
  std::vector<Variable> variables;
  HookMutex mutex; ///< held during a call, or by a Hold
  /// `mutex` is a Hold's, and its thread is in no call.
  bool admitsHolder = false;
  /// Null: one rank.
  std::shared_ptr<comm::MeshCommunicators> communicators;
  /// The manifest of each size, where there are several.
  std::vector<artifact::Manifest> ofSizes;
  /// The manifest with the shapes of whole values; null where there is no mesh.
  std::unique_ptr<artifact::Manifest> wholeValues;
  uint64_t seed = 0; ///< that the model was loaded with
  /// A capture has updates of variables, and can be replayed unseen.
  bool wasCaptured = false;

private:
  explicit ModelCore(artifact::ArtifactReader reader)
      : reader(std::move(reader)) {}
  bool canBeWrittenUnseen(const Program &program) const;
  Status findDevice(const Options &options);
  Status loadCode(const Options &options);
  Result<std::vector<Tensor>> allocateVariables() const;
  Status createVariables();
  void bindPrograms();
  void linkPrograms(size_t size);
  Status placeConstants();
  Status reserveAll();

  std::vector<Program> bound;        ///< const once they are linked
  std::vector<CallFrame> frames;     ///< for each program
  std::vector<Workspace> workspaces; ///< for each program
  std::shared_ptr<Storage> arena, constants;
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
