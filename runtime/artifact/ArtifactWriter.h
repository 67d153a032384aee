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

namespace tandem::artifact {

class ArtifactWriter {
public:
  /// Appends a constant, zero padded to a multiple of `bufferAlignment`;
  /// returns its offset in the constants section.
  int64_t addConstant(std::span<const std::byte> bytes);
  /// Sets the code object: an ELF shared object.
  void setObject(std::string elf) { object = std::move(elf); }
  void setManifest(Manifest m) { manifest = std::move(m); }

  /// Returns the bytes of the file.
  Result<std::string> bytes() const;
  /// Writes the file: temporary file, sync, rename.
  Status write(const std::string &path) const;

private:
  Manifest manifest;
  std::string object;
  std::string constants;
};

} // namespace tandem::artifact

#endif
