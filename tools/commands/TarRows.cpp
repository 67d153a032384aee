//===- TarRows.cpp - samples of tars as rows ------------------------------===//
#include "tools/commands/TarRows.h"

#include "runtime/io/Argument.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Tar.h"
#include "tools/commands/ImageRows.h"
#include "tools/commands/Ranks.h"

#include <algorithm>
#include <charconv>
#include <zlib.h>

namespace tandem::commands {
namespace {

/// The bytes of a file of a sample.
constexpr int64_t mostBytes = int64_t(256) << 20;

uint32_t sumWith(uint32_t crc, std::string_view text) {
  return uint32_t(
      crc32_z(crc, reinterpret_cast<const Bytef *>(text.data()), text.size()));
}

/// A file of a sample.
struct Place {
  uint32_t tar = 0;
  int64_t offset = 0, size = 0;
};

/// "a/b.left.png" is the file "left.png" of the sample "a/b". Hidden files, and
/// what WebDataset keeps for itself (__NAME__), are of none.
bool splitName(std::string_view name, std::string_view &key,
               std::string_view &ending) {
  size_t base = name.rfind('/') + 1; // npos + 1 is 0
  size_t dot = name.find('.', base);
  if (dot == base || name.substr(base).starts_with("__"))
    return false;
  key = name.substr(0, dot);
  ending = dot == name.npos ? std::string_view() : name.substr(dot + 1);
  return true;
}

std::string lower(std::string_view text) {
  std::string all(text);
  std::ranges::transform(all, all.begin(), [](unsigned char c) {
    return c < 0x80 ? char(std::tolower(c)) : char(c);
  });
  return all;
}

/// The files of one ending in one tar, and their samples.
struct Index {
  std::vector<Place> places;
  std::vector<std::string> keys;

  Status read(const std::string &path, uint32_t tar, std::string_view wanted);
};

Status Index::read(const std::string &path, uint32_t tar,
                   std::string_view wanted) {
  auto file = io::InputFile::open(path);
  if (!file)
    return std::move(file).status();
  std::string where = io::inQuotes(path);
  io::TarReader reader(
      [&](int64_t offset, std::span<std::byte> to) {
        return file->readAt(offset, to);
      },
      file->size());
  auto sample = [&](std::string_view key) {
    return where + ": sample " + io::inQuotes(std::string(key));
  };
  auto lacks = [&] {
    return keys.size() == places.size()
               ? Status::success()
               : Status::usage(sample(keys.back()) + " has no file '." +
                               std::string(wanted) + "'");
  };
  while (true) {
    auto member = reader.next();
    if (!member)
      return std::move(member).status().in(where);
    if (!*member)
      return lacks();
    std::string_view key, ending;
    if (!splitName((*member)->name, key, ending))
      continue;
    if (keys.empty() || keys.back() != key) {
      if (Status status = lacks(); !status)
        return status;
      keys.emplace_back(key);
    }
    if (lower(ending) != wanted)
      continue;
    if (keys.size() == places.size())
      return Status::usage(sample(key) + " has two files '." +
                           std::string(wanted) + "'");
    if ((*member)->isLink || (*member)->isSpecial ||
        (*member)->size > mostBytes)
      return Status::usage(
          where + ": " + io::inQuotes((*member)->name) +
          ((*member)->isLink ? " is a link"
           : (*member)->isSpecial
               ? " is a device or a pipe"
               : ": expected at most " + std::to_string(mostBytes) +
                     " bytes, but it has " + std::to_string((*member)->size)));
    places.push_back({tar, (*member)->offset, (*member)->size});
  }
}

/// The files of one ending in all tars.
class TarFiles : public FileSource {
public:
  TarFiles(std::vector<std::string> paths, std::string ending)
      : paths_(std::move(paths)), ending_(std::move(ending)) {}

  Status readHeaders() {
    std::vector<Index> all(paths_.size());
    runtime::ThreadPool pool(threadsOfRank());
    if (Status status =
            forEachRow(pool, int64_t(all.size()),
                       [&](int64_t i, int) {
                         return all[size_t(i)].read(paths_[size_t(i)],
                                                    uint32_t(i), ending_);
                       });
        !status)
      return status;
    for (Index &index : all) {
      std::ranges::move(index.places, std::back_inserter(places_));
      std::ranges::move(index.keys, std::back_inserter(keys_));
    }
    return places_.empty() ? Status::usage("there is no sample")
                           : Status::success();
  }

  int64_t count() const override { return int64_t(places_.size()); }
  int64_t sizeOf(int64_t i) const { return places_[size_t(i)].size; }
  Result<std::vector<std::byte>> read(int64_t i) const override {
    const Place &place = places_[size_t(i)];
    auto file = io::InputFile::open(paths_[place.tar]);
    if (!file)
      return std::move(file).status();
    std::vector<std::byte> bytes(size_t(place.size));
    if (Status status = file->readAt(place.offset, bytes); !status)
      return status;
    return bytes;
  }
  std::string nameOf(int64_t i) const override {
    return io::inQuotes(paths_[places_[size_t(i)].tar]) + ": " +
           io::inQuotes(keys_[size_t(i)] + "." + ending_);
  }
  /// Of names and sizes: what files hold is not read.
  uint32_t digest() const override {
    uint32_t crc = 0;
    for (size_t i = 0; i < places_.size(); ++i)
      crc = sumWith(crc,
                    keys_[i] + '\0' + std::to_string(places_[i].size) + '\0');
    return crc;
  }
  uint32_t samples() const {
    uint32_t crc = 0;
    for (const std::string &key : keys_)
      crc = sumWith(crc, key + '\0');
    return crc;
  }

private:
  std::vector<std::string> paths_, keys_;
  std::string ending_;
  std::vector<Place> places_;
};

/// An array in each sample, as large as that of the first.
class NpyRows : public RowSource {
public:
  explicit NpyRows(std::shared_ptr<const TarFiles> files)
      : files_(std::move(files)) {}

