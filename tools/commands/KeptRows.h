//===- KeptRows.h - rows that were decoded, in a file without a name ------===//
//
// What takes long to decode and is too large for the memory is decoded once,
// where the folder for temporary files (TMPDIR, else /tmp) has room for it. The
// file has no name, so that nothing of it is left, however the process ends.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_KEPTROWS_H
#define TANDEM_TOOLS_COMMANDS_KEPTROWS_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tandem::commands {

/// Returns the folder for them.
std::string keptFolder();

/// Its functions may be called by several threads at once.
class KeptRows {
public:
  /// For `rows` rows of `each` bytes. Where there is no room for all of them,
  /// or no file can be made, a note says so of `what` ("images"), and none is
  /// kept.
  KeptRows(const std::string &what, int64_t rows, int64_t each);
  KeptRows(const KeptRows &) = delete;
  ~KeptRows();

  bool isThere() const { return file_ >= 0; }
  /// Returns whether the row is there and was read.
  bool read(int64_t row, std::span<std::byte> to) const;
  /// Keeps `count` rows from `row` on; where that fails, they are decoded
  /// again.
  void write(int64_t row, int64_t count, std::span<const std::byte> from);

private:
  int file_ = -1;
  int64_t each_;
  std::vector<std::atomic<uint8_t>> has_;
};

} // namespace tandem::commands

#endif
