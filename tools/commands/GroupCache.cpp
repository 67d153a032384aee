//===- GroupCache.cpp - groups of rows that were read last ----------------===//
#include "tools/commands/GroupCache.h"

namespace tandem::commands {

Result<GroupCache::Bytes> GroupCache::get(size_t group, int64_t size,
                                          const Read &read) {
  std::unique_lock lock(mutex_);
  while (true) {
    auto at = all_.find(group);
    if (at == all_.end()) {
      // Who reads waits for nobody, so that there is an end to this.
      if (makeRoom(size) || reading_ == 0)
        break;
    } else if (at->second.isReady) {
      at->second.used = ++clock_;
      return at->second.status ? Result<Bytes>(at->second.bytes)
                               : Result<Bytes>(at->second.status);
    }
    changed_.wait(lock);
  }
  all_[group].used = ++clock_;
  reserved_ += size;
  ++reading_;
  lock.unlock();
  Result<Bytes> bytes = read(group);
  lock.lock();
  reserved_ -= size;
  --reading_;
  Entry &entry = all_[group];
  entry.isReady = true;
  if (bytes) {
    entry.bytes = *bytes;
    held_ += int64_t(entry.bytes->size());
  } else {
    entry.status = bytes.status();
  }
  changed_.notify_all();
  return bytes;
}

/// Lets those go that were not used for the longest time, and returns whether
/// there is room for `size` bytes.
bool GroupCache::makeRoom(int64_t size) {
  while (size > most_ - held_ - reserved_) {
    auto oldest = all_.end();
    for (auto at = all_.begin(); at != all_.end(); ++at)
      if (at->second.bytes &&
          (oldest == all_.end() || at->second.used < oldest->second.used))
        oldest = at;
    if (oldest == all_.end())
      return false;
    held_ -= int64_t(oldest->second.bytes->size());
    all_.erase(oldest);
  }
  return true;
}

} // namespace tandem::commands
