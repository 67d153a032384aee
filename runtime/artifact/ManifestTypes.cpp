//===- ManifestTypes.cpp - types, counts and texts of a manifest ----------===//
//
// The first part of `validate`, by itself: what other rules compute with. A
// type that no tensor has is refused here, wherever it stands, so that products
// of sizes and strides fit 64 bits afterwards and a shape fits a Layout; so are
// lists of a length that no program has, since rules look at pairs of their
// items, and texts that would not show as what they are.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/ManifestRules.h"
#include "runtime/artifact/Text.h"

namespace tandem::artifact {

namespace {

class Shapes {
public:
  Shapes(const Manifest &manifest, ManifestProblems &problems)
      : manifest(manifest), problems(problems) {}

  void run() {
    text("/model", manifest.model);
    text("/producer", manifest.producer);
    text("/target/kind", manifest.target.kind);
    text("/target/arch", manifest.target.arch);
    texts("/target/features", manifest.target.features);
    text("/optimizer", manifest.optimizer);
    text("/graph", manifest.graph);
    each("/values", manifest.values, [&](const Value &value, std::string at) {
      type(at, value.dtype, value.shape);
    });
    each("/kernels", manifest.kernels, [&](const Kernel &one, std::string at) {
      text(at + "/class", one.kind);
      texts(at + "/ops", one.ops);
      text(at + "/summary", one.summary);
    });
    count("/programs", manifest.programs.size(), maxPrograms);
    each("/programs", manifest.programs,
         [&](const Program &one, std::string at) { program(one, at); });
    count("/mutated_in_backward", manifest.mutatedInBackward.size());
    if (manifest.partition)
      partition(*manifest.partition);
  }

private:
  static constexpr size_t maxPrograms = 64, maxGroups = 4096;

  bool count(const std::string &at, size_t size, size_t most = maxItems) {
    if (size <= most)
      return true;
    problems.add(at, "expected at most " + std::to_string(most) +
                         " items but got " + std::to_string(size));
    return false;
  }

  /// Calls `fn(item, pointer)` for each, if there are not too many.
  template <typename T, typename Fn>
  void each(const std::string &at, const std::vector<T> &list, Fn fn) {
    if (count(at, list.size()))
      for (size_t i = 0; i < list.size(); ++i)
        fn(list[i], child(at, static_cast<int64_t>(i)));
  }

  void type(const std::string &at, DType dtype,
            const std::vector<int64_t> &shape) {
    if (!tensorBytes(dtype, shape))
      problems.add(at + "/shape",
                   "no tensor has the type " + typeText(dtype, shape));
  }

  /// Names have rules of their own; other texts may be empty.
  void text(const std::string &at, const std::string &text) {
    if (hasControls(text))
      problems.add(at, "expected a text without control characters");
  }

  void texts(const std::string &at, const std::vector<std::string> &list) {
    each(at, list,
         [&](const std::string &one, std::string at) { text(at, one); });
  }

  void slot(const Slot &slot, const std::string &at) {
    type(at, slot.dtype, slot.shape);
    text(at + "/reason", slot.reason);
    text(at + "/where", slot.where);
    text(at + "/part_of", slot.partOf);
    if (slot.inputs)
      texts(at + "/inputs", *slot.inputs);
    if (slot.alias)
      alias(*slot.alias, at + "/alias");
    if (slot.metadata)
      alias(*slot.metadata, at + "/metadata");
    if (slot.storage)
      alias(*slot.storage, at + "/storage");
    condition(slot.needs, at + "/needs");
  }

  /// What the views make of the type is found where they are applied.
  void alias(const Alias &alias, const std::string &at) {
    text(at + "/of", alias.of);
    text(at + "/output", alias.output);
    if (alias.storage)
      type(at, alias.storage->dtype, alias.storage->shape);
    count(at + "/views", alias.views.size());
  }

  void condition(const Condition &condition, const std::string &at) {
    size_t names = condition.size();
    for (const std::vector<std::string> &group : condition)
      names += group.size();
    count(at, names, maxGroups);
  }

  void program(const Program &program, const std::string &at) {
    each(at + "/arguments", program.arguments,
         [&](const Slot &one, std::string at) { slot(one, at); });
    each(at + "/results", program.results,
         [&](const Slot &one, std::string at) { slot(one, at); });
    each(at + "/aliases", program.aliases,
         [&](const OutputAlias &one, std::string at) {
           type(at, one.dtype, one.shape);
           text(at + "/part_of", one.partOf);
           alias(one.alias, at);
         });
    count(at + "/buffers", program.buffers.size());
    each(at + "/launches", program.launches,
         [&](const Launch &one, std::string at) { launch(one, at); });
  }

  void launch(const Launch &launch, const std::string &at) {
    count(at + "/buffers", launch.buffers.size());
    condition(launch.needs, at + "/needs");
    each(at + "/choices", launch.choices,
         [&](const Choice &one, std::string at) {
           condition(one.when, at + "/when");
         });
    if (launch.library)
      count(at + "/library/operands", launch.library->operands.size());
  }

  void partition(const Partition &partition) {
    each("/partition/saved", partition.saved,
         [&](const Partition::Saved &one, std::string at) {
           text(at + "/name", one.name);
           text(at + "/op", one.op);
           text(at + "/where", one.where);
         });
    each("/partition/repeated", partition.repeated,
         [&](const Partition::Repeated &one, std::string at) {
           text(at + "/op", one.op);
           text(at + "/where", one.where);
           text(at + "/reason", one.reason);
         });
    count("/partition/chain", partition.chain.size());
  }

  const Manifest &manifest;
  ManifestProblems &problems;
};

} // namespace

std::string typeText(DType dtype, const std::vector<int64_t> &shape) {
  return std::string(spelling(dtype)) + " " + toText(shape);
}

void checkTypes(const Manifest &manifest, ManifestProblems &problems) {
  Shapes(manifest, problems).run();
}

} // namespace tandem::artifact
