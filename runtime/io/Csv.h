//===- Csv.h - tables of numbers in text ----------------------------------===//
//
// Cells are parted by commas, rows by line ends; a cell may be in double
// quotes. If the cells of the first row are names, that row has the columns'
// names; an empty cell, 'NA' or '1e999' among numbers is no name but an error.
// What is read is an array [rows, columns] of f64 (of i64 or u64, where all are
// integers and one is too large for f64), or [rows] of one column asked for by
// its name or number. Errors say the line and the column.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_IO_CSV_H
#define TANDEM_RUNTIME_IO_CSV_H

#include "runtime/io/Array.h"

#include <optional>

namespace tandem::io {

/// Returns the columns `columns` of the text: names or (unless names are
/// numbers themselves) numbers from 1, parted by commas; A..B are those from A
/// to B, and -A is all but A. Empty: the column called `otherwise`, or all.
/// "header=yes" or "header=no", with a comma before what follows, says whether
/// the first line has names; it has to where that is 0, 1, 2, ... or 1, 2, 3,
/// ..., and other lines follow, or numbers among names that are not asked for.
/// A column of integers, one of which the floats `wanted` cannot hold, is an
/// error; numbers with a point or an exponent are rounded.
Result<Array> parseCsv(std::string_view text, std::string_view columns,
                       std::string_view otherwise,
                       std::optional<artifact::DType> wanted = std::nullopt);

/// Reads the file `path`; messages begin with it.
Result<Array> readCsv(const std::string &path, const std::string &columns,
                      const std::string &otherwise,
                      std::optional<artifact::DType> wanted = std::nullopt);

/// Returns a text as a cell: in quotes where it has what parts cells.
std::string csvCell(const std::string &text);

/// An array, of which each row of the first dimension is a row of a table.
struct CsvColumns {
  std::string name;
  ArrayView array;
};

/// Returns the table of arrays with equally many rows: columns NAME, or NAME.0,
/// NAME.1, ... where a row has many elements. Each number is the shortest text
/// that reads back the same.
std::string csvText(std::span<const CsvColumns> columns);

} // namespace tandem::io

#endif
