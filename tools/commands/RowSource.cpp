//===- RowSource.cpp - rows that are made when they are needed ------------===//
#include "tools/commands/RowSource.h"

#include "tools/commands/Ranks.h"

#include <map>
#include <mutex>
#include <new>
#include <set>

namespace tandem::commands {

Status forEachRow(runtime::ThreadPool &pool, int64_t count,
                  const std::function<Status(int64_t i, int thread)> &take) {
  constexpr size_t shown = 5;
  std::map<int64_t, Status> problems;
  std::mutex mutex;
  auto takeOrSay = [&](int64_t i, int thread) {
    Status status;
    try {
      status = take(i, thread);
    } catch (const std::bad_alloc &) { // not through the pool
      status = Status::failed("there is no memory for a row");
    }
    if (!status) {
      std::lock_guard lock(mutex);
      problems.emplace(i, std::move(status));
    }
  };
  pool.run(
      count, 1,
      [](void *context, int64_t begin, int64_t end, int thread) {
        for (int64_t i = begin; i < end; ++i)
          (*static_cast<decltype(takeOrSay) *>(context))(i, thread);
      },
      &takeOrSay);
  if (problems.empty())
    return Status::success();
  // Of a group that cannot be read, all rows say the same.
  std::string text;
  std::set<std::string> all;
  for (const auto &[i, status] : problems)
    if (all.insert(status.message()).second && all.size() <= shown)
      text += (text.empty() ? "" : "; ") + status.message();
  if (all.size() > shown)
    text += "; and " + std::to_string(all.size() - shown) + " more of " +
            std::to_string(count) + " rows";
  return {problems.begin()->second.code(), text};
}

Status takeRows(NamedArray &array, std::shared_ptr<const RowSource> source) {
  auto elements = io::elementCount(array.array.shape);
  int64_t bytes = artifact::byteSize(array.array.dtype);
  if (!elements || *elements > (int64_t(1) << 58) / bytes)
    return Status::usage(
        "expected less than 2^58 bytes, but got " +
        runtime::describe(array.array.dtype, array.array.shape));
  bytes *= *elements;
  if (bytes > mostAtOnce) {
    array.rows = std::move(source);
    return Status::success();
  }
  int64_t count = array.array.shape[0];
  int64_t each = count ? bytes / count : 0;
  array.array.bytes.resize(size_t(bytes));
  runtime::ThreadPool pool(threadsOfRank());
  return forEachRow(pool, count, [&](int64_t i, int) {
    return source->read(
        i,
        std::span(array.array.bytes).subspan(size_t(i * each), size_t(each)));
  });
}

} // namespace tandem::commands
