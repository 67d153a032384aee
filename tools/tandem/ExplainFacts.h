//===- ExplainFacts.h - questions about one compilation -------------------===//
//
// Each answer is an object `{"target", "sentences", "facts"}`
// (docs/EXPLAIN_JSON.md). It says what the facts of ReportFacts.h say; where
// they have no reason, the answer has none.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_TANDEM_EXPLAINFACTS_H
#define TANDEM_TOOLS_TANDEM_EXPLAINFACTS_H

#include "tools/tandem/FactsView.h"
#include "tools/tandem/SmallerPlans.h"

#include "runtime/artifact/Status.h"

#include <string>

namespace tandem::commands {

/// The answers of one target.
class Explainer {
public:
  using Json = nlohmann::ordered_json;
  explicit Explainer(const FactsView &view) : view(view) {}

  /// A value by its name. These three fail with Usage, and the nearest name, if
  /// there is none.
  Result<Json> value(const std::string &name);
  /// A kernel by its symbol or number.
  Result<Json> kernel(const std::string &name);
  /// A saved value by its name, an op that is made again by its place, path or
  /// kind, or a module by its path.
  Result<Json> whySaved(const std::string &name);
  /// Where the predicted time of a step goes.
  Json whySlow();
  /// What the peak of a step is made of, and which budget halves it: by what
  /// was compiled to that end, if it was. Fails with Usage of an artifact that
  /// does not say the memory of a step.
  Result<Json> whyLarge(const SmallerPlans *plans);

private:
  Json finish(Json facts);
  void say(const std::string &sentence) { sentences.push_back(sentence); }
  void sayUses(const std::string &role, const std::string &name);
  /// These three say nothing, and return false, of what is none.
  bool saySaved(const std::string &name, Json &facts);
  bool sayModule(const std::string &name, Json &facts);
  bool sayRepeated(const std::string &name, Json &facts);
  void sayKernels(const std::vector<const FactsView::Program *> &programs,
                  double seconds, Json &facts);

  const FactsView &view;
  std::vector<std::string> sentences;
};

} // namespace tandem::commands

#endif
