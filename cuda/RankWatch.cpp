//===- RankWatch.cpp - sees that collectives on a GPU end -----------------===//
#include "cuda/RankWatch.h"

namespace tandem::cuda {

using namespace driver;
using namespace nccl;

namespace {

/// Between two looks.
constexpr std::chrono::milliseconds pause{20};

} // namespace

std::string placeOf(const artifact::Collective &what) {
  return what.where.empty() ? "'" + std::string(spelling(what.op)) + "'"
                            : what.where;
}

void endTogether(const nccl::Functions &call, ncclComm_t comm) {
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  ncclResult_t result = call.finalize(comm);
  while (result == ncclInProgress && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (ncclResult_t asked = call.getAsyncError(comm, &result))
      result = asked;
  }
  (void)(result == ncclSuccess ? call.destroy(comm) : call.abort(comm));
}

RankWatch::~RankWatch() {
  stop();
  for (const Expected &one : expected) {
    events.give(one.begin);
    events.give(one.end);
  }
}

void RankWatch::open(const nccl::Functions &functions, int its,
                     std::chrono::milliseconds most) {
  call = &functions;
  rank = its;
  limit = most;
}

void RankWatch::add(ncclComm_t comm) { comms.push_back(comm); }

void RankWatch::expect(const artifact::Collective &what, CUevent begin,
                       CUevent end) {
  bool isFirst = expected.empty();
  expected.push_back({&what, begin, end});
  if (!thread.joinable())
    thread = std::thread([this] { run(); });
  else if (isFirst)
    changed.notify_one();
}

void RankWatch::giveUp(Status why) {
  if (isOver)
    return;
  isOver = true;
  failed = std::move(why);
  // Before the kernels end: nobody may take what they leave for a result.
  context.lose(failed);
  for (ncclComm_t comm : comms)
    (void)call->abort(comm);
  comms.clear();
}

void RankWatch::stop() {
  {
    std::lock_guard lock(mutex);
    isStopping = true;
  }
  changed.notify_one();
  if (thread.joinable())
    thread.join();
}

void RankWatch::run() {
  Context::Background background(context);
  std::unique_lock lock(mutex);
  while (!isStopping && !isOver) {
    if (expected.empty())
      changed.wait(lock);
    else
      changed.wait_for(lock, pause);
    if (!isStopping && !isOver)
      look();
  }
}

bool RankWatch::hasPassed(CUevent event) {
  return context.call().eventQuery(event) == CUDA_SUCCESS;
}

void RankWatch::look() {
  Context::Scope scope(context);
  while (!expected.empty() && hasPassed(expected.front().end)) {
    events.give(expected.front().begin);
    events.give(expected.front().end);
    expected.pop_front();
    since.reset();
  }
  if (expected.empty())
    return;
  const Expected &oldest = expected.front();
  for (ncclComm_t comm : comms) {
    ncclResult_t error = ncclSuccess;
    if (ncclResult_t result = call->getAsyncError(comm, &error))
      error = result;
    if (error == ncclSuccess || error == ncclInProgress)
      continue;
    const char *words = call->getErrorString(error);
    const char *more = call->getLastError(comm);
    return giveUp(Status::failed(
        placeOf(*oldest.what) + ": rank " + std::to_string(rank) +
        " has lost the others: NCCL says '" + (words ? words : "an error") +
        "'" + (more && *more ? std::string(" (") + more + ")" : "")));
  }
  if (!since) {
    if (hasPassed(oldest.begin))
      since = Clock::now();
    return;
  }
  if (Clock::now() - *since < limit)
    return;
  giveUp(Status::failed(placeOf(*oldest.what) + ": rank " +
                        std::to_string(rank) + " has waited for others for " +
                        std::to_string(limit.count()) + " ms"));
}

} // namespace tandem::cuda
