//===- Fixtures.h - what PyTorch gives, and graphs that ask the same ------===//
//
// Reads the files that make-fixtures writes (it says what they hold), and makes
// JSON graphs of cases: the nodes of a case, then its gradients and
// second-order gradients by `grad`, all of them outputs. A graph may hold many
// cases; the names of each begin with its name.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_ORACLE_FIXTURES_H
#define TANDEM_TESTS_ORACLE_FIXTURES_H

#include "compiler/import/JsonReader.h"

#include <map>
#include <string>
#include <vector>

namespace tandem::oracle {

/// A tensor of a graph, row-major; what is no number is NaN or infinite.
struct Numbers {
  std::vector<int64_t> shape;
  std::vector<double> data;
  bool isFloat = true;
  bool isF32 = false; ///< whatever "f" stands for
};
using NamedNumbers = std::map<std::string, Numbers>;

/// What is asked of a case.
enum class Asked { Values, Derivatives };

class Case {
public:
  explicit Case(Json json) : json(std::move(json)) {}

  std::string name() const { return json["name"]; }
  std::string op() const { return json["op"]; }
  /// How often it is differentiated: 0, 1 or 2.
  int order() const { return json["order"]; }
  /// Whether an op behaves otherwise when a model is trained.
  bool isTraining() const { return json.value("training", false); }
  /// What PyTorch's own f32 is off by, relative to 1 + the largest magnitude.
  double f32Error() const { return json.value("f32", 0.0); }

  /// Adds the case to a graph; "f" becomes `type`.
  void addTo(Json &graph, const std::string &type, Asked asked) const;
  /// The inputs that addTo() declares, and what its outputs are, by name.
  NamedNumbers inputs(Asked asked) const;
  NamedNumbers outputs(Asked asked) const;

private:
  std::string full(const std::string &local) const {
    return name() + "/" + local;
  }
  Numbers numbers(const Json &tensor, const char *key) const;

  Json json;
};

/// An empty graph; cases are added to it.
Json emptyGraph();

/// The names of the families, in the order of their files.
std::vector<std::string> familyNames();
/// The cases of a family. Stops the test where the file cannot be read.
std::vector<Case> readFamily(const std::string &family);

} // namespace tandem::oracle

#endif