  Status readFirst() {
    auto bytes = files_->read(0);
    auto header = bytes ? io::parseNpyHeader(*bytes, bytes->size())
                        : Result<io::NpyHeader>(bytes.status());
    if (!header)
      return std::move(header).status().in(nameOf(0));
    header_ = *std::move(header);
    return Status::success();
  }
  const io::NpyHeader &header() const { return header_; }

  Status read(int64_t row, std::span<std::byte> to) const override {
    auto bytes = files_->read(row);
    auto array =
        bytes ? io::parseNpy(*bytes) : Result<io::Array>(bytes.status());
    if (!array)
      return std::move(array).status().in(nameOf(row));
    if (array->dtype != header_.dtype || array->shape != header_.shape)
      return Status::usage(nameOf(row) + ": expected " +
                           runtime::describe(header_.dtype, header_.shape) +
                           ", as in the first sample, but got " +
                           runtime::describe(array->dtype, array->shape));
    std::ranges::copy(array->bytes, to.begin());
    return Status::success();
  }
  std::string nameOf(int64_t row) const override { return files_->nameOf(row); }
  uint32_t digest() const override { return files_->digest(); }

private:
  std::shared_ptr<const TarFiles> files_;
  io::NpyHeader header_;
};

/// Numbers in decimal digits, one in each file.
Result<io::Array> integersOf(const TarFiles &files) {
  std::vector<int64_t> numbers(size_t(files.count()));
  runtime::ThreadPool pool(threadsOfRank());
  constexpr int64_t most = 64;
  auto take = [&](int64_t i, int) {
    auto bytes = files.sizeOf(i) <= most
                     ? files.read(i)
                     : Result<std::vector<std::byte>>(std::vector<std::byte>());
    if (!bytes)
      return std::move(bytes).status().in(files.nameOf(i));
    std::string_view text = io::asText(*bytes), blank = " \t\r\n";
    text.remove_prefix(std::min(text.find_first_not_of(blank), text.size()));
    text = text.substr(0, text.find_last_not_of(blank) + 1);
    const char *last = text.data() + text.size();
    auto [end, error] = std::from_chars(text.data(), last, numbers[size_t(i)]);
    return error == std::errc() && end == last
               ? Status::success()
               : Status::usage(files.nameOf(i) +
                               ": expected an integer in decimal digits");
  };
  if (Status status = forEachRow(pool, files.count(), take); !status)
    return status;
  auto bytes = std::as_bytes(std::span(numbers));
  return io::Array{
      artifact::DType::I64, {files.count()}, {bytes.begin(), bytes.end()}};
}

} // namespace

Result<NamedArray> readTars(const io::Argument &argument,
                            const artifact::Value &value) {
  std::string_view member = argument.member;
  size_t comma = std::min(member.find(','), member.size());
  std::string ending = lower(member.substr(0, comma));
  std::string_view rest =
      comma < member.size() ? member.substr(comma + 1) : std::string_view();
  size_t dot = ending.rfind('.');
  std::string type = ending.substr(dot == ending.npos ? 0 : dot + 1);
  bool isImage = type == "jpg" || type == "jpeg" || type == "png";
  if (!isImage && ((type != "cls" && type != "npy") || !rest.empty()))
    return Status::usage(argument.where() +
                         ": expected the ending of a sample's files, ':jpg', "
                         "':jpeg' or ':png', behind which ',crop' or "
                         "',resize=N' may stand, ':cls' or ':npy'");
  auto files = std::make_shared<TarFiles>(argument.paths(), ending);
  if (Status status = files->readHeaders(); !status)
    return status;
  NamedArray made;
  made.name = argument.name;
  made.file = argument.text;
  made.samples = files->samples();
  if (isImage) {
    if (Status status = takeImages(made, files, rest, value); !status)
      return status;
    return made;
  }
  if (type == "cls") {
    auto numbers = integersOf(*files);
    if (!numbers)
      return std::move(numbers).status();
    made.array = *std::move(numbers);
    return made;
  }
  auto rows = std::make_shared<NpyRows>(files);
  if (Status status = rows->readFirst(); !status)
    return status;
  made.array.dtype = rows->header().dtype;
  made.array.shape = rows->header().shape;
  made.array.shape.insert(made.array.shape.begin(), files->count());
  // The shape is compared with the input's before anything is read.
  if (made.array.shape.size() != value.shape.size() ||
      !std::equal(made.array.shape.begin() + 1, made.array.shape.end(),
                  value.shape.begin() + 1))
    return Status::usage(
        "expected rows of " + runtime::describe(value.dtype, value.shape) +
        " but got " + runtime::describe(made.array.dtype, made.array.shape));
  if (Status status = takeRows(made, rows); !status)
    return status;
  return made;
}

} // namespace tandem::commands
