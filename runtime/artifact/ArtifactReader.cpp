//===- ArtifactReader.cpp - opens a .tdm file -----------------------------===//
//
// Every byte of the file is accounted for: header fields are compared, the
// table and the sections have checksums, and what lies between must be zero. So
// any change of the file is noticed before anything in it is used.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/ArtifactReader.h"
#include "runtime/artifact/ArtifactFormat.h"
#include "runtime/artifact/FormatVersion.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tandem::artifact {

namespace {

Status damaged(const std::string &what) {
  return Status::failed("not a usable artifact: " + what);
}

std::string expected(const std::string &what, uint64_t want, uint64_t got) {
  return "expected " + what + " " + std::to_string(want) + " but got " +
         std::to_string(got);
}

bool allZero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](std::byte b) { return b == std::byte(0); });
}

/// Returns the entry's name, or nothing if it is not text padded with zeros.
std::optional<std::string> nameOf(const SectionEntry &entry) {
  size_t length = strnlen(entry.name, sizeof(entry.name));
  for (size_t i = 0; i < sizeof(entry.name); ++i) {
    bool isText = entry.name[i] > 0x20 && entry.name[i] < 0x7f;
    if (i < length ? !isText : entry.name[i] != 0)
      return std::nullopt;
  }
  if (length == 0 || length == sizeof(entry.name))
    return std::nullopt;
  return std::string(entry.name, length);
}

Status readTable(std::span<const std::byte> file, ArtifactHeader &header,
                 std::vector<SectionEntry> &table) {
  if (file.size() < sizeof(header))
    return damaged("expected at least " + std::to_string(sizeof(header)) +
                   " bytes but got " + std::to_string(file.size()));
  std::memcpy(&header, file.data(), sizeof(header));
  if (std::memcmp(header.magic, artifactMagic, sizeof(header.magic)) != 0)
    return damaged(
        "the file does not begin as one ('tandem compile' makes one of a "
        "model)");
  if (Status status = checkFormat("artifact", header.format); !status)
    return status;
  if (header.fileBytes != file.size())
    return damaged(expected("a file of size", header.fileBytes, file.size()) +
                   ": it was truncated or altered");
  if (header.zero != 0)
    return damaged("the header was altered");
  if (header.sectionCount > maxSections)
    return damaged(
        expected("at most sections", maxSections, header.sectionCount));
  size_t tableBytes = header.sectionCount * sizeof(SectionEntry);
  if (file.size() - sizeof(header) < tableBytes)
    return damaged("the section table was truncated");
  if (checksum(file.data() + sizeof(header), tableBytes) != header.tableCrc)
    return damaged("the checksum of the section table does not match");
  table.resize(header.sectionCount);
  if (tableBytes)
    std::memcpy(table.data(), file.data() + sizeof(header), tableBytes);
  return Status::success();
}

} // namespace

std::span<const std::byte>
ArtifactReader::section(std::string_view name) const {
  for (const Section &section : contents->sections)
    if (section.name == name)
      return section.bytes;
  return {};
}

bool ArtifactReader::choose(std::string_view kind) {
  for (size_t i = 0; i < contents->manifests.size(); ++i)
    if (contents->manifests[i].target.kind == kind) {
      chosen = i;
      return true;
    }
  return false;
}

std::span<const std::byte> ArtifactReader::constants() const {
  return section("constants" + contents->suffixes[chosen].first);
}

std::span<const std::byte> ArtifactReader::code(std::string_view name) const {
  return section(std::string(name) + contents->suffixes[chosen].second);
}

