//===- ManifestAliases.cpp - rules of what shares storage -----------------===//
//
// Part of `validate`: declared aliases of inputs, outputs that are views, saved
// values that lie in outputs, and what happens to handles and storages of
// inputs. The type of each chain of views is computed as the runtime does it.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/ManifestRules.h"
#include "runtime/artifact/ProgramKinds.h"

#include <algorithm>
#include <map>
#include <set>

namespace tandem::artifact {

namespace {

class AliasRules {
public:
  AliasRules(const Manifest &manifest, const Program &program,
             const std::string &at, ManifestProblems &problems)
      : manifest(manifest), program(program), at(at), problems(problems) {}

  void run() {
    for (size_t i = 0; i < program.arguments.size(); ++i)
      checkArgument(program.arguments[i],
                    child(at + "/arguments", static_cast<int64_t>(i)));
    for (size_t i = 0; i < program.results.size(); ++i)
      checkResult(program.results[i],
                  child(at + "/results", static_cast<int64_t>(i)));
    checkOutputs();
  }

private:
  void checkArgument(const Slot &slot, const std::string &at) {
    bool isInput = slot.role == Role::Input;
    only(isInput, slot.alias.has_value(), at, "alias", "an input");
    only(isInput, slot.freed, at, "freed", "an input");
    only(isInput, slot.metadata.has_value(), at, "metadata", "an input");
    only(isInput, slot.storage.has_value(), at, "storage", "an input");
    only(isInput, slot.resize.has_value(), at, "resize", "an input");
    bool isBackwards = isBackward(program);
    only(isBackwards && slot.role <= Role::State, slot.asFound, at, "as_found",
         "an input, param or state of a backward");
    only(isBackwards && slot.role != Role::Cotangent, slot.unchecked, at,
         "unchecked", "a value that a backward reads");
    only(false, slot.visible, at, "visible", "an update");
    only(false, !slot.needs.empty(), at, "needs", "a gradient or update");
    only(false, !slot.partOf.empty(), at, "part_of", "an output");
    if (slot.alias)
      checkDeclared(slot, at + "/alias");
    if (slot.metadata) {
      if (slot.metadata->of != slot.name)
        problems.add(at + "/metadata/of", "expected '" + slot.name +
                                              "' but got '" +
                                              slot.metadata->of + "'");
      typeOf({slot.dtype, slot.shape}, slot.metadata->views, at + "/metadata");
    }
    if (slot.storage) {
      const Slot *from = argument(slot.storage->of);
      if (!from || from->name == slot.name)
        problems.add(at + "/storage/of", "expected another argument but got '" +
                                             slot.storage->of + "'");
      else
        typeOf({from->dtype, from->shape}, slot.storage->views,
               at + "/storage");
      if (slot.metadata)
        problems.add(at + "/metadata", "expected it not beside 'storage'");
    }
    if (slot.freed && slot.resize.value_or(0) == 0)
      for (size_t b = 0; b < program.buffers.size(); ++b)
        if (const Buffer &buffer = program.buffers[b];
            buffer.place == Buffer::Place::Argument &&
            buffer.index == &slot - program.arguments.data())
          problems.add(child(this->at + "/buffers", static_cast<int64_t>(b)),
                       "'" + slot.name + "' is freed and has no buffer");
    if (slot.resize && *slot.resize > 0 && !slot.freed)
      problems.add(at + "/resize",
                   "expected 0, since it is not freed, but got " +
                       std::to_string(*slot.resize));
  }

  void checkResult(const Slot &slot, const std::string &at) {
    only(false, slot.freed, at, "freed", "an input");
    only(false, slot.metadata.has_value(), at, "metadata", "an input");
    only(false, slot.storage.has_value(), at, "storage", "an input");
    only(false, slot.resize.has_value(), at, "resize", "an input");
    only(false, slot.asFound, at, "as_found", "an argument");
    bool isSaved = slot.role == Role::Saved;
    only(isSaved, slot.alias.has_value(), at, "alias", "a saved result");
    only(isSaved, slot.unchecked, at, "unchecked", "a saved result");
    only(slot.role == Role::Update, slot.visible, at, "visible", "an update");
    only(slot.role == Role::Output, !slot.partOf.empty(), at, "part_of",
         "an output");
    // An update waits for gradients as a backward does for cotangents.
    only((isBackward(program) || takesGradients(program.name)) &&
             (slot.role == Role::Update || slot.role == Role::Grad),
         !slot.needs.empty(), at, "needs",
         "a gradient or update of a backward, or an update of 'update', "
         "'accumulation' or 'norm'");
    if (!slot.alias)
      return;
    const Slot *output = result(slot.alias->output);
    if (!output) {
      problems.add(at + "/alias/output", "expected an output among the results "
                                         "but got '" +
                                             slot.alias->output + "'");
      return;
    }
    // One buffer serves both: so the view must not move an element, and has all
    // of them.
    Layout layout = Layout::of(output->dtype, output->shape);
    Status status = applyViews(slot.alias->views, layout);
    Layout dense = Layout::of(slot.dtype, slot.shape);
    if (!status || layout.offset != 0 || layout.dtype != slot.dtype ||
        tensorBytes(slot.dtype, slot.shape) !=
            tensorBytes(output->dtype, output->shape) ||
        !std::equal(layout.shape().begin(), layout.shape().end(),
                    slot.shape.begin(), slot.shape.end()) ||
        !std::equal(layout.strides().begin(), layout.strides().end(),
                    dense.strides().begin(), dense.strides().end()))
      problems.add(at + "/alias/views", "expected the row-major elements of '" +
                                            output->name + "' as " +
                                            typeText(slot.dtype, slot.shape));
  }

