//===- CollectiveThread.cpp - what ranks do together, beside the launches -===//
#include "runtime/device/CollectiveThread.h"

#include <system_error>

namespace tandem::runtime {

CollectiveThread::~CollectiveThread() {
  if (!thread.joinable())
    return;
  {
    std::lock_guard lock(mutex);
    isEnding = true;
  }
  filled.notify_one();
  thread.join();
}

bool CollectiveThread::start(size_t most) {
  entries.reserve(most);
  ends.reserve(most);
  parts.reserve(most);
  if (thread.joinable())
    return true;
  try {
    thread = std::thread([this] { serve(); });
  } catch (const std::system_error &) {
    return false;
  }
  return true;
}

void CollectiveThread::submit(comm::MeshCommunicators &of) {
  {
    std::lock_guard lock(mutex);
    communicators = &of;
    ends.push_back(entries.size());
    submitted = ends.size();
  }
  filled.notify_one();
}

void CollectiveThread::serve() {
  std::unique_lock lock(mutex);
  while (true) {
    filled.wait(lock, [&] { return isEnding || exchanged < submitted; });
    if (exchanged == submitted)
      return;
    size_t first = done, end = ends[exchanged];
    comm::MeshCommunicators *with = communicators;
    if (status.ok()) {
      lock.unlock();
      std::span<const BoundCollective> all(&entries[first], end - first);
      const BoundCollective &one = all.front();
      Status ended = all.size() > 1 ? JoinedCollectives::run(*with, all, parts)
                                    : one.what->run(with, one.from, one.to);
      lock.lock();
      status = std::move(ended);
    }
    ++exchanged;
    done = end;
    advanced.notify_one();
  }
}

static bool meet(const void *x, int64_t bytesOfX, const void *y,
                 int64_t bytesOfY) {
  auto from = reinterpret_cast<uintptr_t>(x),
       to = reinterpret_cast<uintptr_t>(y);
  return from < to + uintptr_t(bytesOfY) && to < from + uintptr_t(bytesOfX);
}

bool isInTheWay(const BoundCollective &one, const Touched &touched) {
  return meet(touched.data, touched.bytes, one.to, one.what->bytesWritten()) ||
         (touched.isWritten &&
          meet(touched.data, touched.bytes, one.from, one.what->bytesRead()));
}

Status CollectiveThread::waitFor(const Touched &touched) {
  for (size_t i = entries.size(); i-- > known;)
    if (isInTheWay(entries[i], touched))
      return waitUntil(i + 1);
  return Status::success();
}

Status CollectiveThread::waitUntil(size_t count) {
  std::unique_lock lock(mutex);
  advanced.wait(lock, [&] { return done >= count; });
  known = done;
  return status;
}

Status CollectiveThread::finish() {
  Status result = waitUntil(entries.size());
  std::lock_guard lock(mutex);
  entries.clear();
  ends.clear();
  submitted = exchanged = done = known = 0;
  status = Status::success();
  return result;
}

} // namespace tandem::runtime
