//===- Step.cpp - one step of training, simulated -------------------------===//
#include "tools/simulate/Step.h"

#include "runtime/artifact/PlannedMemory.h"
#include "runtime/pipeline/PlannedMemory.h"
#include "runtime/pipeline/Schedule.h"
#include "tools/simulate/RankBuilder.h"

#include <algorithm>

namespace tandem::simulate {

using artifact::Manifest;
using artifact::Program;
using artifact::Role;
using artifact::Slot;

namespace {

int64_t peakOf(const Manifest &manifest) {
  return manifest.stepMemory ? manifest.stepMemory->peak() : 0;
}

/// Of one batch: forward, and twice as much back. Without what a rank repeats.
double modelFlopsOf(const Manifest &manifest) {
  return manifest.findProgram("forward") ? 3 * productFlops(manifest, "forward")
                                         : productFlops(manifest, "evaluate");
}

/// The bytes of those of `slots` of the role that `names` has.
double bytesOf(const std::vector<Slot> &slots, Role role,
               const std::vector<std::string> &names) {
  double bytes = 0;
  for (const Slot &slot : slots)
    if (slot.role == role &&
        std::find(names.begin(), names.end(), slot.name) != names.end())
      bytes +=
          double(artifact::tensorBytes(slot.dtype, slot.shape).value_or(0));
  return bytes;
}

/// The programs of an update of a model that is not cut, in their order.
Result<std::vector<const Program *>> programsOf(const Manifest &manifest,
                                                int64_t batches) {
  std::vector<const Program *> calls;
  const Program *accumulate = manifest.findProgram("accumulate"),
                *step = manifest.findProgram("step"),
                *forward = manifest.findProgram("forward"),
                *backward = manifest.findProgram("backward"),
                *evaluate = manifest.findProgram("evaluate");
  if (batches > 1 && !(accumulate && step))
    return Status::usage("several batches for an update need a program "
                         "'accumulate', which 'compile --accumulate' makes");
  calls.assign(size_t(batches - 1), accumulate);
  if (step)
    calls.push_back(step);
  else if (forward && backward)
    calls.insert(calls.end(), {forward, backward});
  else if (evaluate)
    calls.push_back(evaluate);
  else
    return Status::unsupported("there is no program of a step");
  return calls;
}

void finish(RankBuilder &builder, RankResult rank, StepResult &result) {
  result.flops += builder.flops;
  if (builder.narrowFlops > builder.flops / 2)
    result.type = builder.narrowType;
  rank.exchanges = std::move(builder.exchanges);
  result.ranks.push_back(std::move(rank));
  result.tasks.push_back(std::move(builder.tasks));
}

/// Ranks of a pipeline: those of one place along `pipe` are alike.
class PipelineBuilder {
public:
  PipelineBuilder(const std::vector<Manifest> &stages, const Device &device,
                  const Network &network, const StepOptions &options)
      : stages(stages), device(device), network(network), options(options),
        ranks(stages.front().pipeline->ranks) {}

  Status run(StepResult &result);

private:
  Status buildRank(int64_t rank, const std::vector<pipeline::Step> &steps,
                   StepResult &result);
  Status compute(RankBuilder &builder, const pipeline::Work &work);
  void transfer(RankBuilder &builder, const pipeline::Work &work, bool isSent);
  int64_t liveOf(int64_t stage) const {
    return std::min(int64_t(stages.size()) - stage, options.batches);
  }
  /// The same for the sender and the receiver of what `work` made.
  int64_t meetingOf(const pipeline::Work &work) const {
    return (work.batch * int64_t(stages.size()) + work.stage) * 2 +
           work.isBackward;
  }

