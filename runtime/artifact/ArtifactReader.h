//===- ArtifactReader.h - opens a .tdm file -------------------------------===//
//
// Maps the file and checks it whole: magic, version, sizes, checksums, padding,
// section bounds and the manifest. A file that is truncated or altered anywhere
// is refused with one message; what `open` returns can be relied on. The bytes
// live as long as any copy of the reader.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_ARTIFACTREADER_H
#define TANDEM_RUNTIME_ARTIFACT_ARTIFACTREADER_H

#include "runtime/artifact/Manifest.h"
#include "runtime/artifact/Status.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::artifact {

class ArtifactReader {
public:
  struct Section {
    std::string name;
    std::span<const std::byte> bytes; ///< begins at a multiple of 64 in memory
  };

  static Result<ArtifactReader> open(const std::string &path);
  /// Copies the file into memory, and fails with what `verify` does of it.
  static Result<ArtifactReader>
  openVerified(const std::string &path,
               const std::function<Status(std::span<const std::byte>)> &verify);
  /// Reads an artifact that is already in memory (copied).
  static Result<ArtifactReader> fromMemory(std::span<const std::byte> bytes);

  /// Returns the manifest of the chosen target: at first, that of the first.
  const Manifest &manifest() const { return contents->manifests[chosen]; }
  /// Returns the manifests of all targets.
  std::span<const Manifest> manifests() const { return contents->manifests; }
  /// Chooses the first target of this kind ("cpu", "cuda"); false if there is
  /// none.
  bool choose(std::string_view kind);
  /// Chooses a target by its place among `manifests`.
  void choose(size_t target) { chosen = target; }
  /// Returns the constants of the chosen target.
  std::span<const std::byte> constants() const;
  /// Returns the chosen target's code of that name ("object.cpu").
  std::span<const std::byte> code(std::string_view name) const;
  const std::vector<Section> &sections() const { return contents->sections; }
  /// Returns the section's bytes; none if there is no such section.
  std::span<const std::byte> section(std::string_view name) const;
  /// Returns the bytes of the whole file.
  size_t fileBytes() const { return contents->file.size(); }

private:
  struct Contents {
    std::span<const std::byte> file;
    std::shared_ptr<const void> memory; ///< keeps `file` alive
    std::vector<Section> sections;
    std::vector<Manifest> manifests; ///< at least one
    /// Of each target: how the names of its constants and of its code end.
    std::vector<std::pair<std::string, std::string>> suffixes;
  };
  static Result<std::shared_ptr<Contents>> map(const std::string &path);
  static Result<std::shared_ptr<Contents>>
  copy(std::span<const std::byte> bytes);
  static Result<ArtifactReader> parse(std::shared_ptr<Contents> contents);

  std::shared_ptr<const Contents> contents;
  size_t chosen = 0;
};

} // namespace tandem::artifact

#endif
