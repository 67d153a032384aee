//===- TableRows.h - rows of Parquet and Arrow files ----------------------===//
//
// An array of at most 64 MiB is read at once. Of a larger one a group of rows
// is read, and decompressed, when the first of its rows is needed, and stays as
// long as 64 MiB of groups have room (GroupCache). What is read for the second
// time, since rows are shuffled, is kept in a file without a name (KeptRows):
// each group is decoded twice at most.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_TABLEROWS_H
#define TANDEM_TOOLS_COMMANDS_TABLEROWS_H

#include "tools/commands/Arrays.h"

namespace tandem::commands {

/// Reads the columns that `argument` names; rows that have as many elements as
/// those of `value` (which may be null) get their shape. All is read at once
/// unless `takesRows`. Fails with Usage, naming file, column and row; with
/// Unsupported without libtandem-arrow.so.
Result<NamedArray> readTable(const io::Argument &argument,
                             const artifact::Value *value, bool takesRows);

} // namespace tandem::commands

#endif
