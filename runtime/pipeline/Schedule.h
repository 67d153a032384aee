//===- Schedule.h - who computes which stage of which batch when ----------===//
//
// A pipeline sends batches through stages, each forward and back. Stage i runs
// on rank i modulo `ranks`. As soon as a backward can run it does, and a stage
// s of S has at most S - s batches under way: with one stage a rank this is the
// order 1F1B, with several the interleaved one.
//
// All ranks compute the same schedule. A rank does its steps in order, and each
// is either one piece of computation or one exchange of at most one message
// each way. Messages between two ranks arrive in the order in which they are
// sent. Who sends may wait until the other receives: the schedule is checked to
// come to its end then, too.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_PIPELINE_SCHEDULE_H
#define TANDEM_RUNTIME_PIPELINE_SCHEDULE_H

#include "runtime/artifact/Status.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace tandem::pipeline {

/// The forward or the backward of a stage for a batch.
struct Work {
  int64_t stage = 0, batch = 0;
  bool isBackward = false;
  bool operator==(const Work &) const = default;
};

/// What a rank does next: it computes `work`, or it sends what `sent` made and
/// receives what `received`, on another rank, made.
struct Step {
  std::optional<Work> work, sent, received;
};

/// Returns the steps of each rank. Fails, which none of these numbers should
/// make it do, if they would wait for each other for ever.
Result<std::vector<std::vector<Step>>> scheduleOf(int64_t stages, int64_t ranks,
                                                  int64_t batches);

/// Returns the part of the time in which a rank computes nothing, if all stages
/// take the same time, a backward twice that of a forward, and a message only
/// the wait of the rank that comes to it first. For K batches and S ranks with
/// one stage each that is (S - 1) / (K + S - 1).
double bubbleOf(int64_t stages, int64_t ranks, int64_t batches);

} // namespace tandem::pipeline

#endif
