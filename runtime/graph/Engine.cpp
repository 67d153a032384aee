//===- Engine.cpp - runs the backward of a run-time graph -----------------===//
#include "runtime/graph/Engine.h"
#include "runtime/graph/CallbackLock.h"
#include "runtime/graph/Modes.h"
#include "runtime/graph/Task.h"

#include <utility>

namespace tandem::graph {

namespace {

thread_local Lane *laneOfThread = nullptr;
thread_local Counts countsOfLast;

/// A backward of this thread, inside of another one perhaps.
Status runTask(Task::Kind kind, std::span<const Root> roots,
               std::span<const Edge> inputs, const BackwardOptions &options,
               Gradients *results) {
  CallbackPause pause; // of the node whose callback asked for it
  Task task(kind, options, laneOfThread);
  Lane *outer = exchangeCurrentLane(&task.own());
  GradModeScope grad(options.createGraph);
  Status status;
  try {
    status = task.run(roots, inputs, results);
  } catch (const std::exception &error) { // of the user, or out of memory
    status = Status::failed(error.what());
  } catch (...) {
    status = Status::failed("an exception of an unknown type");
  }
  exchangeCurrentLane(outer);
  countsOfLast = task.counts();
  Status again = pause.end();
  return status ? again : status;
}

Status checkInputs(std::span<const Edge> inputs) {
  if (inputs.empty())
    return Status::usage("expected at least one value to differentiate for");
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i])
      return Status::usage("value " + std::to_string(i) +
                           " to differentiate for does not require grad");
  return Status::success();
}

} // namespace

Lane *currentLane() { return laneOfThread; }
Lane *exchangeCurrentLane(Lane *lane) {
  return std::exchange(laneOfThread, lane);
}

Status backward(std::span<const Root> roots, const BackwardOptions &options) {
  return runTask(Task::Kind::Collect, roots, {}, options, nullptr);
}

Status backwardTo(std::span<const Root> roots, std::span<const Edge> inputs,
                  const BackwardOptions &options) {
  if (Status status = checkInputs(inputs); !status)
    return status;
  return runTask(Task::Kind::CollectAt, roots, inputs, options, nullptr);
}

Result<Gradients> grad(std::span<const Root> roots,
                       std::span<const Edge> inputs,
                       const BackwardOptions &options, Unreached unreached) {
  if (Status status = checkInputs(inputs); !status)
    return status;
  Gradients results(inputs.size());
  if (Status status =
          runTask(Task::Kind::Capture, roots, inputs, options, &results);
      !status)
    return status;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].defined() || unreached == Unreached::Undefined)
      continue;
    const Node &node = *inputs[i].node;
    if (unreached == Unreached::Error)
      return Status::usage("no gradient arrives at value " + std::to_string(i) +
                           " to differentiate for, input " +
                           std::to_string(inputs[i].input) + " of node " +
                           describe(node));
    const InputInfo &info = node.inputs()[size_t(inputs[i].input)];
    Result<Tensor> zeros = Tensor::zeros(info.dtype, info.shape, info.device);
    if (!zeros)
      return std::move(zeros).status();
    results[i] = std::move(*zeros);
  }
  return results;
}

Status queueCallback(std::function<Status()> callback) {
  if (!laneOfThread)
    return Status::usage(
        "a final callback can only be queued during a backward");
  laneOfThread->task->queue(std::move(callback));
  return Status::success();
}

bool isWantedByTask(const Node &node, size_t index) {
  return !laneOfThread ||
         laneOfThread->task->isWanted(*laneOfThread, node, index);
}

bool isCapturing() { return laneOfThread && laneOfThread->task->isCapturing(); }

Counts lastCounts() { return countsOfLast; }

} // namespace tandem::graph
