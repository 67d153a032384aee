//===- ManifestRows.cpp - what is said of rows and slices -----------------===//
//
// The rules of `inputs`, `rows` and `counted`: facts of the outputs of
// "evaluate", which predicting and evaluating rely on to leave inputs out and
// to cut a batch short. And of `ranges`, which calls check integers by.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/ManifestRules.h"

#include <algorithm>

namespace tandem::artifact {
namespace {

const Slot *inputNamed(const Program &program, const std::string &name) {
  auto found =
      std::find_if(program.arguments.begin(), program.arguments.end(),
                   [&](const Slot &slot) {
                     return slot.role == Role::Input && slot.name == name;
                   });
  return found == program.arguments.end() ? nullptr : &*found;
}

bool saysAnything(const Slot &slot) {
  return slot.inputs || slot.rows != Rows::Unknown || !slot.counted.empty();
}

/// Whether a slice is one of a value, as far as that is known: a rank has the
/// sizes of its piece.
void checkSlice(const Value &value, const SliceRange &range,
                const std::string &at, ManifestProblems &problems) {
  size_t rank = value.shape.size();
  if (range.begins.size() != rank || range.ends.size() != rank ||
      range.steps.size() != rank) {
    problems.add(at, "expected " + std::to_string(rank) +
                         " dimensions in 'begins', 'ends' and 'steps'");
    return;
  }
  for (size_t d = 0; d < rank; ++d) {
    int64_t most = value.sharding.empty() ? value.shape[d] : maxBytes;
    if (range.begins[d] < 0 || range.ends[d] <= range.begins[d] ||
        range.ends[d] > most)
      problems.add(child(at + "/ends", static_cast<int64_t>(d)),
                   "expected a slice of " + std::to_string(most) +
                       " indices but got " + std::to_string(range.begins[d]) +
                       " to " + std::to_string(range.ends[d]));
  }
}

} // namespace

void checkRanges(const Value &value, const std::string &at,
                 ManifestProblems &problems) {
  for (size_t i = 0; i < value.ranges.size(); ++i) {
    const SliceRange &range = value.ranges[i];
    std::string here = child(at, static_cast<int64_t>(i));
    if (value.role != Role::Input || isFloat(value.dtype))
      problems.add(here, "expected it on an integer input only");
    if (range.high <= range.low)
      problems.add(here + "/high", "expected more than 'low'");
    checkSlice(value, range, here, problems);
  }
}

void checkRows(const Manifest &manifest, const Program &program,
               const std::string &at, ManifestProblems &problems) {
  for (const Slot &slot : program.arguments)
    if (saysAnything(slot))
      problems.add(at + "/arguments", "expected 'inputs', 'rows' and 'counted' "
                                      "on outputs of 'evaluate' only");
  for (size_t i = 0; i < program.results.size(); ++i) {
    const Slot &slot = program.results[i];
    std::string here = child(at + "/results", static_cast<int64_t>(i));
    if (!saysAnything(slot))
      continue;
    if (slot.role != Role::Output || program.name != "evaluate") {
      problems.add(here, "expected 'inputs', 'rows' and 'counted' on outputs "
                         "of 'evaluate' only");
      continue;
    }
    if (slot.inputs)
      for (const std::string &name : *slot.inputs)
        if (!inputNamed(program, name))
          problems.add(here + "/inputs", "there is no input '" + name + "'");
    if (slot.rows == Rows::Each && slot.shape.empty())
      problems.add(here + "/rows", "expected a first dimension for 'each'");
    if (slot.counted.empty())
      continue;
    const Slot *counted = inputNamed(program, slot.counted);
    const Value *value = manifest.findValue(slot.counted);
    if (slot.rows != Rows::Mean || !counted || counted->shape.empty() ||
        !value || !value->ignored)
      problems.add(here + "/counted",
                   "expected a mean, and an input with rows that says "
                   "'ignored', but got '" +
                       slot.counted + "'");
  }
}

} // namespace tandem::artifact
