//===- Parquet.cpp - row groups of Parquet --------------------------------===//
#include "runtime/tables/Formats.h"

#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

namespace tandem::tables {
namespace {

using arrow::Status;

/// So many rows are decoded at a time: what is beside the numbers themselves is
/// as large as such a batch, and not as a group.
constexpr int64_t batchRows = 4096;

class Parquet : public Format {
public:
  explicit Parquet(const std::string &path) : Format(path) {}

  Status load() {
    ARROW_ASSIGN_OR_RAISE(auto source, open());
    metadata_ = parquet::ReadMetaData(source);
    ARROW_ASSIGN_OR_RAISE(auto reader, makeReader());
    ARROW_RETURN_NOT_OK(reader->GetSchema(&schema));
    for (int group = 0; group < metadata_->num_row_groups(); ++group) {
      int64_t rows = metadata_->RowGroup(group)->num_rows();
      if (rows < 0)
        return Status::Invalid("row group ", group, " has ", rows, " rows");
      groupRows.push_back(rows);
    }
    return Status::OK();
  }

  Status read(int64_t group, const std::vector<int> &columns,
              const Take &take) const override {
    ARROW_ASSIGN_OR_RAISE(auto reader, makeReader());
    std::vector<int> leaves;
    const auto &fields = reader->manifest().schema_fields;
    for (int column : columns) {
      if (size_t(column) >= fields.size())
        return Status::Invalid("the file has fewer columns than its schema");
      const parquet::arrow::SchemaField *field = &fields[size_t(column)];
      while (!field->is_leaf()) {
        if (field->children.size() != 1)
          return Status::Invalid("a column has several ones in it");
        field = &field->children[0];
      }
      leaves.push_back(field->column_index);
    }
    ARROW_ASSIGN_OR_RAISE(auto batches,
                          reader->GetRecordBatchReader({int(group)}, leaves));
    std::shared_ptr<arrow::RecordBatch> batch;
    while (true) {
      ARROW_RETURN_NOT_OK(batches->ReadNext(&batch));
      if (!batch)
        return Status::OK();
      ARROW_RETURN_NOT_OK(take(*batch));
    }
  }

private:
  /// One for each call: a reader is for one thread.
  arrow::Result<std::unique_ptr<parquet::arrow::FileReader>>
  makeReader() const {
    ARROW_ASSIGN_OR_RAISE(auto source, open());
    parquet::ReaderProperties properties(pool());
    properties.enable_buffered_stream(); // and not whole columns of the file
    properties.set_buffer_size(1 << 20);
    properties.set_page_checksum_verification(true);
    parquet::ArrowReaderProperties arrowProperties(/*use_threads=*/false);
    arrowProperties.set_batch_size(batchRows);
    arrowProperties.set_pre_buffer(false);
    parquet::arrow::FileReaderBuilder builder;
    ARROW_RETURN_NOT_OK(builder.Open(source, properties, metadata_));
    std::unique_ptr<parquet::arrow::FileReader> reader;
    ARROW_RETURN_NOT_OK(builder.memory_pool(pool())
                            ->properties(arrowProperties)
                            ->Build(&reader));
    return reader;
  }

  std::shared_ptr<parquet::FileMetaData> metadata_;
};

} // namespace

arrow::Result<std::unique_ptr<Format>> openParquet(const std::string &path) {
  auto made = std::make_unique<Parquet>(path);
  ARROW_RETURN_NOT_OK(made->load());
  return made;
}

} // namespace tandem::tables
