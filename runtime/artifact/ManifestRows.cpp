//===- ManifestRows.cpp - what is said of the rows of a batch -------------===//
//
// The rules of `inputs`, `rows` and `counted`: facts of the outputs of
// "evaluate", which predicting and evaluating rely on to leave inputs out and
// to cut a batch short.
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

} // namespace

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
