//===- ManifestPath.h - where in a manifest somebody is -------------------===//
//
// A JSON pointer in parts: each place knows the one around it, and the text is
// made where there is something to say of the place. Internal to
// runtime/artifact.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_MANIFESTPATH_H
#define TANDEM_RUNTIME_ARTIFACT_MANIFESTPATH_H

#include "runtime/artifact/ManifestProblems.h"

namespace tandem::artifact {

/// The place `around` must outlive this one.
class ManifestPath {
public:
  ManifestPath() = default;
  ManifestPath(const ManifestPath &around, std::string_view key)
      : around(&around), key(key) {}
  ManifestPath(const ManifestPath &around, size_t index)
      : around(&around), index(static_cast<int64_t>(index)) {}

  std::string text() const {
    if (!around)
      return "";
    return index < 0 ? child(around->text(), key)
                     : child(around->text(), index);
  }

private:
  const ManifestPath *around = nullptr;
  std::string_view key;
  int64_t index = -1;
};

} // namespace tandem::artifact

#endif