  const std::vector<Manifest> &stages;
  const Device &device;
  const Network &network;
  const StepOptions &options;
  int64_t ranks;
};

Status PipelineBuilder::compute(RankBuilder &builder,
                                const pipeline::Work &work) {
  const Manifest &stage = stages[size_t(work.stage)];
  auto call = [&](const char *name, bool isNeeded) {
    const Program *program = stage.findProgram(name);
    if (program)
      builder.call(stage, *program);
    return program || !isNeeded
               ? Status::success()
               : Status::unsupported("stage " + std::to_string(work.stage) +
                                     " has no program '" + name + "'");
  };
  if (!work.isBackward)
    return call("forward", true);
  if (Status s = call("backward", true); !s)
    return s;
  return call(work.batch + 1 == options.batches ? "update" : "accumulation",
              false);
}

void PipelineBuilder::transfer(RankBuilder &builder, const pipeline::Work &work,
                               bool isSent) {
  const Manifest &stage = stages[size_t(work.stage)];
  double bytes = 0;
  if (const Program *program =
          stage.findProgram(work.isBackward ? "backward" : "forward"))
    bytes =
        work.isBackward
            ? bytesOf(program->results, Role::Grad, stage.pipeline->takes)
            : bytesOf(program->results, Role::Output, stage.pipeline->gives);
  int64_t from = work.stage % ranks;
  int64_t to = (work.stage + (work.isBackward ? -1 : 1)) % ranks;
  int64_t stride = std::max<int64_t>(network.strideOf("pipe"), 1);
  builder.message(isSent, bytes,
                  network.message(bytes, from * stride, to * stride),
                  meetingOf(work));
}

Status PipelineBuilder::buildRank(int64_t rank,
                                  const std::vector<pipeline::Step> &steps,
                                  StepResult &result) {
  RankBuilder builder(device, network, options);
  for (const pipeline::Step &step : steps) {
    if (step.work)
      if (Status s = compute(builder, *step.work); !s)
        return s;
    if (step.sent)
      transfer(builder, *step.sent, /*isSent=*/true);
    if (step.received)
      transfer(builder, *step.received, /*isSent=*/false);
    builder.endOfMessages();
  }
  RankResult made;
  for (int64_t s = rank; s < int64_t(stages.size()); s += ranks) {
    const Manifest &stage = stages[size_t(s)];
    made.stages.push_back(s);
    made.memory += peakOf(stage);
    if (stage.stepMemory)
      made.inFlight += (liveOf(s) - 1) *
                       (stage.stepMemory->saved + stage.stepMemory->inputs);
  }
  if (options.threads) {
    auto planned =
        pipeline::plannedMemory(stages, rank, options.batches, options.threads);
    if (!planned)
      return std::move(planned).status();
    made.memory = planned->bytes - planned->inFlight;
    made.inFlight = planned->inFlight;
  }
  finish(builder, std::move(made), result);
  return Status::success();
}

Status PipelineBuilder::run(StepResult &result) {
  if (int64_t(stages.size()) != stages.front().pipeline->stages)
    return Status::usage("expected " +
                         std::to_string(stages.front().pipeline->stages) +
                         " stages, but got " + std::to_string(stages.size()));
  auto schedule =
      pipeline::scheduleOf(int64_t(stages.size()), ranks, options.batches);
  if (!schedule)
    return std::move(schedule).status();
  for (int64_t rank = 0; rank < ranks; ++rank)
    if (Status s = buildRank(rank, (*schedule)[size_t(rank)], result); !s)
      return s;
  for (const Manifest &stage : stages)
    result.modelFlops += modelFlopsOf(stage) * double(options.batches);
  return Status::success();
}

Status buildWhole(const Manifest &manifest, const Device &device,
                  const Network &network, const StepOptions &options,
                  StepResult &result) {
  auto programs = programsOf(manifest, options.batches);
  if (!programs)
    return std::move(programs).status();
  RankBuilder builder(device, network, options);
  for (const Program *program : *programs)
    builder.call(manifest, *program);
  programs->erase(std::unique(programs->begin(), programs->end()),
                  programs->end());
  RankResult rank;
  rank.memory = options.threads && manifest.stepMemory
                    ? artifact::plannedOnHost(manifest, *manifest.stepMemory,
                                              *programs, options.threads)
                    : peakOf(manifest);
  finish(builder, std::move(rank), result);
  result.modelFlops = modelFlopsOf(manifest) * double(options.batches);
  return Status::success();
}

} // namespace

Result<StepResult> simulateStep(const std::vector<Manifest> &stages,
                                const Device &device, const Network &network,
                                const StepOptions &options) {
  StepResult result;
  Status built =
      stages.front().pipeline
          ? PipelineBuilder(stages, device, network, options).run(result)
          : buildWhole(stages.front(), device, network, options, result);
  if (!built)
    return built;
  if (Status s = play(result.tasks); !s)
    return s;
  result.seconds = endOf(result.tasks);
  for (size_t i = 0; i < result.ranks.size(); ++i)
    result.ranks[i].times = timesOf(result.tasks[i], result.seconds);
  return result;
}

double productFlops(const Manifest &manifest, const char *name) {
  const Program *program = manifest.findProgram(name);
  double flops = 0;
  if (!program)
    return 0;
  for (const artifact::Launch &launch : program->launches)
    if (launch.hasKernel())
      if (const auto &kernel = manifest.kernels[size_t(launch.kernel)];
          isProduct(kernel))
        flops += double(kernel.flops);
  return flops;
}

const RankResult &slowestOf(const StepResult &result) {
  return *std::max_element(result.ranks.begin(), result.ranks.end(),
                           [](const RankResult &a, const RankResult &b) {
                             return a.times.kernels() < b.times.kernels();
                           });
}

std::string_view boundOf(const StepResult &result) {
  const RankTimes &times = slowestOf(result).times;
  std::pair<double, std::string_view> parts[] = {
      {times.arithmetic, "arithmetic"},
      {times.memory, "memory"},
      {times.launches, "launches"},
      {times.exposed, "communication"},
      {times.bubble, "pipeline bubble"}};
  return std::max_element(
             std::begin(parts), std::end(parts),
             [](const auto &a, const auto &b) { return a.first < b.first; })
      ->second;
}

} // namespace tandem::simulate
