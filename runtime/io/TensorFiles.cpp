//===- TensorFiles.cpp - named tensors, in one file or in several ---------===//
#include "runtime/io/TensorFiles.h"

#include <algorithm>
#include <filesystem>
#include <zlib.h>

namespace tandem::io {
namespace {

/// Returns the index in a folder, if there is one and no other.
Result<std::string> indexIn(const std::string &folder) {
  std::string found;
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator(folder, error)) {
    if (!isIndexName(entry.path().string()))
      continue;
    if (!found.empty())
      return Status::usage(inQuotes(folder) +
                           " has several indices: " + inQuotes(found) +
                           " and " + inQuotes(entry.path().string()));
    found = entry.path().string();
  }
  if (found.empty())
    return Status::usage(inQuotes(folder) +
                         " has no file that ends in .safetensors.index.json");
  return found;
}

} // namespace

Result<std::string> TensorFiles::fileOf(const std::string &path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error) ? indexIn(path)
                                                    : Result<std::string>(path);
}

Result<TensorFiles> TensorFiles::open(const std::string &given) {
  auto path = fileOf(given);
  if (!path)
    return std::move(path).status();
  auto begin = mapFile(*path);
  if (!begin)
    return std::move(begin).status();
  TensorFiles files;
  files.isIndex_ = isIndexText(begin->bytes);
  Status status = files.isIndex_ ? files.addIndex(*path, asText(begin->bytes))
                                 : files.addFile(*std::move(begin));
  if (!status)
    return std::move(status).in(inQuotes(*path));
  return files;
}

Result<std::map<std::string, std::string>>
TensorFiles::metadataOf(const std::string &given) {
  auto path = fileOf(given);
  if (!path)
    return std::move(path).status();
  auto bytes = mapFile(*path);
  if (!bytes)
    return std::move(bytes).status();
  if (isIndexText(bytes->bytes)) {
    auto index = TensorIndex::parse(asText(bytes->bytes));
    if (!index)
      return std::move(index).status().in(inQuotes(*path));
    return std::move(index->metadata);
  }
  auto file = Safetensors::parse(*std::move(bytes));
  if (!file)
    return std::move(file).status().in(inQuotes(*path));
  return file->metadata();
}

Status TensorFiles::addFile(SharedBytes bytes) {
  auto file = Safetensors::parse(std::move(bytes));
  if (!file)
    return std::move(file).status();
  files_.emplace_back(*std::move(file));
  metadata_ = files_[0].metadata();
  for (const auto &[name, entry] : files_[0].entries()) {
    TensorIndex::Piece all;
    all.name = name;
    all.begin.resize(entry.shape.size());
    all.shape = entry.shape;
    entries_[name] = {entry.dtype,
                      entry.shape,
                      {{std::move(all), files_[0].find(name)->bytes, {}}}};
  }
  return Status::success();
}

Status TensorFiles::addIndex(const std::string &path, std::string_view text) {
  auto index = TensorIndex::parse(text);
  if (!index)
    return std::move(index).status();
  metadata_ = index->metadata;
  std::string folder = path.substr(0, path.rfind('/') + 1);
  std::map<std::string, size_t> opened;
  /// Opens the file, once, and looks for a piece in it.
  auto add = [&](const std::string &tensor, TensorIndex::Piece place,
                 bool isWhole) -> Status {
    auto [at, isNew] = opened.try_emplace(place.file, files_.size());
    auto known = index->files.find(place.file);
    bool isOwn = !index->files.empty();
    if (isOwn && known == index->files.end())
      return Status::failed("does not say how large file " +
                            inQuotes(place.file) + " is");
    if (isNew) {
      auto file = Safetensors::map(folder + place.file);
      if (!file)
        return std::move(file).status();
      files_.emplace_back(*std::move(file));
    }
    const Safetensors &file = files_[at->second];
    if (isOwn && int64_t(file.bytes()) != known->second.bytes)
      return Status::failed("file " + inQuotes(place.file) + ": expected " +
                            std::to_string(known->second.bytes) +
                            " bytes but got " + std::to_string(file.bytes()));
    std::string who =
        "tensor " + inQuotes(tensor) + ": file " + inQuotes(place.file) + " ";
    auto found = file.find(place.name);
    if (!found)
      return Status::failed(who + "has no tensor " + inQuotes(place.name));
    Piece piece = {std::move(place), found->bytes, {}};
    if (isWhole)
      piece.place.shape.assign(found->shape.begin(), found->shape.end());
    piece.place.begin.resize(piece.place.shape.size());
    if (!std::ranges::equal(piece.place.shape, found->shape))
      return Status::failed(who + "has " + inQuotes(piece.place.name) + " of " +
                            shapeText(found->shape) + ", expected " +
                            shapeText(piece.place.shape));
    if (isOwn) {
      auto checksum = known->second.checksums.find(piece.place.name);
      if (checksum == known->second.checksums.end())
        return Status::failed(who + "has no checksum of " +
                              inQuotes(piece.place.name));
      piece.checksum = checksum->second;
    }
    Entry &entry = entries_[tensor];
    if (entry.pieces.empty())
      entry.dtype = found->dtype;
    if (entry.dtype != found->dtype)
      return Status::failed(who + "has elements of another type than the "
                                  "pieces before it");
    if (isWhole)
      entry.shape = piece.place.shape;
    entry.pieces.push_back(std::move(piece));
    return Status::success();
  };
  // Entries refer to their files' bytes, which stay where they are.
  for (auto &[name, file] : index->weightMap)
    if (Status status = add(name, {file, name, {}, {}}, true); !status)
      return status;
  for (auto &[name, cut] : index->cut) {
    std::string problem;
    if (cut.pieces.empty() || !covers(cut.shape, cut.pieces, problem))
      return Status::failed("tensor " + inQuotes(name) + ": " +
                            (problem.empty() ? "it has no pieces" : problem));
    for (const TensorIndex::Piece &piece : cut.pieces)
      if (Status status = add(name, piece, false); !status)
        return status;
    entries_[name].shape = std::move(cut.shape);
  }
  return Status::success();
}