Result<ArtifactReader>
ArtifactReader::parse(std::shared_ptr<Contents> contents) {
  std::span<const std::byte> file = contents->file;
  ArtifactHeader header;
  std::vector<SectionEntry> table;
  if (Status status = readTable(file, header, table); !status)
    return status;
  // Sections stand in the order of the table, so that each begins past the end
  // of the one before: none overlap.
  uint64_t end = sizeof(ArtifactHeader) + table.size() * sizeof(SectionEntry);
  for (const SectionEntry &entry : table) {
    std::optional<std::string> name = nameOf(entry);
    if (!name)
      return damaged("a section's name is not text");
    std::string where = "section '" + *name + "'";
    if (entry.zero != 0)
      return damaged(where + " was altered in the table");
    if (entry.offset % sectionAlignment != 0)
      return damaged(where + " is not at a multiple of " +
                     std::to_string(sectionAlignment));
    if (entry.offset < end || entry.offset > file.size() ||
        entry.bytes > file.size() - entry.offset)
      return damaged(where + " overlaps or lies outside the file");
    if (!allZero(file.subspan(end, entry.offset - end)))
      return damaged("bytes before " + where + " were altered");
    for (const Section &other : contents->sections)
      if (other.name == *name)
        return damaged(where + " is repeated");
    auto bytes = file.subspan(entry.offset, entry.bytes);
    if (checksum(bytes.data(), bytes.size()) != entry.crc)
      return damaged("the checksum of " + where + " does not match");
    contents->sections.push_back({*name, bytes});
    end = entry.offset + entry.bytes;
  }
  if (end != file.size())
    return damaged(expected("the file to end at", end, file.size()));

  ArtifactReader reader;
  reader.contents = contents;
  for (const Section &section : contents->sections) {
    bool isFirst = section.name == "manifest";
    if (!isFirst && !section.name.starts_with("manifest."))
      continue;
    auto invalid = [&](Status status) {
      return std::move(status).in(isFirst ? "invalid manifest"
                                          : "invalid manifest in section '" +
                                                section.name + "'");
    };
    Result<Manifest> manifest =
        fromJson({reinterpret_cast<const char *>(section.bytes.data()),
                  section.bytes.size()},
                 header.format);
    if (!manifest)
      return invalid(std::move(manifest).status());
    // A variant whose constants are those of the first of its kind has none.
    size_t variants = 0, first = contents->manifests.size();
    for (size_t i = contents->manifests.size(); i-- > 0;)
      if (contents->manifests[i].target.kind == manifest->target.kind) {
        ++variants;
        first = i;
      }
    auto suffix = sectionSuffix(isFirst, manifest->target.kind, variants);
    std::string constants = suffix.manifest;
    if (variants && reader.section("constants" + constants).empty())
      constants = contents->suffixes[first].first;
    Status valid = validate(
        *manifest,
        static_cast<int64_t>(reader.section("constants" + constants).size()));
    if (!valid)
      return invalid(std::move(valid));
    if (section.name != "manifest" + suffix.manifest || variants >= maxVariants)
      return damaged("section '" + section.name + "' is of the target '" +
                     manifest->target.kind + "'");
    if (isFirst != contents->manifests.empty())
      return damaged("there is no section 'manifest' before the others");
    if (!isFirst)
      if (Status same = checkSameModel(contents->manifests[0], *manifest);
          !same)
        return damaged("section '" + section.name + "': " + same.message());
    contents->manifests.push_back(std::move(*manifest));
    contents->suffixes.emplace_back(std::move(constants),
                                    std::move(suffix.code));
  }
  if (contents->manifests.empty())
    return damaged("there is no section 'manifest'");
  return reader;
}

Result<std::shared_ptr<ArtifactReader::Contents>>
ArtifactReader::copy(std::span<const std::byte> bytes) {
  auto contents = std::make_shared<Contents>();
  size_t size = bytes.size();
  // Sections lie at multiples of 4096 in the file, so this alignment is theirs.
  size_t rounded = (size / bufferAlignment + 1) * bufferAlignment;
  void *copy = std::aligned_alloc(bufferAlignment, rounded);
  if (!copy)
    return Status::failed("out of memory");
  if (size)
    std::memcpy(copy, bytes.data(), size);
  contents->memory = std::shared_ptr<const void>(
      copy, [](const void *memory) { std::free(const_cast<void *>(memory)); });
  contents->file = {static_cast<const std::byte *>(copy), size};
  return contents;
}

Result<std::shared_ptr<ArtifactReader::Contents>>
ArtifactReader::map(const std::string &path) {
  auto cannot = [&](const std::string &why) {
    return Status::failed("cannot open '" + path + "': " + why);
  };
  // Not blocking: a pipe must not make the program wait for a writer.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return cannot(std::strerror(errno));
  struct stat info;
  int failed = ::fstat(fd, &info) != 0 ? errno : 0;
  bool regular = !failed && S_ISREG(info.st_mode);
  auto size = regular ? static_cast<size_t>(info.st_size) : 0;
  void *data = nullptr;
  if (regular && size) {
    data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
      failed = errno;
  }
  ::close(fd);
  if (failed)
    return cannot(std::strerror(failed));
  if (!regular)
    return cannot("expected a regular file");
  auto contents = std::make_shared<Contents>();
  contents->file = {static_cast<const std::byte *>(data), size};
  if (data)
    contents->memory =
        std::shared_ptr<const void>(data, [size](const void *memory) {
          ::munmap(const_cast<void *>(memory), size);
        });
  return contents;
}

Result<ArtifactReader>
ArtifactReader::fromMemory(std::span<const std::byte> bytes) {
  auto contents = copy(bytes);
  if (!contents)
    return std::move(contents).status();
  return parse(*std::move(contents));
}

Result<ArtifactReader> ArtifactReader::open(const std::string &path) {
  auto contents = map(path);
  if (!contents)
    return std::move(contents).status();
  Result<ArtifactReader> reader = parse(*std::move(contents));
  if (!reader)
    return std::move(reader).status().in("'" + path + "'");
  return reader;
}

Result<ArtifactReader> ArtifactReader::openVerified(
    const std::string &path,
    const std::function<Status(std::span<const std::byte>)> &verify) {
  auto mapped = map(path);
  if (!mapped)
    return std::move(mapped).status();
  auto contents = copy((*mapped)->file);
  if (!contents)
    return std::move(contents).status();
  if (Status status = verify((*contents)->file); !status)
    return status;
  Result<ArtifactReader> reader = parse(*std::move(contents));
  if (!reader)
    return std::move(reader).status().in("'" + path + "'");
  return reader;
}

} // namespace tandem::artifact
