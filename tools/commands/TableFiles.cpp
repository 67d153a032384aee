//===- TableFiles.cpp - columns of Parquet and Arrow files ----------------===//
#include "tools/commands/TableFiles.h"

#include "runtime/comm/Plugin.h"
#include "runtime/io/Cast.h"
#include "runtime/io/ColumnChoice.h"
#include "runtime/io/Elements.h"
#include "runtime/io/File.h"
#include "runtime/io/Foreign.h"
#include "tools/commands/Ranks.h"
#include "tools/commands/RowSource.h"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <set>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

namespace tandem::commands {

using artifact::DType;

namespace {

uint32_t sumWith(uint32_t crc, io::Bytes bytes) {
  return uint32_t(crc32_z(crc, reinterpret_cast<const Bytef *>(bytes.data()),
                          bytes.size()));
}
uint32_t sumWith(uint32_t crc, std::string_view text) {
  return sumWith(crc, std::as_bytes(std::span(text)));
}

bool isWide(DType type) { return type == DType::I64 || type == DType::U64; }

/// The type that holds all: their own, else i64 (u64 where no sign is needed)
/// of integers, and f64.
DType joined(const std::vector<DType> &types) {
  if (std::ranges::all_of(types, [&](DType t) { return t == types[0]; }))
    return types[0];
  if (!std::ranges::all_of(types, io::isInteger))
    return DType::F64;
  bool hasWide = std::ranges::find(types, DType::U64) != types.end();
  auto isSigned = [](DType t) {
    return t == DType::I8 || t == DType::I16 || t == DType::I32 ||
           t == DType::I64;
  };
  return hasWide && std::ranges::none_of(types, isSigned) ? DType::U64
                                                          : DType::I64;
}

/// Whether the i-th integer, of a type that isWide, is one of `to`.
bool isExact(DType from, io::Bytes bytes, int64_t i, DType to) {
  uint64_t bits;
  std::memcpy(&bits, bytes.data() + i * 8, 8);
  bool isNegative = from == DType::I64 && int64_t(bits) < 0;
  if (to == DType::I64)
    return from == DType::I64 || int64_t(bits) >= 0;
  if (to != DType::F64)
    return true;
  uint64_t magnitude = isNegative ? 0 - bits : bits;
  auto number = double(magnitude);
  return number < 0x1p64 && uint64_t(number) == magnitude;
}

} // namespace

Result<const tables::Reader *> openTables(const std::string &path) {
  auto reader = comm::openTable<tables::Reader>(
      "reader of Parquet and Arrow", "arrow", "tandem_arrow", tables::kVersion);
  if (reader)
    return *reader;
  return Status::unsupported(io::inQuotes(path) +
                             ": Parquet and Arrow need libtandem-arrow.so, "
                             "which is built where Apache "
                             "Arrow's C++ libraries are (docs/INSTALL.md): " +
                             reader.status().message() +
                             std::string(io::withoutTables));
}

std::vector<std::string> tableLibraries() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return {};
  pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    static_cast<void>(openTables(""));
    std::ifstream maps("/proc/self/maps");
    std::string text;
    for (std::string line; std::getline(maps, line);)
      if (size_t path = line.find('/'); path != line.npos)
        text += line.substr(path) + '\n';
    for (std::string_view left = text; !left.empty();) {
      ssize_t done = ::write(ends[1], left.data(), left.size());
      if (done <= 0)
        break;
      left.remove_prefix(size_t(done));
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char piece[4096];
  for (ssize_t count; (count = ::read(ends[0], piece, sizeof piece)) > 0;)
    text.append(piece, size_t(count));
  ::close(ends[0]);
  if (child > 0)
    ::waitpid(child, nullptr, 0);
  std::set<std::string> files;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    files.insert(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return {files.begin(), files.end()};
}

bool TableFiles::Column::hasSizes() const {
  return std::ranges::none_of(sizes, [](int64_t size) { return size < 0; });
}

std::vector<std::string> TableFiles::namesOf(const File &file) const {
  std::vector<std::string> names;
  for (int64_t i = 0; i < reader_->columns(file.file.get()); ++i) {
    tables::Column column = {};
    reader_->column(file.file.get(), i, &column);
    names.emplace_back(column.name);
  }
  return names;
}

Status TableFiles::openFile(File &file) {
  // What is no regular file is said as of other formats.
  auto present = io::InputFile::open(file.path);
  if (!present)
    return std::move(present).status();
  tables::Reason reason = {};
  tables::File *made = nullptr;
  if (reader_->open(file.path.c_str(), &made, &reason))
    return Status::usage(io::inQuotes(file.path) + ": " + reason.text);
  file.file = {made, Close{reader_}};
  return Status::success();
}

/// The columns of the first file.
Status TableFiles::choose(const io::Argument &argument) {
  const File &file = files_.front();
  std::vector<std::string> names = namesOf(file);
  io::ColumnChoice choice(names.size(), names);
  if (Status status = choice.choose(argument.member, argument.name); !status)
    return std::move(status).in(io::inQuotes(file.path));
  isOne_ = choice.isOne;
  for (size_t chosen : choice.chosen) {
    tables::Column column = {};
    reader_->column(file.file.get(), int64_t(chosen), &column);
    if (column.element < 0)
      return Status::usage(io::inQuotes(file.path) + ": column " +
                           io::inQuotes(names[chosen]) +
                           ": expected numbers, or lists of them, but it is " +
                           "of the type " + io::inQuotes(column.type));
    columns_.push_back({names[chosen],
                        column.type,
                        DType(column.element),
                        {column.sizes, column.sizes + column.rank}});
    files_.front().columns.push_back(int64_t(chosen));
  }
  return columns_.empty()
             ? Status::usage(io::inQuotes(file.path) + " has no columns")
             : Status::success();
}

/// Finds the same columns in another file, by their names.
Status TableFiles::match(File &file) {
  std::vector<std::string> names = namesOf(file);
  for (const Column &wanted : columns_) {
    auto where = [&] {
      return io::inQuotes(file.path) + ": column " + io::inQuotes(wanted.name);
    };
    auto count = std::ranges::count(names, wanted.name);
    if (count != 1)
      return Status::usage(where() + ": expected one, as in " +
                           io::inQuotes(files_.front().path) + ", but it has " +
                           std::to_string(count));
    auto index = std::ranges::find(names, wanted.name) - names.begin();
    tables::Column column = {};
    reader_->column(file.file.get(), index, &column);
    if (column.element != int(wanted.dtype) ||
        !std::equal(column.sizes, column.sizes + column.rank,
                    wanted.sizes.begin(), wanted.sizes.end()))
      return Status::usage(where() + ": expected the type " +
                           io::inQuotes(wanted.type) + ", as in " +
                           io::inQuotes(files_.front().path) + ", but it is " +
                           io::inQuotes(column.type));
    file.columns.push_back(index);
  }
  return Status::success();
}

/// How long lists are that say it themselves: as that of the first row.
Status TableFiles::findSizes() {
  for (size_t i = 0; i < columns_.size(); ++i) {
    Column &column = columns_[i];
    for (const TableGroup &group : groups_) {
      if (group.rows == 0 || column.hasSizes())
        continue;
      const File &file = files_[group.file];
      tables::Column found = {};
      found.rank = int(column.sizes.size());
      std::ranges::copy(column.sizes, found.sizes);
      tables::Reason reason = {};
      if (reader_->sizes(file.file.get(), group.index, &found, file.columns[i],
                         &reason))
        return Status::usage(io::inQuotes(file.path) + ": " + reason.text);
      std::copy_n(found.sizes, found.rank, column.sizes.begin());
      break;
    }
    for (int64_t &size : column.sizes)
      size = std::max<int64_t>(size, 0); // there is no row, or it is empty
    auto elements = io::elementCount(column.sizes);
    if (!elements || *elements > (int64_t(1) << 40))
      return Status::usage(io::inQuotes(files_.front().path) + ": column " +
                           io::inQuotes(column.name) +
                           ": expected at most 2^40 elements in a row, but "
                           "its lists have " +
                           io::shapeText(column.sizes));
    // Such rows take no bytes: there may be 2^58 of them in a small file.
    if (*elements == 0 && !groups_.empty() &&
        groups_.back().first + groups_.back().rows > 0)
      return Status::usage(io::inQuotes(files_.front().path) + ": column " +
                           io::inQuotes(column.name) +
                           ": expected at least one number in a row, but its "
                           "lists have " +
                           io::shapeText(column.sizes));
    column.elements = *elements;
  }
  return Status::success();
}

/// Sets type and shape.
Status TableFiles::joinTypes() {
  std::vector<DType> types;
  int64_t elements = 0;
  for (const Column &column : columns_) {
    types.push_back(column.dtype);
    elements += column.elements; // of at most 2^22 columns
  }
  dtype_ = joined(types);
  rowBytes_ = elements * artifact::byteSize(dtype_);
  int64_t rows =
      groups_.empty() ? 0 : groups_.back().first + groups_.back().rows;
  shape_ = {rows};
  if (isOne_)
    shape_.insert(shape_.end(), columns_[0].sizes.begin(),
                  columns_[0].sizes.end());
  else
    shape_.push_back(elements);
  return io::elementCount(shape_)
             ? Status::success()
             : Status::usage(io::inQuotes(files_.front().path) +
                             ": expected an array of fewer elements, but got " +
                             runtime::describe(dtype_, shape_));
}

/// At the end of either format stands where everything is, and of Parquet the
/// least and the greatest number of each column in each group. Arrow's says
/// nothing of its numbers: some are looked at, all over the file.
Status TableFiles::sumFiles() {
  constexpr int64_t most = 1 << 16, places = 64, each = 1 << 10;
  for (const Column &column : columns_)
    digest_ = sumWith(digest_, column.name + '\0');
  for (const File &file : files_) {
    auto input = io::InputFile::open(file.path);
    if (!input)
      return std::move(input).status();
    int64_t size = input->size();
    std::vector<std::byte> end(size_t(std::min(size, most)));
    if (Status status = input->readAt(size - int64_t(end.size()), end); !status)
      return status;
    digest_ = sumWith(sumWith(digest_, std::to_string(size) + '\0'), end);
    std::vector<std::byte> some(size_t(std::min(size, each)));
    for (int64_t i = 0; i < places; ++i) {
      int64_t at = (size - int64_t(some.size())) / places * i;
      if (Status status = input->readAt(at, some); !status)
        return status;
      digest_ = sumWith(digest_, some);
    }
  }
  return Status::success();
}

Result<std::shared_ptr<const TableFiles>>
TableFiles::open(const io::Argument &argument) {
  auto made = std::make_shared<TableFiles>();
  auto reader = openTables(argument.text);
  if (!reader)
    return std::move(reader).status();
  made->reader_ = *reader;
  for (std::string &path : argument.paths())
    made->files_.push_back({std::move(path), {}, {}});
  std::vector<File> &files = made->files_;
  runtime::ThreadPool pool(threadsOfRank());
  Status status = forEachRow(pool, int64_t(files.size()), [&](int64_t i, int) {
    return made->openFile(files[size_t(i)]);
  });
  if (!status)
    return status;
  if (Status chosen = made->choose(argument); !chosen)
    return chosen;
  status = forEachRow(pool, int64_t(files.size()) - 1, [&](int64_t i, int) {
    return made->match(files[size_t(i) + 1]);
  });
  if (!status)
    return status;
  int64_t first = 0;
  for (size_t f = 0; f < files.size(); ++f) {
    int64_t inFile = 0, count = (*reader)->groups(files[f].file.get());
    for (int64_t g = 0; g < count; ++g) {
      int64_t rows = (*reader)->rows(files[f].file.get(), g);
      made->groups_.push_back({uint32_t(f), g, first, inFile, rows});
      if (rows > (int64_t(1) << 58) - first)
        return Status::usage(io::inQuotes(files[f].path) +
                             ": it says to have more than 2^58 rows");
      first += rows;
      inFile += rows;
    }
  }
  for (auto step :
       {&TableFiles::findSizes, &TableFiles::joinTypes, &TableFiles::sumFiles})
    if (Status done = (*made.*step)(); !done)
      return done;
  return std::shared_ptr<const TableFiles>(std::move(made));
}

Status TableFiles::checkExact(const Column &column, const TableGroup &group,
                              io::Bytes from) const {
  int64_t count = isWide(column.dtype) ? int64_t(from.size()) / 8 : 0;
  for (int64_t i = 0; i < count; ++i)
    if (!isExact(column.dtype, from, i, dtype_))
      return Status::usage(
          "column " + io::inQuotes(column.name) + ", row " +
          std::to_string(group.firstInFile + i / column.elements) + ": " +
          io::elementText({column.dtype, {}, from}, i) +
          " is an integer that " + std::string(spelling(dtype_)) +
          " does not hold, the type of these columns together");
  return Status::success();
}

Status TableFiles::read(const TableGroup &group,
                        std::span<std::byte> to) const {
  const File &file = files_[group.file];
  int64_t wide = artifact::byteSize(dtype_), offset = 0;
  std::vector<std::vector<std::byte>> own(columns_.size());
  std::vector<tables::Place> places;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const Column &column = columns_[i];
    std::byte *at = to.data() + offset;
    int64_t stride = rowBytes_;
    if (column.dtype != dtype_) {
      stride = column.elements * artifact::byteSize(column.dtype);
      own[i].resize(size_t(group.rows * stride));
      at = own[i].data();
    }
    places.push_back({file.columns[i], at, stride, column.sizes.data()});
    offset += column.elements * wide;
  }
  tables::Reason reason = {};
  if (reader_->read(file.file.get(), group.index, places.data(), places.size(),
                    &reason))
    return Status::usage(io::inQuotes(file.path) + ": " + reason.text);
  offset = 0;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const Column &column = columns_[i];
    if (column.dtype != dtype_) {
      if (Status status = checkExact(column, group, own[i]); !status)
        return std::move(status).in(io::inQuotes(file.path));
      int64_t stride = places[i].stride;
      for (int64_t row = 0; row < group.rows; ++row)
        io::castElements(own[i].data() + row * stride, column.dtype,
                         to.data() + row * rowBytes_ + offset, dtype_,
                         column.elements, {});
    }
    offset += column.elements * wide;
  }
  return Status::success();
}

std::string TableFiles::nameOf(const TableGroup &group, int64_t row) const {
  return io::inQuotes(files_[group.file].path) + ": row " +
         std::to_string(row - group.first + group.firstInFile);
}

} // namespace tandem::commands
