//===- RowSource.h - rows that are made when they are needed --------------===//
//
// Images of a folder and samples of tars may be larger than the memory: what
// grows beyond 64 MiB as an array is left where it is, and read, decoded and
// looked at row by row.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_ROWSOURCE_H
#define TANDEM_TOOLS_COMMANDS_ROWSOURCE_H

#include "runtime/device/ThreadPool.h"
#include "tools/commands/Arrays.h"

namespace tandem::commands {

/// Arrays of more bytes are not made whole.
inline constexpr int64_t mostAtOnce = int64_t(64) << 20;

/// The rows of an array. Its functions are called by several threads at once.
class RowSource {
public:
  virtual ~RowSource() = default;
  /// Writes the elements of `row` into `to`, which has their size; messages
  /// begin with its name.
  virtual Status read(int64_t row, std::span<std::byte> to) const = 0;
  /// Returns where the row comes from, in quotes.
  virtual std::string nameOf(int64_t row) const = 0;
  /// Returns a sum of what is known of all rows without reading them.
  virtual uint32_t digest() const = 0;
};

/// Gives `array`, whose type and shape are set, the rows of `source`: reads all
/// of them at once, on all threads, if they are at most 64 MiB, and else leaves
/// them to be read when they are needed. Fails with the first few reasons why
/// rows cannot be read.
Status takeRows(NamedArray &array, std::shared_ptr<const RowSource> source);

/// Calls `take(i, thread)` for each i below `count` on the threads of `pool`.
/// Fails with the first few reasons, in the order of i.
Status forEachRow(runtime::ThreadPool &pool, int64_t count,
                  const std::function<Status(int64_t i, int thread)> &take);

/// Encoded files, as images, by their numbers.
class FileSource {
public:
  virtual ~FileSource() = default;
  virtual int64_t count() const = 0;
  virtual Result<std::vector<std::byte>> read(int64_t i) const = 0;
  virtual std::string nameOf(int64_t i) const = 0;
  virtual uint32_t digest() const = 0;
};

} // namespace tandem::commands

#endif
