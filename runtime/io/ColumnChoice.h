//===- ColumnChoice.h - which columns of a table are wanted ---------------===//
//
// What stands behind ".csv:", ".parquet:", ".arrow:" and ".feather:": names or
// (unless names are numbers themselves) numbers from 1, parted by commas; A..B
// are those from A to B, and -A is all but A. Nothing: the column that is
// called as the array is, or all.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_IO_COLUMNCHOICE_H
#define TANDEM_RUNTIME_IO_COLUMNCHOICE_H

#include "runtime/artifact/Status.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::io {

class ColumnChoice {
public:
  /// Of a table with so many columns. `names`, which must outlive the choice,
  /// may be empty: there are none.
  ColumnChoice(size_t columns, const std::vector<std::string> &names)
      : columns(columns), names(names) {}

  /// Fails with Usage, naming the columns that there are.
  Status choose(std::string_view spec, std::string_view otherwise);

  std::vector<size_t> chosen; ///< in the order that was asked for
  bool isOne = false; ///< one column by its name: an array without columns

private:
  Status expectOne(std::string_view name) const;
  std::optional<size_t> find(std::string_view name) const;
  Status add(std::string_view part, std::vector<size_t> &to) const;
  std::string known() const;

  size_t columns;
  const std::vector<std::string> &names;
};

/// Returns the text without blanks and tabs around it.
std::string_view trimmed(std::string_view text);

/// True for decimal digits, before which a sign may stand.
bool isDigits(std::string_view text);

} // namespace tandem::io

#endif
