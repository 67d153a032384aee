//===- Arrow.cpp - tables by what a file begins with ----------------------===//
//
// Arrow returns statuses, and Parquet throws: both end here, as do wants of
// memory, which a damaged file can ask any amount of.
//
//===----------------------------------------------------------------------===//
#include "runtime/tables/Formats.h"

#include <algorithm>
#include <cstdio>
#include <exception>

namespace tandem::tables {

using arrow::Status;

struct File {
  std::unique_ptr<Format> format;
  std::vector<std::string> types;
  std::vector<int64_t> firstRows; ///< of each group
};

namespace {

/// The first line, without what a terminal would obey.
int refuse(Reason *reason, std::string_view text) {
  text = text.substr(0, text.find('\n'));
  size_t count = std::min(text.size(), sizeof reason->text - 1);
  std::transform(
      text.begin(), text.begin() + ptrdiff_t(count), reason->text,
      [](unsigned char c) { return c < 0x20 || c == 0x7f ? '?' : char(c); });
  reason->text[count] = 0;
  return -1;
}

/// Calls `body`, and says why it failed.
template <typename Body> int attempt(Reason *reason, Body body) {
  try {
    Status status = body();
    return status.ok() ? 0 : refuse(reason, status.message());
  } catch (const std::bad_alloc &) {
    return refuse(reason, "there is no memory for what it says to have");
  } catch (const std::exception &error) {
    return refuse(reason, error.what());
  } catch (...) {
    return refuse(reason, "it cannot be read");
  }
}

Status openAny(const char *path, File &file) {
  std::string begin(6, '\0');
  {
    ARROW_ASSIGN_OR_RAISE(auto source,
                          arrow::io::ReadableFile::Open(path, pool()));
    ARROW_ASSIGN_OR_RAISE(int64_t read,
                          source->ReadAt(0, int64_t(begin.size()), &begin[0]));
    begin.resize(size_t(read));
  }
  if (begin.starts_with("PAR1")) {
    ARROW_ASSIGN_OR_RAISE(file.format, openParquet(path));
  } else if (begin == "ARROW1") {
    ARROW_ASSIGN_OR_RAISE(file.format, openIpc(path));
  } else {
    return Status::Invalid(
        begin.starts_with("PARE") ? "it is Parquet with an encrypted footer"
        : begin.starts_with("FEA1")
            ? "it is the first version of Feather: expected the second one"
        : begin.starts_with("\xff\xff\xff\xff")
            ? "it is a stream of Arrow: expected a file, with a footer"
            : "it is neither Parquet nor a file of Arrow");
  }
  const Format &format = *file.format;
  for (const auto &field : format.schema->fields())
    file.types.push_back(field->type()->ToString());
  int64_t rows = 0;
  for (int64_t count : format.groupRows) {
    file.firstRows.push_back(rows);
    if (__builtin_add_overflow(rows, count, &rows))
      return Status::Invalid("it says to have more than 2^63 rows");
  }
  return Status::OK();
}

int openFile(const char *path, File **file, Reason *reason) {
  return attempt(reason, [&] {
    auto made = std::make_unique<File>();
    ARROW_RETURN_NOT_OK(openAny(path, *made));
    *file = made.release();
    return Status::OK();
  });
}

void closeFile(File *file) { delete file; }

int64_t columnsOf(const File *file) {
  return file->format->schema->num_fields();
}

void columnOf(const File *file, int64_t index, Column *column) {
  const arrow::Field &field = *file->format->schema->field(int(index));
  *column = numbersOf(*field.type());
  column->name = field.name().c_str();
  column->type = file->types[size_t(index)].c_str();
}

int64_t groupsOf(const File *file) {
  return int64_t(file->format->groupRows.size());
}

int64_t rowsOf(const File *file, int64_t group) {
  return file->format->groupRows[size_t(group)];
}

/// Nothing of a batch is believed before.
Status validate(const arrow::RecordBatch &batch, const Format &format,
                const std::vector<int> &columns) {
  if (size_t(batch.num_columns()) != columns.size())
    return Status::Invalid("expected ", columns.size(), " columns, but got ",
                           batch.num_columns());
  for (int i = 0; i < batch.num_columns(); ++i) {
    const arrow::Field &field = *format.schema->field(columns[size_t(i)]);
    auto array = batch.column(i);
    if (!array->type()->Equals(*field.type()))
      return Status::Invalid(
          "column '", field.name(), "' is of ", array->type()->ToString(),
          ", but its schema says ", field.type()->ToString());
    if (array->length() != batch.num_rows())
      return Status::Invalid("column '", field.name(), "' has ",
                             array->length(), " rows of ", batch.num_rows());
    Status status = array->ValidateFull();
    if (!status.ok())
      return status.WithMessage("column '", field.name(),
                                "': ", status.message());
  }
  return Status::OK();
}

int sizesOf(const File *file, int64_t group, Column *column, int64_t index,
            Reason *reason) {
  return attempt(reason, [&]() -> Status {
    const Format &format = *file->format;
    bool isDone = false;
    Status status =
        format.read(group, {int(index)}, [&](const arrow::RecordBatch &batch) {
          ARROW_RETURN_NOT_OK(validate(batch, format, {int(index)}));
          if (batch.num_rows() == 0)
            return Status::OK();
          ARROW_RETURN_NOT_OK(
              firstSizes(batch.column(0),
                         format.schema->field(int(index))->name(), *column));
          isDone = true;
          return Status::Cancelled("the first batch is enough");
        });
    return isDone ? Status::OK() : status;
  });
}

Status readPlaces(const File &file, int64_t group, const Place *places,
                  size_t count) {
  const Format &format = *file.format;
  std::vector<int> columns;
  for (size_t i = 0; i < count; ++i)
    columns.push_back(int(places[i].column));
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  int64_t first = file.firstRows[size_t(group)], done = 0,
          rows = format.groupRows[size_t(group)];
  auto take = [&](const arrow::RecordBatch &batch) {
    ARROW_RETURN_NOT_OK(validate(batch, format, columns));
    if (batch.num_rows() > rows - done)
      return Status::Invalid("group ", group, " has more than the ", rows,
                             " rows that the file says");
    for (size_t i = 0; i < count; ++i) {
      Place place = places[i];
      auto at =
          std::lower_bound(columns.begin(), columns.end(), int(place.column)) -
          columns.begin();
      place.to += done * place.stride;
      ARROW_RETURN_NOT_OK(
          copyNumbers(batch.column(int(at)),
                      format.schema->field(int(place.column))->name(),
                      first + done, place));
    }
    done += batch.num_rows();
    return Status::OK();
  };
  ARROW_RETURN_NOT_OK(format.read(group, columns, take));
  if (done != rows)
    return Status::Invalid("group ", group, " has ", done, " rows of the ",
                           rows, " that the file says");
  return Status::OK();
}

int readGroup(const File *file, int64_t group, const Place *places,
              size_t count, Reason *reason) {
  return attempt(reason,
                 [&] { return readPlaces(*file, group, places, count); });
}

constexpr Reader reader = {kVersion, openFile, closeFile, columnsOf, columnOf,
                           groupsOf, rowsOf,   sizesOf,   readGroup};

} // namespace
} // namespace tandem::tables

extern "C" __attribute__((visibility("default"))) const tandem::tables::Reader *
tandem_arrow() {
  return &tandem::tables::reader;
}