Status TensorFiles::verify(const std::string &name, const Piece &piece) {
  if (piece.checksum &&
      crc32_z(0, reinterpret_cast<const Bytef *>(piece.bytes.data()),
              piece.bytes.size()) != *piece.checksum)
    return Status::failed("tensor " + inQuotes(name) + ": the bytes of " +
                          inQuotes(piece.place.name) + " in file " +
                          inQuotes(piece.place.file) +
                          " are not those that the index was written for");
  piece.checksum.reset();
  return Status::success();
}

Result<Array> TensorFiles::read(const std::string &name,
                                std::span<const int64_t> begin,
                                std::span<const int64_t> shape) const {
  const Entry &entry = entries_.at(name);
  int64_t elementBytes = byteSize(entry.dtype);
  Array array = {entry.dtype, {shape.begin(), shape.end()}, {}};
  array.bytes.resize(size_t(elementCount(shape).value_or(0) * elementBytes));
  for (const Piece &piece : entry.pieces) {
    const TensorIndex::Piece &place = piece.place;
    std::vector<int64_t> from(shape.size()), to(shape.size()),
        sizes(shape.size());
    bool isEmpty = array.bytes.empty() || piece.bytes.empty();
    for (size_t d = 0; d < shape.size(); ++d) {
      int64_t first = std::max(begin[d], place.begin[d]);
      from[d] = first - place.begin[d];
      to[d] = first - begin[d];
      sizes[d] =
          std::min(begin[d] + shape[d], place.begin[d] + place.shape[d]) -
          first;
      isEmpty |= sizes[d] <= 0;
    }
    if (isEmpty)
      continue;
    if (Status status = verify(name, piece); !status)
      return status;
    copyBlock(piece.bytes.data(), {place.shape, from}, array.bytes.data(),
              {shape, to}, sizes, elementBytes);
  }
  return array;
}

Result<Array> TensorFiles::read(const std::string &name) const {
  const std::vector<int64_t> &shape = entries_.at(name).shape;
  return read(name, std::vector<int64_t>(shape.size()), shape);
}

void copyBlock(const std::byte *from, const Block &source, std::byte *to,
               const Block &target, std::span<const int64_t> sizes,
               int64_t elementBytes) {
  // Elements of the last dimension lie together.
  size_t rank = sizes.size();
  int64_t row = rank ? sizes[rank - 1] : 1;
  std::vector<int64_t> index(rank);
  if (elementCount(sizes).value_or(0) == 0)
    return;
  for (bool more = true; more;) {
    int64_t at = 0, into = 0;
    for (size_t d = 0; d < rank; ++d) {
      at = at * source.whole[d] + source.begin[d] + index[d];
      into = into * target.whole[d] + target.begin[d] + index[d];
    }
    std::memcpy(to + into * elementBytes, from + at * elementBytes,
                size_t(row * elementBytes));
    more = false;
    for (size_t d = rank; d-- > 1 && !more;) {
      more = ++index[d - 1] < sizes[d - 1];
      if (!more)
        index[d - 1] = 0;
    }
  }
}

} // namespace tandem::io
