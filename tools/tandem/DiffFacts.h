//===- DiffFacts.h - what changed between two compilations ----------------===//
//
// Both sides are the facts of ReportFacts.h; docs/DIFF_JSON.md describes what
// is made of them.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_TANDEM_DIFFFACTS_H
#define TANDEM_TOOLS_TANDEM_DIFFFACTS_H

#include "runtime/artifact/ArtifactReader.h"

#include <nlohmann/json.hpp>

namespace tandem::commands {

/// The version of the object. It grows where a field goes, or means another
/// thing; fields come without it.
inline constexpr int diffVersion = 1;

/// One side: a file, what is in it, and its facts.
struct DiffSide {
  std::string file;
  artifact::ArtifactReader reader;
  nlohmann::ordered_json facts;
};

/// Returns what differs from `a` to `b`, in each list that with the largest
/// effect first. Two sides that have nothing in common are an object, too.
nlohmann::ordered_json diffFacts(const DiffSide &a, const DiffSide &b);

/// Returns the object as people read it; names in it are made printable.
std::string diffText(const nlohmann::ordered_json &diff);

} // namespace tandem::commands

#endif
