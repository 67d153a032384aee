//===- TableRows.cpp - rows of Parquet and Arrow files --------------------===//
#include "tools/commands/TableRows.h"

#include "tools/commands/GroupCache.h"
#include "tools/commands/KeptRows.h"
#include "tools/commands/Ranks.h"
#include "tools/commands/RowSource.h"
#include "tools/commands/TableFiles.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

namespace tandem::commands {
namespace {

class TableRows : public RowSource {
public:
  explicit TableRows(std::shared_ptr<const TableFiles> files)
      : files_(std::move(files)), wasRead_(files_->groups().size()),
        kept_("rows", files_->shape()[0], files_->rowBytes()) {}

  Status read(int64_t row, std::span<std::byte> to) const override {
    if (kept_.read(row, to))
      return Status::success();
    size_t group = groupOf(row);
    auto bytes =
        cache_.get(group, files_->groups()[group].rows * files_->rowBytes(),
                   [&](size_t g) { return readGroup(g); });
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
  mutable GroupCache cache_{mostAtOnce};
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
