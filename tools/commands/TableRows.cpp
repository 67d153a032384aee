//===- TableRows.cpp - rows of Parquet and Arrow files --------------------===//
#include "tools/commands/TableRows.h"

#include "tools/commands/KeptRows.h"
#include "tools/commands/Ranks.h"
#include "tools/commands/RowSource.h"
#include "tools/commands/TableFiles.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

namespace tandem::commands {
namespace {

/// The groups that were read last, by their numbers.
class GroupCache {
public:
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;
  using Read = std::function<Result<Bytes>(size_t group)>;

  /// Returns a group that is there, or is there when another thread has read
  /// it; else reads it.
  Result<Bytes> get(size_t group, const Read &read) {
    std::unique_lock lock(mutex_);
    for (auto at = all_.find(group); at != all_.end(); at = all_.find(group)) {
      if (at->second.isReady) {
        at->second.used = ++clock_;
        return at->second.status ? Result<Bytes>(at->second.bytes)
                                 : Result<Bytes>(at->second.status);
      }
      changed_.wait(lock);
    }
    all_[group].used = ++clock_;
    lock.unlock();
    Result<Bytes> bytes = read(group);
    lock.lock();
    Entry &entry = all_[group];
    entry.isReady = true;
    if (bytes) {
      entry.bytes = *bytes;
      held_ += int64_t(entry.bytes->size());
    } else {
      entry.status = bytes.status();
    }
    evict(group);
    changed_.notify_all();
    return bytes;
  }

private:
  struct Entry {
    bool isReady = false;
    Status status; ///< why it cannot be read, which is not tried again
    Bytes bytes;
    uint64_t used = 0;
  };

  /// Lets those go that were not used for the longest time, but for `newest`.
  void evict(size_t newest) {
    constexpr int64_t most = int64_t(64) << 20;
    while (held_ > most) {
      auto oldest = all_.end();
      for (auto at = all_.begin(); at != all_.end(); ++at)
        if (at->first != newest && at->second.bytes &&
            (oldest == all_.end() || at->second.used < oldest->second.used))
          oldest = at;
      if (oldest == all_.end())
        return;
      held_ -= int64_t(oldest->second.bytes->size());
      all_.erase(oldest);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<size_t, Entry> all_;
  uint64_t clock_ = 0;
  int64_t held_ = 0;
};

class TableRows : public RowSource {
public:
  explicit TableRows(std::shared_ptr<const TableFiles> files)
      : files_(std::move(files)), wasRead_(files_->groups().size()),
        kept_("rows", files_->shape()[0], files_->rowBytes()) {}

  Status read(int64_t row, std::span<std::byte> to) const override {
    if (kept_.read(row, to))
      return Status::success();
    size_t group = groupOf(row);
    auto bytes = cache_.get(group, [&](size_t g) { return readGroup(g); });
    if (!bytes)
      return std::move(bytes).status();
    int64_t at = (row - files_->groups()[group].first) * files_->rowBytes();
    std::memcpy(to.data(), (*bytes)->data() + at, to.size());
    return Status::success();
  }

  std::string nameOf(int64_t row) const override {
    return files_->nameOf(files_->groups()[groupOf(row)], row);
  }
  uint32_t digest() const override { return files_->digest(); }

private:
  size_t groupOf(int64_t row) const {
    // The last one that begins there is the only one that is not empty.
    const auto &groups = files_->groups();
    return size_t(
               std::ranges::upper_bound(groups, row, {}, &TableGroup::first) -
               groups.begin()) -
           1;
  }

  /// What a thread waits for must come to an end.
  Result<GroupCache::Bytes> readGroup(size_t index) const try {
    const TableGroup &group = files_->groups()[index];
    auto bytes = std::make_shared<std::vector<std::byte>>(
        size_t(group.rows * files_->rowBytes()));
    if (Status status = files_->read(group, *bytes); !status)
      return status;
    if (wasRead_[index].exchange(1))
      kept_.write(group.first, group.rows, *bytes);
    return GroupCache::Bytes(std::move(bytes));
  } catch (const std::bad_alloc &) {
    return Status::failed("there is no memory for a group of " +
                          std::to_string(files_->groups()[index].rows) +
                          " rows");
  }

  std::shared_ptr<const TableFiles> files_;
  mutable GroupCache cache_;
  mutable std::vector<std::atomic<uint8_t>> wasRead_;
  mutable KeptRows kept_;
};

/// Rows of as many elements get the shape of the value's.
void shapeRows(std::vector<int64_t> &shape, const artifact::Value &value) {
  if (value.shape.empty())
    return;
  std::span own(value.shape.begin() + 1, value.shape.end());
  auto elements = io::elementCount(std::span(shape).subspan(1));
  if (elements != io::elementCount(own))
    return;
  shape.resize(1);
  shape.insert(shape.end(), own.begin(), own.end());
}

Status readWhole(const TableFiles &files, std::vector<std::byte> &to) {
  const auto &groups = files.groups();
  to.resize(size_t(files.shape()[0] * files.rowBytes()));
  runtime::ThreadPool pool(threadsOfRank());
  return forEachRow(pool, int64_t(groups.size()), [&](int64_t i, int) {
    const TableGroup &group = groups[size_t(i)];
    return files.read(
        group, std::span(to).subspan(size_t(group.first * files.rowBytes()),
                                     size_t(group.rows * files.rowBytes())));
  });
}

} // namespace

Result<NamedArray> readTable(const io::Argument &argument,
                             const artifact::Value *value, bool takesRows) {
  auto files = TableFiles::open(argument);
  if (!files)
    return std::move(files).status();
  NamedArray made;
  made.name = argument.name;
  made.file = argument.text;
  made.array.dtype = (*files)->dtype();
  made.array.shape = (*files)->shape();
  if (value)
    shapeRows(made.array.shape, *value);
  int64_t bytes = (*files)->shape()[0] * (*files)->rowBytes();
  if (takesRows && bytes > mostAtOnce) {
    made.rows = std::make_shared<TableRows>(*files);
    return made;
  }
  if (Status status = readWhole(**files, made.array.bytes); !status)
    return status;
  return made;
}

} // namespace tandem::commands
