//===- Tables.h - what libtandem-arrow.so gives ---------------------------===//
//
// Reads columns of numbers of Parquet and of Arrow's files (IPC with a footer,
// which is Feather's second version) by Apache Arrow's C++ library. It is
// opened at run time, so that the runtime does not need Arrow.
//
// The rows of a file lie in groups: Parquet's row groups, Arrow's record
// batches. A group is what is read and decompressed at once. Functions may be
// called from several threads at once, also of one file; none throws, prints or
// ends the process, whatever the bytes are.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_TABLES_TABLES_H
#define TANDEM_RUNTIME_TABLES_TABLES_H

#include <cstddef>
#include <cstdint>

namespace tandem::tables {

/// Why something failed, a sentence without its end; ends with 0.
struct Reason {
  char text[400];
};

inline constexpr int kVersion = 1;

/// Lists in lists have at most so many dimensions.
inline constexpr int kMostDims = 8;

/// What is known of a file without reading its rows.
struct File;

struct Column {
  const char *name; ///< lives as long as the file
  const char *type; ///< Arrow's name of it: "list<item: float>"
  int element;      ///< an artifact::DType, or -1: it has no numbers
  int rank;         ///< how many lists are in each other: 0 for numbers
  /// How long the lists are; -1 where each list says it itself.
  int64_t sizes[kMostDims];
};

/// Where the numbers of a column go. Those of a row lie side by side, and rows
/// `stride` bytes apart; a bool takes a byte.
struct Place {
  int64_t column;
  std::byte *to;
  int64_t stride;
  const int64_t *sizes; ///< that every list has to have, `rank` of them
};

/// What the library's function "tandem_arrow" returns. Functions that return an
/// int return 0, or -1 and why.
struct Reader {
  int version; ///< kVersion
  /// Reads what a file says of its columns and groups, which it has none open
  /// for afterwards.
  int (*open)(const char *path, File **file, Reason *reason);
  void (*close)(File *file);

  int64_t (*columns)(const File *file);
  void (*column)(const File *file, int64_t index, Column *column);
  int64_t (*groups)(const File *file);
  int64_t (*rows)(const File *file, int64_t group);

  /// Replaces -1 among a column's sizes by what the first row of `group` has.
  int (*sizes)(const File *file, int64_t group, Column *column, int64_t index,
               Reason *reason);
  /// Reads all rows of a group. Fails, naming the column and its row in the
  /// file (from 0), where a number is missing or a list has another length.
  int (*read)(const File *file, int64_t group, const Place *places,
              size_t count, Reason *reason);
};

} // namespace tandem::tables

#endif
