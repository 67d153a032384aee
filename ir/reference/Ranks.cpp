//===- Ranks.cpp - runs a function on all ranks of a mesh -----------------===//
//
// A thread for each rank, of which one runs at a time: whoever comes to a
// collective waits until its group is there, and lets another run. When none
// can run any more, the program has a deadlock.
//
//===----------------------------------------------------------------------===//
#include "ir/reference/Ranks.h"

#include "ir/Collective.h"

#include <condition_variable>
#include <mutex>
#include <thread>

using namespace mlir;
using namespace tandem;
using namespace tandem::reference;

namespace {

/// One collective of one group, while its ranks arrive.
struct Meeting {
  std::vector<const Array *> in;
  std::vector<Array> out;
  size_t arrived = 0;
  bool isDone = false;
};

class RankRuns {
public:
  RankRuns(func::FuncOp func, ArrayRef<Call> calls)
      : func(func), mesh(MeshAttr::of(func)), calls(calls),
        running(calls.size()) {}

  FailureOr<std::vector<Outcome>> run();

private:
  void runRank(int64_t rank);
  LogicalResult meet(int64_t rank, CollectiveOpInterface op, const Array *in,
                     Array *out);

  func::FuncOp func;
  MeshAttr mesh;
  ArrayRef<Call> calls;
  std::vector<std::optional<Outcome>> outcomes;

  std::mutex mutex; ///< whose holder runs
  std::condition_variable changed;
  /// By the op and the group's first rank.
  std::map<std::pair<Operation *, int64_t>, std::shared_ptr<Meeting>> meetings;
  size_t running; ///< ranks that do not wait
  bool failed = false;
};

} // namespace

LogicalResult RankRuns::meet(int64_t rank, CollectiveOpInterface op,
                             const Array *in, Array *out) {
  // The caller holds the mutex, as everybody who runs.
  std::unique_lock lock(mutex, std::adopt_lock);
  SmallVector<int64_t> group = mesh.groupOf(rank, op.axes());
  int64_t own = mesh.positionOf(rank, op.axes());
  auto key = std::pair(op.getOperation(), group.front());
  std::shared_ptr<Meeting> &entry = meetings[key];
  if (!entry) {
    entry = std::make_shared<Meeting>();
    entry->in.resize(group.size());
    for (size_t i = 0; out && i < group.size(); ++i)
      entry->out.emplace_back(
          cast<RankedTensorType>(op->getResult(0).getType()));
  }
  std::shared_ptr<Meeting> meeting = entry;
  meeting->in[own] = in;
  if (++meeting->arrived == group.size()) {
    op.evaluateGroup(meeting->in, meeting->out);
    meeting->isDone = true;
    running += group.size() - 1;
    meetings.erase(key);
    changed.notify_all();
  } else if (--running == 0 && !failed) {
    failed = true;
    op->emitError() << "expected the ranks of its group to come here, but all "
                       "wait for each other";
    changed.notify_all();
  }
  changed.wait(lock, [&] { return meeting->isDone || failed; });
  if (meeting->isDone && out)
    *out = meeting->out[own];
  bool isDone = meeting->isDone;
  lock.release();
  return success(isDone);
}

void RankRuns::runRank(int64_t rank) {
  mutex.lock();
  if (!failed) {
    Call call = calls[rank];
    call.meet = [&](CollectiveOpInterface op, const Array *in, Array *out) {
      return meet(rank, op, in, out);
    };
    FailureOr<Outcome> outcome = reference::run(func, call);
    if (succeeded(outcome))
      outcomes[rank] = std::move(*outcome);
    else
      failed = true;
  }
  // Who still waits does so for a rank that has ended.
  if (--running == 0 && !meetings.empty() && !failed) {
    failed = true;
    meetings.begin()->first.first->emitError()
        << "expected the ranks of its group to come here, but one has ended";
  }
  changed.notify_all();
  mutex.unlock();
}

FailureOr<std::vector<Outcome>> RankRuns::run() {
  if (!mesh)
    return func.emitError()
           << "expected its module to have '" << kMeshAttr << "'";
  if (static_cast<int64_t>(calls.size()) != mesh.getNumRanks())
    return func.emitError()
           << "expected a call for each of " << mesh.getNumRanks()
           << " ranks but got " << calls.size();
  outcomes.resize(calls.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < calls.size(); ++rank)
    threads.emplace_back([this, rank] { runRank(static_cast<int64_t>(rank)); });
  for (std::thread &thread : threads)
    thread.join();
  if (failed)
    return failure();
  std::vector<Outcome> all;
  for (std::optional<Outcome> &outcome : outcomes)
    all.push_back(std::move(*outcome));
  return all;
}

FailureOr<std::vector<Outcome>> reference::runRanks(func::FuncOp func,
                                                    ArrayRef<Call> calls) {
  return RankRuns(func, calls).run();
}

FailureOr<std::vector<SmallVector<Array>>>
reference::evaluateRanks(func::FuncOp func,
                         ArrayRef<SmallVector<Array>> arguments) {
  std::vector<Call> calls(arguments.size());
  for (auto [call, own] : llvm::zip_equal(calls, arguments))
    llvm::append_range(call.arguments, own);
  FailureOr<std::vector<Outcome>> outcomes = runRanks(func, calls);
  if (failed(outcomes))
    return failure();
  std::vector<SmallVector<Array>> results;
  for (Outcome &outcome : *outcomes) {
    SmallVector<Array> &own = results.emplace_back();
    for (auto [i, value] : llvm::enumerate(outcome.results)) {
      if (!value)
        return func.emitError() << "result #" << i << " has no value";
      own.push_back(std::move(*value));
    }
  }
  return results;
}
