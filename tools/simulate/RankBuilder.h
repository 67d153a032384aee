//===- RankBuilder.h - the tasks of one rank ------------------------------===//
#ifndef TANDEM_TOOLS_SIMULATE_RANKBUILDER_H
#define TANDEM_TOOLS_SIMULATE_RANKBUILDER_H

#include "tools/simulate/Step.h"

#include <map>

namespace tandem::simulate {

/// Appends tasks of a rank in the order in which it starts them.
class RankBuilder {
public:
  RankBuilder(const Device &device, const Network &network,
              const StepOptions &options)
      : device(device), network(network), options(options) {}

  /// One call of a program.
  void call(const artifact::Manifest &manifest,
            const artifact::Program &program);
  /// A message that another rank has a task for with the same `meeting`; both
  /// wait for each other. Those that nothing ends between go at the same time.
  void message(bool isSent, double bytes, double seconds, int64_t meeting);
  /// What the rank does next waits for the messages before it.
  void endOfMessages();

  RankTasks tasks;
  std::vector<ExchangeSum> exchanges;
  double flops = 0;       ///< of products
  double narrowFlops = 0; ///< of them, in f16 and bf16
  artifact::DType narrowType = artifact::DType::BF16;

private:
  using Buffers = std::vector<artifact::Buffer>;
  /// An exchange that may be under way.
  struct Live {
    int task;
    std::vector<artifact::Buffer> read, written;
  };

  void addKernel(const artifact::Manifest &manifest,
                 const artifact::Program &program,
                 const artifact::Launch &launch);
  /// Launches [first, end), which go in one exchange.
  void addExchange(const artifact::Program &program, size_t first, size_t end);
  /// Those that are under way and in the way of a launch.
  std::vector<int> inTheWay(const artifact::Program &program,
                            const artifact::Launch &launch);
  int add(Task task);
  int streamOf(const artifact::Collective &collective);
  void count(std::string what, const ExchangeCost &cost, const Group &group,
             double bytes);

  const Device &device;
  const Network &network;
  const StepOptions &options;
  std::vector<Live> live;
  std::vector<int> pending; ///< messages
  std::vector<int> next;    ///< what the next task on any stream waits for
  int lastKernel = -1;
  std::map<std::vector<std::string>, int> streams;
  std::map<std::vector<std::string>, Group> groups;
};

} // namespace tandem::simulate

#endif
