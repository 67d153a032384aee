//===- TableFiles.h - columns of Parquet and Arrow files ------------------===//
//
// NAME=@F-{000..003}.parquet:COLUMNS: the columns of several files, one behind
// the other. They are read by libtandem-arrow.so (runtime/tables). A row of the
// array has the numbers of the columns, in the order that was asked for; they
// become one type. Files may have their columns in another order each.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_TABLEFILES_H
#define TANDEM_TOOLS_COMMANDS_TABLEFILES_H

#include "runtime/io/Argument.h"
#include "runtime/tables/Tables.h"

#include <memory>

namespace tandem::commands {

/// Opens the library, where it is not yet. Fails with Unsupported, saying how
/// `path` can be read otherwise.
Result<const tables::Reader *> openTables(const std::string &path);

/// Returns the files of that library and of all that it loads, which may lie
/// anywhere; none where it cannot be opened. They are asked of a process that
/// ends: some of Arrow's libraries start a thread.
std::vector<std::string> tableLibraries();

/// What is read at once: a row group, or a record batch.
struct TableGroup {
  uint32_t file = 0;
  int64_t index = 0;       ///< in its file
  int64_t first = 0;       ///< its first row, of all files
  int64_t firstInFile = 0; ///< the same, of its own
  int64_t rows = 0;
};

class TableFiles {
public:
  /// Reads what the files say of their columns and groups. Fails with Usage,
  /// naming file and column, where one is missing, has no numbers, or is of
  /// another type than in the first file.
  static Result<std::shared_ptr<const TableFiles>>
  open(const io::Argument &argument);

  artifact::DType dtype() const { return dtype_; }
  /// [rows, ...]: of one column by its name what its lists have, of several the
  /// number of their elements.
  const std::vector<int64_t> &shape() const { return shape_; }
  int64_t rowBytes() const { return rowBytes_; }
  const std::vector<TableGroup> &groups() const { return groups_; }

  /// Reads all rows of a group; messages begin with its file.
  Status read(const TableGroup &group, std::span<std::byte> to) const;

  /// Returns "'F.parquet': row N", counted from 0 in its file.
  std::string nameOf(const TableGroup &group, int64_t row) const;
  /// Returns a sum of the columns' names, of what stands at the files' ends,
  /// and of pieces of them.
  uint32_t digest() const { return digest_; }

private:
  struct Close {
    const tables::Reader *reader;
    void operator()(tables::File *file) const { reader->close(file); }
  };
  struct File {
    std::string path;
    std::unique_ptr<tables::File, Close> file;
    std::vector<int64_t> columns; ///< those that were asked for
  };
  struct Column {
    std::string name, type;
    artifact::DType dtype;
    std::vector<int64_t> sizes; ///< -1: not known yet
    int64_t elements = 1;
    bool hasSizes() const;
  };

  Status openFile(File &file);
  Status choose(const io::Argument &argument);
  Status match(File &file);
  Status findSizes();
  Status joinTypes();
  Status sumFiles();
  std::vector<std::string> namesOf(const File &file) const;
  Status checkExact(const Column &column, const TableGroup &group,
                    std::span<const std::byte> from) const;

  const tables::Reader *reader_ = nullptr;
  std::vector<File> files_;
  std::vector<Column> columns_;
  std::vector<TableGroup> groups_;
  artifact::DType dtype_ = artifact::DType::F64;
  std::vector<int64_t> shape_;
  bool isOne_ = false;
  int64_t rowBytes_ = 0;
  uint32_t digest_ = 0;
};

} // namespace tandem::commands

#endif
