//===- ManifestSizes.cpp - several sizes in one manifest ------------------===//
//
// What an artifact of several sizes says, and the manifest of one size alone.
// Each of these is validated as any other manifest is, so that the executor
// relies on the same rules for all sizes.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/ManifestRules.h"
#include "runtime/artifact/ProgramKinds.h"

#include <algorithm>
#include <set>

namespace tandem::artifact {

namespace {

bool isOutput(const Value &value) { return value.role == Role::Output; }

/// The value of that name, among outputs or among the others.
template <typename Values>
auto findIn(Values &values, const Value &like) -> decltype(values.data()) {
  for (auto &value : values)
    if (isOutput(value) == isOutput(like) && value.name == like.name)
      return &value;
  return nullptr;
}

} // namespace

bool servesAllSizes(std::string_view program) {
  return takesGradients(program) || program == "prepare";
}

Manifest ofSize(const Manifest &manifest, size_t number) {
  if (manifest.sizes.empty())
    return manifest;
  Manifest made = manifest;
  made.sizes.clear();
  std::erase_if(made.programs, [&](const Program &program) {
    return program.size != static_cast<int64_t>(number);
  });
  for (Program &program : made.programs)
    program.size = 0;
  if (number == 0)
    return made;
  for (const Program &program : manifest.programs)
    if (program.size == 0 && servesAllSizes(program.name) &&
        !made.findProgram(program.name))
      made.programs.push_back(program);
  const Size &size = manifest.sizes[number];
  for (const Value &value : size.values)
    if (Value *own = findIn(made.values, value))
      *own = value;
  made.stepMemory = size.stepMemory;
  made.partition = size.partition;
  return made;
}

void resolveSizes(Manifest &manifest) {
  for (Program &program : manifest.programs) {
    if (program.size <= 0 ||
        program.size >= static_cast<int64_t>(manifest.sizes.size()))
      continue;
    for (Slot &slot : program.arguments)
      for (const Value &value : manifest.sizes[program.size].values)
        if (slot.role <= Role::State && !isOutput(value) &&
            value.name == slot.name) {
          slot.dtype = value.dtype;
          slot.shape = value.shape;
        }
  }
}

void checkSizes(const Manifest &manifest, ManifestProblems &problems) {
  auto count = static_cast<int64_t>(manifest.sizes.size());
  int64_t last = 0;
  for (size_t i = 0; i < manifest.programs.size(); ++i) {
    int64_t size = manifest.programs[i].size;
    std::string at = child("/programs", static_cast<int64_t>(i)) + "/size";
    if (size >= std::max<int64_t>(count, 1))
      problems.add(at, "expected one of the " + std::to_string(count) +
                           " 'sizes' but got " + std::to_string(size));
    if (size < last)
      problems.add(at, "expected the programs of one size after those of the "
                       "one before");
    last = size;
  }
  if (count == 1)
    problems.add("/sizes", "expected none, or more than one");
  if (count && (!manifest.mesh.empty() || manifest.pipeline))
    problems.add("/sizes", "expected neither mesh nor pipeline beside them");
  std::set<std::string> names;
  for (int64_t i = 0; i < count; ++i) {
    const Size &size = manifest.sizes[i];
    std::string at = child("/sizes", i);
    if (!names.insert(size.name).second)
      problems.add(at + "/name", "'" + size.name + "' is repeated");
    if (i == 0 && (!size.values.empty() || size.stepMemory || size.partition))
      problems.add(at, "expected no more than the name of the first size");
    std::set<std::pair<bool, std::string>> seen;
    for (size_t v = 0; v < size.values.size(); ++v) {
      const Value &value = size.values[v];
      std::string here = child(at + "/values", static_cast<int64_t>(v));
      if (!seen.insert({isOutput(value), value.name}).second)
        problems.add(here + "/name", "'" + value.name + "' is repeated");
      const Value *same = findIn(manifest.values, value);
      if (value.role != Role::Input && value.role != Role::Output)
        problems.add(here + "/role", "expected 'input' or 'output': all sizes "
                                     "share params and states");
      else if (!same || same->role != value.role)
        problems.add(here + "/name", "expected one of the manifest's values "
                                     "but got '" +
                                         value.name + "'");
      else if (same->dtype != value.dtype)
        problems.add(here + "/dtype", "expected that of the first size");
      else if (same->requiresGrad != value.requiresGrad)
        problems.add(here + "/requires_grad",
                     "expected that of the first size");
    }
  }
}

std::string sizesText(const Manifest &manifest) {
  std::string text;
  for (const Size &size : manifest.sizes)
    text += (text.empty() ? "'" : ", '") + size.name + "'";
  return text;
}

} // namespace tandem::artifact
