//===- ArtifactWriter.h - makes a .tdm file -------------------------------===//
//
// Collects the sections of an artifact and writes them as one file: whole or
// not at all. Identical input gives identical bytes. A manifest that the reader
// would refuse is refused here.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_ARTIFACTWRITER_H
#define TANDEM_RUNTIME_ARTIFACT_ARTIFACTWRITER_H

#include "runtime/artifact/Manifest.h"
#include "runtime/artifact/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tandem::artifact {

class ArtifactWriter {
public:
  /// Appends a constant, zero padded to a multiple of `bufferAlignment`;
  /// returns its offset in the constants section.
  int64_t addConstant(std::span<const std::byte> bytes);
  /// Sets the code object: an ELF shared object.
  void setObject(std::string elf) { addCode("object.cpu", std::move(elf)); }
  /// Sets a section with code: "ptx", "cubin", ... of a name that is at most 15
  /// characters long.
  void addCode(std::string section, std::string bytes) {
    for (auto &[name, old] : code)
      if (name == section) {
        old = std::move(bytes);
        return;
      }
    code.emplace_back(std::move(section), std::move(bytes));
  }
  void setManifest(Manifest m) { manifest = std::move(m); }
  /// Adds the artifact of the same model for another target: of another kind,
  /// whose manifest is the section "manifest.KIND" and whose constants are
  /// "constants.KIND"; or for another processor (a variant), whose sections end
  /// in ".2", ".3", ... as well.
  void join(ArtifactWriter other) { joined.push_back(std::move(other)); }

  /// Returns the bytes of the file.
  Result<std::string> bytes() const;
  /// Writes the file: temporary file, sync, rename.
  Status write(const std::string &path) const;

private:
  Manifest manifest;
  std::vector<std::pair<std::string, std::string>> code; ///< name, bytes
  std::string constants;
  std::vector<ArtifactWriter> joined;
};

} // namespace tandem::artifact

#endif
