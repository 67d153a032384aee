//===- FactsView.h - reading the facts of a compilation -------------------===//
//
// What `diff` and `explain` say follows from the object that ReportFacts.h
// makes and docs/INSPECT_JSON.md describes, and from nothing else.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_TANDEM_FACTSVIEW_H
#define TANDEM_TOOLS_TANDEM_FACTSVIEW_H

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace tandem::commands {

/// The facts of one target; keeps references to them.
class FactsView {
public:
  using Json = nlohmann::ordered_json;
  /// `target` is a place in `manifests`.
  FactsView(const Json &facts, size_t target);

  /// A program with what is known of it beside its manifest's object.
  struct Program {
    std::string name, size; ///< `size` is empty where there is but one
    const Json *program;
    const Json *summary;
    const Json *planned; ///< null of an artifact
    size_t sizeNumber = 0;
    /// Returns the schedule and the origin of launch `i`; empty if unknown.
    const Json &launch(size_t i) const;
  };

  const Json &manifest() const { return *manifest_; }
  const Json &summary() const { return *summary_; }
  const std::vector<Program> &programs() const { return programs_; }
  /// True of a model, whose plan is known.
  bool isPlanned() const { return isPlanned_; }
  /// "cpu znver4".
  std::string targetText() const;
  /// The names of sizes; one empty name if there is but one size.
  std::vector<std::string> sizes() const;
  /// The first size has the manifest's own; null if there is none.
  const Json &stepMemory(size_t size) const;
  const Json &partition(size_t size) const;
  /// The programs of which one step consists, in the first size.
  std::vector<const Program *> stepPrograms() const;
  /// The program `name` in the size; null if there is none.
  const Program *find(std::string_view name, size_t size = 0) const;

private:
  const Json &ofSize(const char *key, size_t size) const;

  const Json *manifest_, *summary_;
  std::vector<Program> programs_;
  bool isPlanned_ = false;
};

/// "f32[2, 3]" of an object with `dtype` and `shape`.
std::string typeOf(const nlohmann::ordered_json &value);
/// The bytes of such an object.
int64_t bytesOf(const nlohmann::ordered_json &value);
/// "matmul" of "tandem.matmul".
std::string opName(const nlohmann::ordered_json &op);
/// The text under `key`, or nothing.
std::string textAt(const nlohmann::ordered_json &object, const char *key);
/// "12.3 us".
std::string secondsText(double seconds);
/// "1.5 G" of numbers of things.
std::string countText(double count);

} // namespace tandem::commands

#endif
