//===- Plan.h - a program, ready to be queued -----------------------------===//
//
// A command list with everything that the driver wants to know: functions,
// grids, and the values of all parameters, which are addresses, or tensor maps
// that are encoded from them when they change. A plan holds
// for one set of actions and one way in which buffers share bytes; where the
// buffers lie is filled in before each run (`place`).
//
// The same plan is queued on streams, with waits by events, or made into a
// graph whose nodes are the commands; both have the order of the list.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_PLAN_H
#define TANDEM_CUDA_PLAN_H

#include "cuda/CommandList.h"
#include "cuda/Events.h"
#include "cuda/Libraries.h"
#include "cuda/RankGroups.h"

#include <functional>

namespace tandem::cuda {

class Profile;

/// A kernel that was loaded, and how it is launched.
struct LoadedKernel {
  driver::CUfunction function = nullptr;
  unsigned block[3] = {1, 1, 1};
  unsigned sharedBytes = 0;
};

class Plan {
public:
  /// `calls`: of a library, one for each launch; null where the kernel runs.
  /// `recorder`: a stream that nothing else uses, on which they are recorded
  /// for graphs.
  Plan(const Context &context, const artifact::Manifest &manifest,
       const artifact::Program &program, CommandList list,
       std::span<const LoadedKernel> kernels,
       std::span<const std::unique_ptr<PreparedCall>> calls = {},
       driver::CUstream recorder = nullptr);
  Plan(const Plan &) = delete;
  Plan &operator=(const Plan &) = delete;
  ~Plan();

  const CommandList &commands() const { return list; }

  /// Says where the buffers lie, and for each stream its scratch memory.
  /// Usage error for a buffer that is used but has no address.
  Status place(std::span<void *const> buffers,
               const std::function<Result<void *>(int stream)> &scratch);

  /// Queues the commands; `streams[n]` is stream n. What was queued is joined
  /// into stream 0 in any case. With a profile, each command is timed. `ranks`
  /// may be null where no command needs them.
  Status queue(std::span<const driver::CUstream> streams, EventPool &events,
               Profile *profile, RankGroups *ranks = nullptr);

  /// Launches the commands as a graph on `stream`; makes or updates it first if
  /// that is needed. Not where commands need ranks. A new one is brought to the
  /// device on `beside`, on which nothing else waits.
  Status launchGraph(driver::CUstream stream, driver::CUstream beside,
                     EventPool &events);

private:
  struct Bound {
    /// A slice; else null.
    const artifact::Collective *slice = nullptr;
    /// In `exchanged`: the collectives of an exchange; else none.
    size_t firstExchanged = 0, exchangedCount = 0;
    const LoadedKernel *kernel = nullptr; ///< null: a call, a copy or zeros
    PreparedCall *call = nullptr;
    bool hasWorkspace = false; ///< the call; its last value
    unsigned grid[3] = {1, 1, 1};
    /// In `values`: the kernel's parameters; or the call's buffers and its
    /// workspace; or where to, and from where; of ranks, of each collective
    /// from where, and where to.
    size_t first = 0, count = 0;
    int64_t bytes = 0;                         ///< of a copy or zeros
    bool isToHost = false, isFromHost = false; ///< a copy
  };

  /// A parameter that is a tensor map.
  struct Mapped {
    size_t value; ///< its place in `values`, which has the buffer's address
    const artifact::TensorMap *map;
    driver::CUtensorMap encoded = {};
    void *address = nullptr; ///< that it was encoded for
  };

  Status encodeMaps();
  Status queueOne(size_t command, driver::CUstream stream);
  Status queueTimed(size_t command, driver::CUstream stream, Profile &profile);
  std::string nameOf(const Command &command) const;
  Status failed(Status status, size_t command) const;
  driver::CUDA_KERNEL_NODE_PARAMS kernelNode(const Bound &bound);
  driver::CUDA_MEMCPY3D copyNode(const Bound &bound) const;
  driver::CUDA_MEMSET_NODE_PARAMS zeroNode(const Bound &bound) const;
  Status queueOverRanks(const Bound &bound, driver::CUstream stream);
  Status queueCall(const Bound &bound, driver::CUstream stream);
  Result<driver::CUgraph> recordCall(const Bound &bound);
  Status makeNode(size_t command, std::span<const driver::CUgraphNode> after);
  Status updateNode(size_t command);
  Status makeGraph();
  Status uploadGraph(driver::CUstream stream, driver::CUstream beside,
                     EventPool &events);
  Status updateGraph();
  void dropGraph();
  driver::CUdeviceptr at(size_t value) const {
    return reinterpret_cast<driver::CUdeviceptr>(values[value]);
  }

  const Context &context;
  const artifact::Manifest &manifest;
  const artifact::Program &program;
  CommandList list;
  driver::CUstream recorder;
  RankGroups *ranks = nullptr; ///< of the run
  std::vector<Bound> bound;    ///< for each command
  /// Of all exchanges; a barrier stands alone.
  std::vector<RankGroups::Part> exchanged;
  std::vector<void *> values; ///< of all parameters
  std::vector<Mapped> maps;
  std::vector<void *> parameters;    ///< the address of each value or map
  std::vector<int> bufferOf;         ///< for each value; negative: scratch
  std::vector<driver::CUevent> done; ///< for each command that is awaited

  driver::CUgraph graph = nullptr;
  driver::CUgraphExec exec = nullptr;
  std::vector<driver::CUgraphNode> nodes; ///< for each command
  std::vector<void *> graphValues;        ///< those that the graph has
};

} // namespace tandem::cuda

#endif
