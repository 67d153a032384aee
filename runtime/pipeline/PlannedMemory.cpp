//===- PlannedMemory.cpp - what a rank of a pipeline allocates, as planned ===//
#include "runtime/pipeline/PlannedMemory.h"

#include "runtime/artifact/PlannedMemory.h"
#include "runtime/pipeline/Pack.h"
#include "runtime/pipeline/Schedule.h"

#include <algorithm>

namespace tandem::pipeline {
namespace {

using artifact::allocatedBytes;
using artifact::Manifest;
using artifact::Program;
using artifact::Role;
using artifact::Slot;

/// Things of which memory is made for as many as there are at a time.
struct Count {
  int64_t now = 0, most = 0;
  void take() { most = std::max(most, ++now); }
  void giveBack() { --now; }
};

bool contains(const std::vector<std::string> &names, const std::string &name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// A stage of the rank, and how much of what it has at a time.
struct PlannedStage {
  const Manifest *manifest = nullptr;
  const Program *forward = nullptr, *backward = nullptr;
  bool isLast = false;
  int64_t takesBytes = 0, givesBytes = 0, takesBackBytes = 0,
          givesBackBytes = 0;
  Count live, takes, gives, takesBack, givesBack;

  bool isOfModel(const Slot &slot) const {
    return slot.role == Role::Input &&
           !contains(manifest->pipeline->takes, slot.name);
  }
  /// The stage's account: all of it, and what one batch under way takes.
  int64_t ofModel(int64_t batches, int64_t threads, int64_t &ofBatch) const;
  /// The pipeline's account, in the same way.
  int64_t ofPipeline(int64_t flights, int64_t &ofBatch) const;
};

int64_t PlannedStage::ofModel(int64_t batches, int64_t threads,
                              int64_t &ofBatch) const {
  std::vector<const Program *> programs = {forward};
  if (backward)
    programs.push_back(backward);
  for (const char *name : {"update", "norm"})
    if (const Program *program = manifest->findProgram(name))
      programs.push_back(program);
  if (const Program *program = manifest->findProgram("accumulation");
      program && batches > 1)
    programs.push_back(program);
  int64_t bytes = artifact::sharedOnHost(*manifest, programs, threads) +
                  manifest->stepMemory->parameters +
                  manifest->stepMemory->states;
  // What is saved lies in buffers of the batch, also where it is an output that
  // goes nowhere.
  auto saved = [&](const Slot &slot) {
    return std::any_of(forward->results.begin(), forward->results.end(),
                       [&](const Slot &other) {
                         return other.role == Role::Saved && other.alias &&
                                other.alias->output == slot.name;
                       });
  };
  auto isSent = [&](const Slot &slot) {
    return isLast ? slot.name == manifest->loss
                  : contains(manifest->pipeline->gives, slot.name);
  };
  ofBatch = 0;
  for (const Slot &slot : forward->results)
    if (slot.role == Role::Saved
            ? !slot.alias
            : slot.role == Role::Output && !isSent(slot) && saved(slot))
      ofBatch += allocatedBytes(slot);
  for (const Program *program : programs)
    bytes += artifact::keptResults(*program, [&](const Slot &slot) {
      return program == forward && (isSent(slot) || saved(slot));
    });
  return bytes + live.most * ofBatch;
}

int64_t PlannedStage::ofPipeline(int64_t flights, int64_t &ofBatch) const {
  ofBatch = 0;
  for (const Slot &slot : forward->arguments)
    if (isOfModel(slot))
      ofBatch += allocatedBytes(slot);
  int64_t bytes = flights * ofBatch;
  auto add = [&](const Count &count, int64_t size) {
    bytes += count.most * allocatedBytes(size);
  };
  add(takes, takesBytes);
  add(gives, givesBytes);
  add(takesBack, takesBackBytes);
  add(givesBack, givesBackBytes);
  if (isLast) { // the loss, and its cotangent
    const Slot *loss = nullptr;
    for (const Slot &slot : forward->results)
      if (slot.role == Role::Output && slot.name == manifest->loss)
        loss = &slot;
    bytes += 2 * (loss ? allocatedBytes(*loss) : allocatedBytes(0));
  }
  if (backward) // gradients of parameters
    for (const Slot &slot : backward->results)
      if (slot.role == Role::Grad &&
          !contains(manifest->pipeline->takes, slot.name))
        bytes += allocatedBytes(slot);
  return bytes;
}

/// Plays the steps of a rank.
class Planner {
public:
  Planner(const std::vector<Manifest> &all, int64_t rank)
      : count(int64_t(all.size())), ranks(all.front().pipeline->ranks),
        rank(rank) {
    for (int64_t s = rank; s < count; s += ranks)
      stages.push_back(stageOf(all, s));
  }

  void compute(const Work &work);
  void exchange(const Step &step);
  std::vector<PlannedStage> stages;

private:
  static PlannedStage stageOf(const std::vector<Manifest> &all, int64_t number);
  PlannedStage &stage(int64_t number) { return stages[size_t(number / ranks)]; }
  /// What was made for `work`, on this rank or another one, arrives.
  void arrive(int64_t number, bool isBackward) {
    PlannedStage &own = stage(number);
    (isBackward ? own.givesBack : own.takes).take();
  }

  int64_t count, ranks, rank;
};

bool hasGradient(const Manifest &stage, const std::vector<Slot> Program::*slots,
                 Role role, const std::string &name) {
  const Program *backward = stage.findProgram("backward");
  return backward &&
         std::any_of((backward->*slots).begin(), (backward->*slots).end(),
                     [&](const Slot &slot) {
                       return slot.role == role && slot.name == name;
                     });
}

PlannedStage Planner::stageOf(const std::vector<Manifest> &all,
                              int64_t number) {
  const Manifest &manifest = all[size_t(number)];
  PlannedStage made;
  made.manifest = &manifest;
  made.forward = manifest.findProgram("forward");
  made.backward = manifest.findProgram("backward");
  made.isLast = number + 1 == int64_t(all.size());
  const artifact::Pipeline &own = *manifest.pipeline;
  if (!made.forward)
    return made;
  made.takesBytes =
      Pack(own.takes, made.forward->arguments, Role::Input).bytes();
  made.givesBytes =
      Pack(own.gives, made.forward->results, Role::Output).bytes();
  if (!made.backward)
    return made;
  // The gradients that both sides of a cut have.
  auto crossing = [&](size_t before, const std::vector<std::string> &names) {
    std::vector<std::string> found;
    for (const std::string &name : names)
      if (hasGradient(all[before], &Program::arguments, Role::Cotangent,
                      name) &&
          hasGradient(all[before + 1], &Program::results, Role::Grad, name))
        found.push_back(name);
    return found;
  };
  if (number > 0)
    made.takesBackBytes = Pack(crossing(size_t(number) - 1, own.takes),
                               made.backward->results, Role::Grad)
                              .bytes();
  if (!made.isLast)
    made.givesBackBytes = Pack(crossing(size_t(number), own.gives),
                               made.backward->arguments, Role::Cotangent)
                              .bytes();
  return made;
}

void Planner::compute(const Work &work) {
  PlannedStage &own = stage(work.stage);
  int64_t next = work.stage + (work.isBackward ? -1 : 1);
  bool isEnd = next < 0 || next == count;
  bool isHere = !isEnd && next % ranks == rank;
  if (!work.isBackward) {
    own.live.take();
    if (!own.isLast)
      own.gives.take();
    if (isHere)
      arrive(next, false);
    return;
  }
  own.takesBack.take();
  if (!own.isLast) {
    own.givesBack.giveBack();
    own.gives.giveBack();
  }
  if (work.stage > 0)
    own.takes.giveBack();
  own.live.giveBack();
  if (isHere)
    arrive(next, true);
  if (isEnd || isHere)
    own.takesBack.giveBack();
}

void Planner::exchange(const Step &step) {
  if (step.received)
    arrive(step.received->stage + (step.received->isBackward ? -1 : 1),
           step.received->isBackward);
  if (step.sent && step.sent->isBackward)
    stage(step.sent->stage).takesBack.giveBack();
}

} // namespace

Result<PlannedMemory> plannedMemory(const std::vector<Manifest> &stages,
                                    int64_t rank, int64_t batches,
                                    int64_t threads) {
  auto count = int64_t(stages.size());
  auto steps = scheduleOf(count, stages.front().pipeline->ranks, batches);
  if (!steps)
    return std::move(steps).status();
  Planner planner(stages, rank);
  for (const PlannedStage &stage : planner.stages)
    if (!stage.forward || !stage.manifest->stepMemory)
      return Status::unsupported("a stage says nothing of its memory");
  for (const Step &step : (*steps)[size_t(rank)])
    step.work ? planner.compute(*step.work) : planner.exchange(step);
  PlannedMemory planned;
  planned.bytes = allocatedBytes(4); // a number to set
  for (const PlannedStage &stage : planner.stages) {
    int64_t flights =
        std::min(batches, count - stage.manifest->pipeline->stage);
    int64_t saved = 0, inputs = 0;
    planned.bytes += stage.ofModel(batches, threads, saved) +
                     stage.ofPipeline(flights, inputs);
    planned.inFlight += (stage.live.most - 1) * saved + (flights - 1) * inputs;
  }
  return planned;
}

} // namespace tandem::pipeline
