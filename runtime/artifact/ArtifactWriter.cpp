//===- ArtifactWriter.cpp - makes a .tdm file -----------------------------===//
//
// Lays the sections out in the order manifest, code, constants, and the same
// of each further target; a section without bytes is left out.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/ArtifactWriter.h"
#include "runtime/artifact/ArtifactFormat.h"
#include "runtime/artifact/AtomicFile.h"
#include "runtime/artifact/FormatVersion.h"

#include <cstring>
#include <map>
#include <vector>

namespace tandem::artifact {

int64_t ArtifactWriter::addConstant(std::span<const std::byte> bytes) {
  auto offset = static_cast<int64_t>(constants.size());
  constants.append(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  size_t align = bufferAlignment;
  constants.resize((constants.size() + align - 1) / align * align);
  return offset;
}

namespace {

struct Part {
  std::string name, bytes;
};

} // namespace

Result<std::string> ArtifactWriter::bytes() const {
  std::vector<Part> parts;
  std::map<std::string, std::vector<const ArtifactWriter *>> ofKind;
  auto addTarget = [&](const ArtifactWriter &one) {
    const std::string &kind = one.manifest.target.kind;
    std::vector<const ArtifactWriter *> &variants = ofKind[kind];
    if (variants.size() == maxVariants)
      return Status::usage("expected at most " + std::to_string(maxVariants) +
                           " targets of the kind '" + kind + "'");
    auto suffix = sectionSuffix(&one == this, kind, variants.size());
    Status valid =
        validate(one.manifest, static_cast<int64_t>(one.constants.size()));
    if (!valid)
      return std::move(valid).in("invalid manifest");
    Result<std::string> json = toJson(one.manifest);
    if (!json)
      return json.status();
    parts.push_back({"manifest" + suffix.manifest, *std::move(json)});
    for (const auto &[name, bytes] : one.code)
      parts.push_back({name + suffix.code, bytes});
    // Variants with equal constants have them once.
    if (variants.empty() || variants.front()->constants != one.constants)
      parts.push_back({"constants" + suffix.manifest, one.constants});
    variants.push_back(&one);
    return Status::success();
  };
  if (Status status = addTarget(*this); !status)
    return status;
  for (const ArtifactWriter &other : joined) {
    if (Status same = checkSameModel(manifest, other.manifest); !same)
      return same;
    if (Status status = addTarget(other); !status)
      return status;
  }
  std::erase_if(parts, [](const Part &part) { return part.bytes.empty(); });
  for (const Part &part : parts)
    if (part.name.size() >= sizeof(SectionEntry::name))
      return Status::failed("the name of section '" + part.name +
                            "' is too long");

  std::vector<SectionEntry> table;
  uint64_t end = sizeof(ArtifactHeader) + parts.size() * sizeof(SectionEntry);
  for (const Part &part : parts) {
    SectionEntry entry{};
    std::memcpy(entry.name, part.name.data(), part.name.size());
    entry.offset = alignSection(end);
    entry.bytes = part.bytes.size();
    entry.crc = checksum(part.bytes.data(), part.bytes.size());
    end = entry.offset + entry.bytes;
    table.push_back(entry);
  }
  ArtifactHeader header{};
  std::memcpy(header.magic, artifactMagic, sizeof(header.magic));
  header.format = formatVersion;
  header.sectionCount = static_cast<uint32_t>(table.size());
  header.fileBytes = end;
  header.tableCrc = checksum(table.data(), table.size() * sizeof(SectionEntry));

  std::string file(end, '\0');
  std::memcpy(file.data(), &header, sizeof(header));
  std::memcpy(file.data() + sizeof(header), table.data(),
              table.size() * sizeof(SectionEntry));
  for (size_t i = 0; i < parts.size(); ++i)
    std::memcpy(file.data() + table[i].offset, parts[i].bytes.data(),
                parts[i].bytes.size());
  return file;
}

Status ArtifactWriter::write(const std::string &path) const {
  Result<std::string> file = bytes();
  if (!file)
    return file.status();
  Result<AtomicFile> out = AtomicFile::create(path);
  if (!out)
    return out.status();
  if (Status status = out->write(file->data(), file->size()); !status)
    return status;
  return out->commit();
}

} // namespace tandem::artifact
