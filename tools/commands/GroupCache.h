//===- GroupCache.h - groups of rows that were read last ------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_GROUPCACHE_H
#define TANDEM_TOOLS_COMMANDS_GROUPCACHE_H

#include "runtime/artifact/Status.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace tandem::commands {

/// Keeps groups by their numbers, of at most so many bytes together with those
/// that are being read: a thread whose group has no room waits until others
/// were read. One larger group is read alone. Its function may be called by
/// several threads at once.
class GroupCache {
public:
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;
  using Read = std::function<Result<Bytes>(size_t group)>;

  explicit GroupCache(int64_t mostBytes) : most_(mostBytes) {}

  /// Returns a group that is there, or is there when another thread has read
  /// it; else reads it. It has `size` bytes. `read` must not throw, nor call
  /// this.
  Result<Bytes> get(size_t group, int64_t size, const Read &read);

private:
  struct Entry {
    bool isReady = false;
    Status status; ///< why it cannot be read, which is not tried again
    Bytes bytes;
    uint64_t used = 0;
  };

  bool makeRoom(int64_t size);

  const int64_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<size_t, Entry> all_;
  uint64_t clock_ = 0;
  int64_t held_ = 0;     ///< bytes of groups that are there
  int64_t reserved_ = 0; ///< of those that are being read
  int64_t reading_ = 0;  ///< how many these are
};

} // namespace tandem::commands

#endif