  /// An input that is declared to share memory.
  void checkDeclared(const Slot &slot, const std::string &at) {
    const Alias &alias = *slot.alias;
    if (!alias.output.empty() || alias.of == slot.name) {
      problems.add(at, "expected an alias of another argument or storage");
      return;
    }
    const Value *base = manifest.findValue(alias.of);
    if (base && alias.storage) {
      problems.add(at, "'" + alias.of + "' is a value: its type stands there");
      return;
    }
    if (!base && !alias.storage) {
      problems.add(at + "/of", "expected the type of the storage '" + alias.of +
                                   "', since it is no value");
      return;
    }
    TensorType type =
        base ? TensorType{base->dtype, base->shape} : *alias.storage;
    if (!base) {
      auto [known, isNew] = storages.emplace(alias.of, type);
      if (!isNew && known->second != type)
        problems.add(
            at, "expected the storage '" + alias.of + "' to have the type " +
                    typeText(known->second.dtype, known->second.shape) +
                    " but got " + typeText(type.dtype, type.shape));
    }
    hasType(type, alias.views, {slot.dtype, slot.shape}, at);
  }

  void checkOutputs() {
    std::set<std::string> names;
    for (const Slot &slot : program.results)
      if (slot.role == Role::Output)
        names.insert(slot.name);
    for (size_t i = 0; i < program.aliases.size(); ++i) {
      const OutputAlias &output = program.aliases[i];
      std::string at = child(this->at + "/aliases", static_cast<int64_t>(i));
      const Value *value = manifest.findOutput(output.name);
      TensorType type{output.dtype, output.shape};
      if (isBackward(program) || takesGradients(program.name))
        problems.add(at, "'" + program.name + "' has no outputs");
      if (!value)
        problems.add(at + "/name", "there is no output '" + output.name + "'");
      else if (value->dtype != output.dtype || value->shape != output.shape)
        problems.add(at, "expected '" + output.name + "' to have the type " +
                             typeText(value->dtype, value->shape) +
                             " but got " +
                             typeText(output.dtype, output.shape));
      if (!names.insert(output.name).second)
        problems.add(at + "/name", "'" + output.name + "' is repeated");
      const Slot *base = output.alias.output.empty()
                             ? argument(output.alias.of)
                             : result(output.alias.output);
      if (!base)
        problems.add(at, output.alias.output.empty()
                             ? "there is no argument '" + output.alias.of + "'"
                             : "there is no output '" + output.alias.output +
                                   "' among the results");
      else
        hasType({base->dtype, base->shape}, output.alias.views, type, at);
    }
  }

  void only(bool allowed, bool present, const std::string &at, const char *key,
            const char *where) {
    if (present && !allowed)
      problems.add(child(at, key),
                   std::string("expected it on ") + where + " only");
  }

  std::optional<TensorType> typeOf(const TensorType &base,
                                   const std::vector<View> &views,
                                   const std::string &at) {
    Layout layout = Layout::of(base.dtype, base.shape);
    if (Status status = applyViews(views, layout); !status) {
      problems.add(at + "/views", status.message());
      return std::nullopt;
    }
    std::span<const int64_t> shape = layout.shape();
    return TensorType{layout.dtype, {shape.begin(), shape.end()}};
  }

  void hasType(const TensorType &base, const std::vector<View> &views,
               const TensorType &expected, const std::string &at) {
    std::optional<TensorType> type = typeOf(base, views, at);
    if (type && *type != expected)
      problems.add(at + "/views", "expected views of the type " +
                                      typeText(expected.dtype, expected.shape) +
                                      " but got " +
                                      typeText(type->dtype, type->shape));
  }

  const Slot *argument(const std::string &name) const {
    for (const Slot &slot : program.arguments)
      if (slot.role <= Role::State && slot.name == name)
        return &slot;
    return nullptr;
  }

  const Slot *result(const std::string &name) const {
    for (const Slot &slot : program.results)
      if (slot.role == Role::Output && slot.name == name)
        return &slot;
    return nullptr;
  }

  const Manifest &manifest;
  const Program &program;
  const std::string &at;
  ManifestProblems &problems;
  std::map<std::string, TensorType> storages; ///< that are no values
};

} // namespace

void checkAliases(const Manifest &manifest, const Program &program,
                  const std::string &at, ManifestProblems &problems) {
  AliasRules(manifest, program, at, problems).run();
}

} // namespace tandem::artifact
