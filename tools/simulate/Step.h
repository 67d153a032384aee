//===- Step.h - one step of training, simulated ---------------------------===//
//
// The programs of a step become the tasks of a rank as the runtime runs them:
// kernels in their order; collectives beside them, in their order, on a stream
// of their own; a kernel waits for those that write what it reads, or use what
// it writes (runtime/device/CollectiveThread.h), and so do the kernels of the
// next program. Small all_reduces that stand side by side go together. Stages
// of a pipeline follow the runtime's own schedule
// (runtime/pipeline/Schedule.h).
//
// Ranks that are alike are simulated once: all ranks of a mesh run programs of
// the same sizes (the last ones compute padding where they have fewer rows), so
// what differs are the stages, of which each has one rank.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_SIMULATE_STEP_H
#define TANDEM_TOOLS_SIMULATE_STEP_H

#include "tools/simulate/Machine.h"

namespace tandem::simulate {

struct StepOptions {
  bool overlaps = true; ///< collectives run beside kernels
  /// Each communicator has a stream, as on a GPU; else one thread serves all.
  bool hasStreamPerCommunicator = false;
  int64_t batches = 1; ///< for one update
  /// Of a rank on processors, by which its scratch memory follows; 0 on a
  /// device, whose memory has inputs and constants, too.
  int64_t threads = 0;
};

/// Collectives of a step that are alike.
struct ExchangeSum {
  std::string what; ///< "all_reduce over data", "message over pipe"
  std::string_view algorithm;
  Group group;
  int64_t count = 0;
  double bytes = 0;   ///< of the inputs of a rank
  double seconds = 0; ///< that they take, hidden or not
};

/// What is simulated of the ranks that are alike.
struct RankResult {
  std::vector<int64_t> stages; ///< of a pipeline
  RankTimes times;
  /// The planned peak: on processors what `bench` measures.
  int64_t memory = 0;
  /// What batches under way need beyond that.
  int64_t inFlight = 0;
  std::vector<ExchangeSum> exchanges;
};

struct StepResult {
  double seconds = 0;
  std::vector<RankResult> ranks; ///< one of each kind
  double flops = 0;              ///< of products, of all kinds' ranks together
  double modelFlops = 0;         ///< three times those of the forwards
  artifact::DType type = artifact::DType::F32; ///< of most products
  std::vector<RankTasks> tasks; ///< played, one list for each of `ranks`
};

/// Simulates a step of the programs of a rank, or of the stages of a pipeline
/// in their order. The manifests must outlive the result. Fails with
/// Unsupported where there is no step.
Result<StepResult> simulateStep(const std::vector<artifact::Manifest> &stages,
                                const Device &device, const Network &network,
                                const StepOptions &options);

/// The flops of products in a program of that name; 0 if there is none.
double productFlops(const artifact::Manifest &manifest, const char *program);

/// What takes most of the slowest rank's time: "arithmetic", "communication",
/// "pipeline bubble", ...
std::string_view boundOf(const StepResult &result);

/// The rank that works longest.
const RankResult &slowestOf(const StepResult &result);

} // namespace tandem::simulate

#endif
