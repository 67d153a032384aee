//===- ArtifactFuzz.cpp - any bytes as an artifact or manifest ------------===//
//
// The input is read as a file, then with its checksums put right (so that
// mutations reach what they guard), then, if it begins with '{', as a manifest.
// A manifest that is accepted must say the same after a round trip, and every
// place that the executor would use must be within bounds.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/ArtifactFormat.h"
#include "runtime/artifact/ArtifactReader.h"
#include "runtime/artifact/FormatVersion.h"
#include "tests/runtime/Mutants.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

using namespace tandem;
using namespace tandem::artifact;

namespace {

void require(bool condition) {
  if (!condition)
    std::abort();
}

void check(const Manifest &manifest, size_t constantsBytes) {
  require(test::unsoundness(manifest, constantsBytes).empty());
  Result<std::string> text = toJson(manifest);
  require(text.ok());
  Result<Manifest> again = fromJson(*text);
  require(again.ok() && *again == manifest);
}

/// Puts the sizes and checksums of a damaged file right, where there is room.
void repair(std::vector<std::byte> &file) {
  ArtifactHeader header;
  if (file.size() < sizeof(header))
    return;
  std::memcpy(&header, file.data(), sizeof(header));
  std::memcpy(header.magic, artifactMagic, sizeof(header.magic));
  header.format = formatVersion;
  header.fileBytes = file.size();
  header.zero = 0;
  size_t room = (file.size() - sizeof(header)) / sizeof(SectionEntry);
  header.sectionCount = std::min<uint32_t>(
      header.sectionCount, static_cast<uint32_t>(std::min<size_t>(room, 64)));
  for (uint32_t i = 0; i < header.sectionCount; ++i) {
    auto *place = file.data() + sizeof(header) + i * sizeof(SectionEntry);
    SectionEntry entry;
    std::memcpy(&entry, place, sizeof(entry));
    if (entry.offset <= file.size() &&
        entry.bytes <= file.size() - entry.offset)
      entry.crc = checksum(file.data() + entry.offset, entry.bytes);
    std::memcpy(place, &entry, sizeof(entry));
  }
  header.tableCrc = checksum(file.data() + sizeof(header),
                             header.sectionCount * sizeof(SectionEntry));
  std::memcpy(file.data(), &header, sizeof(header));
}

void readAndCheck(std::span<const std::byte> file) {
  Result<ArtifactReader> reader = ArtifactReader::fromMemory(file);
  if (!reader) {
    require(!reader.status().message().empty());
    return;
  }
  for (const ArtifactReader::Section &section : reader->sections())
    checksum(section.bytes.data(), section.bytes.size());
  std::span<const Manifest> manifests = reader->manifests();
  for (size_t i = 0; i < manifests.size(); ++i) {
    const Manifest &manifest = manifests[i];
    require(reader->choose(manifest.target.kind));
    reader->choose(i);
    (void)reader->code("object.cpu");
    check(reader->manifest(), reader->constants().size());
    // Every target is of the same model.
    require(manifest.values.size() == manifests[0].values.size());
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto bytes = std::as_bytes(std::span(data, size));
  if (size && data[0] == '{') {
    Result<Manifest> manifest =
        fromJson({reinterpret_cast<const char *>(data), size});
    if (manifest && validate(*manifest, 4096).ok())
      check(*manifest, 4096);
    return 0;
  }
  readAndCheck(bytes);
  std::vector<std::byte> repaired(bytes.begin(), bytes.end());
  repair(repaired);
  readAndCheck(repaired);
  return 0;
}
