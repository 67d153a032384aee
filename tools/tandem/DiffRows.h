//===- DiffRows.h - rows of what differs ----------------------------------===//
//
// The parts of a comparison of two compilations; docs/DIFF_JSON.md says what is
// in each.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_TANDEM_DIFFROWS_H
#define TANDEM_TOOLS_TANDEM_DIFFROWS_H

#include "tools/tandem/FactsView.h"

#include <map>

namespace tandem::commands {

/// Side A and side B.
using BothViews = const FactsView *const[2];

/// Things of both sides by their keys, in the order in which they are met.
class Matched {
public:
  using Json = nlohmann::ordered_json;
  /// What key `key` has on side 0 or 1; a null at first.
  Json &at(const std::string &key, int side);
  struct Row {
    std::string key;
    Json sides[2];
    bool differs() const { return sides[0] != sides[1]; }
    /// The number `name` of b, less that of a; what is not there has 0.
    double change(const char *name) const;
  };
  std::vector<Row> rows;

private:
  std::map<std::string, size_t> places;
};

/// Puts rows with the largest effect, the number `key`, first; others stay as
/// they are.
void sortByEffect(nlohmann::ordered_json &rows, const char *key);

/// Rows `{"name", "a", "b"}` of members that two objects do not share.
nlohmann::ordered_json changedMembers(const nlohmann::ordered_json &a,
                                      const nlohmann::ordered_json &b);

nlohmann::ordered_json programsDiff(BothViews views);
/// Of programs that are on both sides: those of one alone are rows of
/// `programs`, and all in them is new.
void kernelsDiff(BothViews views, nlohmann::ordered_json &kernels,
                 nlohmann::ordered_json &schedules);
/// How often programs run each op in kernels.
nlohmann::ordered_json opsDiff(BothViews views);
void partitionDiff(BothViews views, nlohmann::ordered_json &saved,
                   nlohmann::ordered_json &repeated);

} // namespace tandem::commands

#endif
