//===- Formats.h - the two formats of tables ------------------------------===//
//
// Internal to the library: Arrow's types are seen here, and by nobody else.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_TABLES_FORMATS_H
#define TANDEM_RUNTIME_TABLES_FORMATS_H

#include "runtime/tables/Tables.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <functional>
#include <memory>
#include <string>
#include <vector>

// FileReader::GetRecordBatchReader returns a Result from there on.
static_assert(ARROW_VERSION_MAJOR >= 21, "expected Arrow 21 or newer");

namespace tandem::tables {

/// The system's memory: other pools of Arrow have threads of their own.
inline arrow::MemoryPool *pool() { return arrow::system_memory_pool(); }

/// Takes one batch of rows after the other.
using Take = std::function<arrow::Status(const arrow::RecordBatch &)>;

/// A file of one format: its rows, by groups.
class Format {
public:
  virtual ~Format() = default;

  const std::string path;
  std::shared_ptr<arrow::Schema> schema;
  std::vector<int64_t> groupRows;

  /// Calls `take` with batches that have the columns `columns` (ascending, each
  /// once) alone, until the group or an error ends it.
  virtual arrow::Status read(int64_t group, const std::vector<int> &columns,
                             const Take &take) const = 0;

protected:
  explicit Format(std::string path) : path(std::move(path)) {}
  arrow::Result<std::shared_ptr<arrow::io::ReadableFile>> open() const {
    return arrow::io::ReadableFile::Open(path, pool());
  }
};

// They may throw, too.
arrow::Result<std::unique_ptr<Format>> openParquet(const std::string &path);
arrow::Result<std::unique_ptr<Format>> openIpc(const std::string &path);

/// The numbers of a type: whose, in how many lists. Its name and type are left
/// out.
Column numbersOf(const arrow::DataType &type);

/// Copies a column of a batch, whose first row is `first` of the file.
arrow::Status copyNumbers(std::shared_ptr<arrow::Array> array,
                          const std::string &name, int64_t first,
                          const Place &place);

/// Replaces -1 among the sizes by those of the first row.
arrow::Status firstSizes(std::shared_ptr<arrow::Array> array,
                         const std::string &name, Column &column);

} // namespace tandem::tables

#endif
