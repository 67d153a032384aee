//===- IndexFiles.cpp - the files of an index, replaced as one ------------===//
#include "runtime/checkpoint/IndexFiles.h"

#include "runtime/artifact/AtomicFile.h"

#include <cstdio>
#include <filesystem>
#include <random>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

namespace tandem::checkpoint {
namespace {

constexpr size_t digits = 8;
constexpr std::string_view indexSuffix = ".safetensors.index.json";

/// Returns the path without what says that it is an index, and with a dash; of
/// a link that of the file.
std::string beginOf(const std::string &path) {
  std::string file = artifact::followLinks(path);
  if (file.ends_with(indexSuffix))
    file.resize(file.size() - indexSuffix.size());
  return file + "-";
}

/// Takes a number of at least `least` digits off; false if there is none.
bool takeNumber(std::string_view &text, size_t least) {
  size_t end = text.find_first_not_of("0123456789");
  end = end == text.npos ? text.size() : end;
  text.remove_prefix(end);
  return end >= least;
}

bool take(std::string_view &text, std::string_view part) {
  bool is = text.starts_with(part);
  text.remove_prefix(is ? part.size() : 0);
  return is;
}

/// Calls `one` with the path and the generation of each file of the index, and
/// of each that is being written.
template <typename Fn> void forFiles(const std::string &path, Fn one) {
  std::string begin = beginOf(path);
  std::filesystem::path folder = std::filesystem::path(begin).parent_path();
  begin.erase(0, begin.rfind('/') + 1);
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    std::string file = entry->path().string();
    std::string_view rest = file;
    rest.remove_prefix(file.rfind('/') + 1);
    if (!take(rest, begin) || rest.size() < digits)
      continue;
    std::string generation(rest.substr(0, digits));
    rest.remove_prefix(digits);
    if (generation.find_first_not_of("0123456789abcdef") == generation.npos &&
        take(rest, "-") && takeNumber(rest, 5) && take(rest, "-of-") &&
        takeNumber(rest, 5) && take(rest, ".safetensors") &&
        (rest.empty() || rest.starts_with(".tandem-tmp-")))
      one(file, generation);
  }
}

} // namespace

std::string newGeneration(const std::string &path) {
  std::random_device random;
  while (true) {
    char text[digits + 1];
    std::snprintf(text, sizeof text, "%08x", unsigned(random()));
    bool isTaken = false;
    forFiles(path, [&](const std::string &, const std::string &generation) {
      isTaken |= generation == text;
    });
    if (!isTaken)
      return text;
  }
}

std::string fileName(const std::string &path, const std::string &generation,
                     int64_t number, int64_t count) {
  char text[64];
  std::snprintf(text, sizeof text, "-%05lld-of-%05lld.safetensors",
                static_cast<long long>(number + 1),
                static_cast<long long>(count));
  std::string begin = beginOf(path);
  return begin.substr(begin.rfind('/') + 1) + generation + text;
}

Status writeFile(const std::string &path, const std::string &file,
                 const std::map<std::string, io::TensorType> &tensors,
                 const std::function<Status(const std::string &,
                                            const io::TakeBytes &)> &give,
                 io::TensorIndex &index) {
  std::string begin = beginOf(path);
  io::TensorIndex::File &facts = index.files[file];
  std::vector<std::string> order;
  facts.bytes = int64_t(io::safetensorsHeader(tensors, {}, order).size());
  Status status = io::writeSafetensors(
      begin.substr(0, begin.rfind('/') + 1) + file, tensors, {},
      [&](const std::string &name, const io::TakeBytes &take) {
        uint32_t &checksum = facts.checksums[name];
        return give(name, [&](io::Bytes bytes) {
          checksum = uint32_t(
              crc32_z(checksum, reinterpret_cast<const Bytef *>(bytes.data()),
                      bytes.size()));
          facts.bytes += int64_t(bytes.size());
          return take(bytes);
        });
      });
  return status;
}

Status commit(const std::string &path, const std::string &generation,
              const io::TensorIndex &index) {
  std::string begin = beginOf(path);
  std::string folder = begin.substr(0, begin.rfind('/') + 1);
  for (const auto &[name, file] : index.files) {
    struct stat found = {};
    if (::stat((folder + name).c_str(), &found) != 0 ||
        found.st_size != file.bytes)
      return Status::failed(
          "expected " + io::inQuotes(folder + name) + ", of " +
          std::to_string(file.bytes) +
          " bytes, which a rank wrote, but it is not there: all ranks need "
          "the same folder for " +
          io::inQuotes(path));
  }
  std::string text = index.text();
  io::Bytes bytes = std::as_bytes(std::span(text));
  if (Status status = io::replaceFile(path, {{bytes}}); !status)
    return status;
  // A file that cannot be removed now is removed by the next save.
  forFiles(path, [&](const std::string &file, const std::string &other) {
    if (other != generation)
      ::unlink(file.c_str());
  });
  return Status::success();
}

void removeFiles(const std::string &path, const std::string &generation) {
  forFiles(path, [&](const std::string &file, const std::string &one) {
    if (one == generation)
      ::unlink(file.c_str());
  });
}

} // namespace tandem::checkpoint
