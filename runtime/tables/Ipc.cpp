//===- Ipc.cpp - record batches of Arrow's files --------------------------===//
#include "runtime/tables/Formats.h"

#include <arrow/ipc/api.h>

namespace tandem::tables {
namespace {

using arrow::Status;

/// About how many bits a row takes in the file, before it is compressed.
double bitsOf(const arrow::DataType &type) {
  // What a row of any length has is not known.
  constexpr double someElements = 64, someBytes = 512;
  switch (type.id()) {
  case arrow::Type::EXTENSION:
    return bitsOf(
        *static_cast<const arrow::ExtensionType &>(type).storage_type());
  case arrow::Type::FIXED_SIZE_LIST: {
    const auto &list = static_cast<const arrow::FixedSizeListType &>(type);
    return list.list_size() * bitsOf(*list.value_type());
  }
  case arrow::Type::LIST:
  case arrow::Type::LARGE_LIST: {
    const auto &list = static_cast<const arrow::BaseListType &>(type);
    return 32 + someElements * bitsOf(*list.value_type());
  }
  case arrow::Type::DICTIONARY: // it is read with its values
    return someBytes * 8;
  default:
    return type.bit_width() >= 0 ? type.bit_width() : someBytes * 8;
  }
}

class Ipc : public Format {
public:
  explicit Ipc(const std::string &path) : Format(path) {}

  Status load() {
    ARROW_ASSIGN_OR_RAISE(auto reader, makeReader({}));
    schema = reader->schema();
    if (schema->num_fields() == 0)
      return Status::Invalid("it has no columns");
    // Arrow says how many rows a batch has where it reads it: of the narrowest
    // column. (Its CountRows reads all columns, and says but the sum.)
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
    for (int i = 1; i < schema->num_fields(); ++i)
      if (bitsOf(*schema->field(i)->type()) <
          bitsOf(*schema->field(best)->type()))
        best = i;
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
