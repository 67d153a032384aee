//===- Print.h - numbers and tables on a terminal -------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_PRINT_H
#define TANDEM_TOOLS_COMMANDS_PRINT_H

#include "runtime/artifact/Status.h"
#include "runtime/tensor/Tensor.h"

#include <string>
#include <string_view>
#include <vector>

namespace tandem::commands {

/// Returns the shortest text that reads back as the scalar, in its own type.
std::string scalarText(const runtime::Tensor &scalar);

/// Returns the shortest text that reads back as `value`.
std::string numberText(double value);

/// Returns "a,b,c".
std::string withCommas(const std::vector<std::string> &texts);

/// Returns `value` with at most six digits, for people.
std::string roundedText(double value);

/// Returns a number of things a second: whole ones from 100 on.
std::string rateText(double value);

/// Returns "1.5 MiB".
std::string bytesText(int64_t bytes);

/// Returns the bytes, more than 0, that "1500000000", "500MB" or "6GiB" says.
Result<int64_t> bytesFrom(std::string_view text);

/// Returns "1:05" or "2:03:04".
std::string timeText(double seconds);

/// Prints rows to stdout in columns; the first column is left-aligned, and the
/// others are where `right` is false.
void printTable(const std::vector<std::vector<std::string>> &rows,
                bool right = false);

/// Names, of which people read the first few and how many there are.
class Names {
public:
  /// Adds `name` in quotes, and what follows it.
  void add(std::string_view name, const std::string &after = "");
  int64_t count() const { return count_; }
  /// Returns "", or `before` and the names.
  std::string after(const std::string &before) const;

private:
  int64_t count_ = 0;
  std::string text_;
};

/// Prints "warning: TEXT" to stderr, or where a rank's notes go (Ranks.h).
void warn(const std::string &text);

/// Prints "note: TEXT" in the same place.
void note(const std::string &text);

} // namespace tandem::commands

#endif
