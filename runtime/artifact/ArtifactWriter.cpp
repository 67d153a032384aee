//===- ArtifactWriter.cpp - makes a .tdm file -----------------------------===//
//
// Lays the sections out in the order manifest, object.cpu, constants; a section
// without bytes is left out.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/ArtifactWriter.h"
#include "runtime/artifact/ArtifactFormat.h"
#include "runtime/artifact/AtomicFile.h"

#include <cstring>
#include <vector>

namespace tandem::artifact {

int64_t ArtifactWriter::addConstant(std::span<const std::byte> bytes) {
  auto offset = static_cast<int64_t>(constants.size());
  constants.append(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  size_t align = bufferAlignment;
  constants.resize((constants.size() + align - 1) / align * align);
  return offset;
}

Result<std::string> ArtifactWriter::bytes() const {
  Status valid = validate(manifest, static_cast<int64_t>(constants.size()));
  if (!valid)
    return std::move(valid).in("invalid manifest");
  Result<std::string> json = toJson(manifest);
  if (!json)
    return json.status();
  struct Part {
    const char *name;
    const std::string &bytes;
  };
  std::vector<Part> parts = {{"manifest", *json}};
  if (!object.empty())
    parts.push_back({"object.cpu", object});
  if (!constants.empty())
    parts.push_back({"constants", constants});

  std::vector<SectionEntry> table;
  uint64_t end = sizeof(ArtifactHeader) + parts.size() * sizeof(SectionEntry);
  for (const Part &part : parts) {
    SectionEntry entry{};
    std::strncpy(entry.name, part.name, sizeof(entry.name) - 1);
    entry.offset = alignSection(end);
    entry.bytes = part.bytes.size();
    entry.crc = checksum(part.bytes.data(), part.bytes.size());
    end = entry.offset + entry.bytes;
    table.push_back(entry);
  }
  ArtifactHeader header{};
  std::memcpy(header.magic, artifactMagic, sizeof(header.magic));
  header.version = artifactVersion;
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
