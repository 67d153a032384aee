//===- Mutants.h - valid manifests with hostile fields --------------------===//
//
// A mutation of bytes rarely passes a manifest's first checks. These know its
// structure: they take the text of a valid manifest and change one field or a
// few to what is hard to handle: a size, a rank, a count, an index, an offset,
// a role, a name of something else, a member or an item of another place.
// Chains of views are made with the types that they lead to, also where that is
// no type, so that what is wrong with them is found by nobody but who computes
// with them. Fields that no seed has are known from Manifest.def.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_RUNTIME_MUTANTS_H
#define TANDEM_TESTS_RUNTIME_MUTANTS_H

#include "runtime/artifact/ArtifactReader.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tandem::test {

/// Gives the next decision: a number below the argument, which is at least 1.
using Decide = std::function<size_t(size_t)>;

class Mutants {
public:
  using Json = nlohmann::ordered_json;

  /// `seeds` are texts of valid manifests.
  explicit Mutants(const std::vector<std::string> &seeds);

  /// Returns the text of a seed with some changes.
  std::string next(const Decide &decide) const;

private:
  struct Place {
    Json *value;
    Json *parent;
    std::string key; ///< the member's name, or that of the list it is in
  };
  void collect(const Json &json, const std::string &key);
  void find(Json &json, Json *parent, const std::string &key,
            std::vector<Place> &places) const;
  void change(Json &manifest, const Decide &decide) const;
  void changeInteger(Json &value, const Decide &decide) const;
  void changeText(const Place &place, const Decide &decide) const;
  void changeList(const Place &place, const Decide &decide) const;
  void changeMembers(const Place &place, const Decide &decide) const;
  void addListed(const Place &place, const Decide &decide) const;
  Json pooled(const std::string &key, const Decide &decide) const;
  void changeViews(Json &manifest, const Decide &decide) const;

  std::vector<Json> seeds, withViews;
  /// For each key the values that stand under it somewhere in a seed.
  std::vector<std::pair<std::string, std::vector<Json>>> pool;
};

/// A manifest's text with one field changed so that it must be refused.
struct FieldMutant {
  std::string text;
  std::string message; ///< a part of what is to be said: place and reason
};

/// Calls `fn` with mutants of each field of Manifest.def that the manifest has:
/// of another type, under another name, left out, out of its range, a text with
/// a control character, a name that is none. Of fields that stand there several
/// times, the first is changed.
void forEachFieldMutant(const artifact::Manifest &manifest,
                        const std::function<void(const FieldMutant &)> &fn);

/// Returns the fields that `forEachFieldMutant` changes: "Kernel/symbol".
std::vector<std::string> fieldsOf(const artifact::Manifest &manifest);
/// Returns all fields of Manifest.def.
std::vector<std::string> allFields();

/// Returns a file with right checksums around any text of a manifest, with the
/// code object at `object` and 128 bytes of constants.
std::string fileAround(const std::string &manifest, const std::string &object);

/// Returns the texts of this folder's manifests and those of `files`.
std::vector<std::string> seedManifests(const std::vector<std::string> &files);

/// Checks, without the validator's code, what the executor relies on; returns
/// what does not hold, or "".
std::string unsoundness(const artifact::Manifest &manifest,
                        size_t constantsBytes);

} // namespace tandem::test

#endif
