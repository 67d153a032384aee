//===- Ipc.cpp - record batches of Arrow's files --------------------------===//
#include "runtime/tables/Formats.h"

#include <arrow/ipc/api.h>
#include <limits>

namespace tandem::tables {
namespace {

using arrow::Status;

class Ipc : public Format {
public:
  explicit Ipc(const std::string &path) : Format(path) {}

  Status load() {
    ARROW_ASSIGN_OR_RAISE(auto reader, makeReader({}));
    schema = reader->schema();
    if (schema->num_fields() == 0)
      return Status::Invalid("it has no columns");
    // Arrow says how many rows a batch has where it reads it: of the narrowest
    // column.
    ARROW_ASSIGN_OR_RAISE(auto narrow, makeReader({narrowest()}));
    for (int i = 0; i < narrow->num_record_batches(); ++i) {
      ARROW_ASSIGN_OR_RAISE(auto batch, narrow->ReadRecordBatch(i));
      if (batch->num_rows() < 0)
        return Status::Invalid("record batch ", i, " has ", batch->num_rows(),
                               " rows");
      groupRows.push_back(batch->num_rows());
    }
    return Status::OK();
  }

  Status read(int64_t group, const std::vector<int> &columns,
              const Take &take) const override {
    ARROW_ASSIGN_OR_RAISE(auto reader, makeReader(columns));
    if (group >= reader->num_record_batches())
      return Status::Invalid("the file has changed since it was opened");
    ARROW_ASSIGN_OR_RAISE(auto batch, reader->ReadRecordBatch(int(group)));
    return take(*batch);
  }

private:
  /// One for each call: a reader is for one thread, and for these columns.
  arrow::Result<std::shared_ptr<arrow::ipc::RecordBatchFileReader>>
  makeReader(const std::vector<int> &columns) const {
    ARROW_ASSIGN_OR_RAISE(auto source, open());
    auto options = arrow::ipc::IpcReadOptions::Defaults();
    options.memory_pool = pool();
    options.use_threads = false;
    options.included_fields = columns;
    return arrow::ipc::RecordBatchFileReader::Open(source, options);
  }

  int narrowest() const {
    int best = 0;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int i = 0; i < schema->num_fields(); ++i) {
      const arrow::DataType &type = *schema->field(i)->type();
      if (arrow::is_primitive(type.id()) && type.bit_width() < least) {
        least = type.bit_width();
        best = i;
      }
    }
    return best;
  }
};

} // namespace

arrow::Result<std::unique_ptr<Format>> openIpc(const std::string &path) {
  auto made = std::make_unique<Ipc>(path);
  ARROW_RETURN_NOT_OK(made->load());
  return made;
}

} // namespace tandem::tables
