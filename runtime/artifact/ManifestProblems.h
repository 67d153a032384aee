//===- ManifestProblems.h - all that is wrong with a manifest -------------===//
//
// Collects the problems of a manifest, each with its JSON pointer, and makes
// one message of them. Internal to runtime/artifact.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_MANIFESTPROBLEMS_H
#define TANDEM_RUNTIME_ARTIFACT_MANIFESTPROBLEMS_H

#include "runtime/artifact/Status.h"
#include "runtime/artifact/Text.h"

#include <string>
#include <vector>

namespace tandem::artifact {

class ManifestProblems {
public:
  /// A file's names stand in messages: they are made to fit a line.
  void add(const std::string &pointer, const std::string &message) {
    if (problems.size() < shown) {
      std::string text =
          printable((pointer.empty() ? "manifest" : pointer) + ": " + message);
      if (text.size() > longest)
        text = text.substr(0, longest) + "...";
      problems.push_back(text);
    }
    ++count;
  }

  bool none() const { return count == 0; }

  /// Returns the problems joined, or success; those beyond the first few are
  /// only counted, so that a hostile file gives a short message.
  Status status() const {
    if (none())
      return Status::success();
    std::string text;
    for (const std::string &problem : problems)
      text += (text.empty() ? "" : "; ") + problem;
    if (count > problems.size())
      text += "; and " + std::to_string(count - problems.size()) + " more";
    return Status::failed(text);
  }

private:
  static constexpr size_t shown = 16, longest = 600;
  std::vector<std::string> problems;
  size_t count = 0;
};

/// Returns `pointer` with the element `index` added.
inline std::string child(const std::string &pointer, int64_t index) {
  return pointer + "/" + std::to_string(index);
}

/// Returns `pointer` with the member `key` added.
inline std::string child(const std::string &pointer, std::string_view key) {
  std::string text = pointer + "/";
  for (char c : key)
    text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return text;
}

inline std::string child(const std::string &pointer, const char *key) {
  return child(pointer, std::string_view(key));
}

} // namespace tandem::artifact

#endif
