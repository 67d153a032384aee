//===- ArtifactFormat.h - the bytes of a .tdm file ------------------------===//
//
// The header and section table (docs/ARCHITECTURE.md, section 3), shared by the
// reader and the writer; internal to runtime/artifact. Little-endian, which is
// the host's order on every machine Tandem runs on. Magic and format stand
// where they are in every format.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_ARTIFACTFORMAT_H
#define TANDEM_RUNTIME_ARTIFACT_ARTIFACTFORMAT_H

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <zlib.h>

namespace tandem::artifact {

static_assert(std::endian::native == std::endian::little);

inline constexpr char artifactMagic[8] = {'T', 'A', 'N',  'D',
                                          'E', 'M', '\r', '\n'};
inline constexpr uint64_t sectionAlignment = 4096;
inline constexpr uint32_t maxSections = 64;

struct ArtifactHeader {
  char magic[8];
  uint32_t format; ///< FormatVersion.h
  uint32_t sectionCount;
  uint64_t fileBytes;
  uint32_t tableCrc;
  uint32_t zero;
};
static_assert(sizeof(ArtifactHeader) == 32);

struct SectionEntry {
  char name[16]; ///< padded with zeros; at most 15 characters
  uint64_t offset;
  uint64_t bytes;
  uint32_t crc;
  uint32_t zero;
};
static_assert(sizeof(SectionEntry) == 40);

/// The names of sections end in what tells targets apart. The first target's
/// have nothing; another's manifest and constants have its kind, and what is
/// of the second and further variants of one kind has their number as well.
inline constexpr size_t maxVariants = 9; ///< of one kind; one digit
struct SectionSuffix {
  std::string manifest, code;
};
/// That of a target of `kind`, `variants` of which came before.
inline SectionSuffix sectionSuffix(bool isFirst, const std::string &kind,
                                   size_t variants) {
  std::string number = variants ? "." + std::to_string(variants + 1) : "";
  return {isFirst ? "" : "." + kind + number, number};
}

inline uint32_t checksum(const void *data, size_t bytes) {
  return static_cast<uint32_t>(
      crc32_z(crc32_z(0, nullptr, 0), static_cast<const Bytef *>(data), bytes));
}

constexpr uint64_t alignSection(uint64_t offset) {
  return (offset + sectionAlignment - 1) / sectionAlignment * sectionAlignment;
}

} // namespace tandem::artifact

#endif
