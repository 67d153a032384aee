//===- ListedFields.h - values for the fields of Manifest.def -------------===//
//
// What the mutants of a manifest put into a field, by what the list says of its
// type.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_RUNTIME_LISTEDFIELDS_H
#define TANDEM_TESTS_RUNTIME_LISTEDFIELDS_H

#include "tests/runtime/Mutants.h"

namespace tandem::test {

/// A number, and a text, that is hard to handle.
int64_t number(const Decide &decide);
std::string text(const Decide &decide);

/// A field, and what makes a value of its type.
struct ListedField {
  std::string key;
  Mutants::Json (*made)(const Decide &decide);
};

/// Returns the fields of the objects that stand under the key `key` ("values",
/// "alias"; of the whole manifest ""); none where numbers and texts do.
const std::vector<ListedField> &listedFields(const std::string &key);

} // namespace tandem::test

#endif
