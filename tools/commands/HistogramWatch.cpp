//===- HistogramWatch.cpp - histograms of some steps of a training --------===//
#include "tools/commands/HistogramWatch.h"

#include "runtime/artifact/NearestName.h"
#include "runtime/io/Array.h"
#include "tools/commands/BatchRun.h"

#include <algorithm>
#include <regex.h>

namespace tandem::commands {

using artifact::Program;
using artifact::Role;
using artifact::Slot;
using runtime::Model;
using runtime::Tensor;

namespace {

/// std::regex would be a tenth of tandem-run.
class Regex {
public:
  explicit Regex(const std::string &text)
      : error_(::regcomp(&regex_, text.c_str(), REG_EXTENDED | REG_NOSUB)) {}
  ~Regex() {
    if (!error_)
      ::regfree(&regex_);
  }
  Regex(const Regex &) = delete;
  Regex &operator=(const Regex &) = delete;

  bool isValid() const { return error_ == 0; }
  std::string why() const {
    char text[128];
    ::regerror(error_, &regex_, text, sizeof text);
    return text;
  }
  bool matches(const std::string &text) const {
    return ::regexec(&regex_, text.c_str(), 0, nullptr, 0) == 0;
  }

private:
  regex_t regex_;
  int error_;
};

constexpr std::string_view kParam = "param/", kGrad = "grad/",
                           kActivation = "activation/";

std::string named(std::string_view kind, const std::string &name) {
  return std::string(kind) + name;
}

/// The results of a program that have numbers to count.
void addResults(const Program *program, Role role, std::string_view kind,
                std::vector<std::string> &names) {
  if (!program)
    return;
  for (const Slot &slot : program->results)
    if (slot.role == role && artifact::isFloat(slot.dtype) &&
        !slot.shape.empty())
      names.push_back(named(kind, slot.name));
}

/// All that there is, each once: an output may be saved, too.
std::vector<std::string> allNames(const artifact::Manifest &manifest) {
  std::vector<std::string> names;
  for (const artifact::Value &value : manifest.values)
    if (value.role == Role::Param && artifact::isFloat(value.dtype))
      names.push_back(named(kParam, value.name));
  const Program *forward = manifest.findProgram("forward");
  addResults(manifest.findProgram("backward"), Role::Grad, kGrad, names);
  addResults(forward, Role::Output, kActivation, names);
  addResults(forward, Role::Saved, kActivation, names);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

/// The names themselves, the one first that may have been meant.
std::string listOf(const std::vector<std::string> &names,
                   const std::string &regex) {
  constexpr size_t kMost = 24;
  std::vector<std::string_view> ends;
  for (const std::string &name : names)
    ends.push_back(std::string_view(name).substr(name.find('/') + 1));
  std::vector<std::string_view> whole(names.begin(), names.end());
  std::string meant = didYouMean(regex, whole);
  std::string text = meant.empty() ? didYouMean(regex, ends) : meant;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i)
    text += (i ? ", " : ": there are ") + io::inQuotes(names[i]);
  if (names.size() > kMost)
    text += " and " + std::to_string(names.size() - kMost) + " more";
  return text;
}

} // namespace

Status checkHistograms(std::string_view text) {
  Regex regex{std::string(text)};
  return regex.isValid()
             ? Status::success()
             : Status::usage("option '--histograms' expected an extended "
                             "regular expression, but got " +
                             io::inQuotes(text) + ": " + regex.why());
}

Result<HistogramWatch> HistogramWatch::of(const artifact::Manifest &manifest,
                                          const std::string &text,
                                          int64_t every) {
  HistogramWatch watch;
  watch.every_ = every;
  std::vector<std::string> all = allNames(manifest);
  Regex regex(text);
  for (const std::string &name : all)
    if (regex.matches(name))
      watch.names_.push_back(name);
  if (watch.names_.empty())
    return Status::usage("--histograms=" + text + " matches no part of a name" +
                         listOf(all, text));
  for (const std::string &name : watch.names_) {
    watch.needsBackward_ |= name.starts_with(kGrad);
    watch.needsForward_ |= !name.starts_with(kParam);
  }
  return watch;
}

bool HistogramWatch::isWatched(const std::string &name) const {
  return std::binary_search(names_.begin(), names_.end(), name);
}

Result<NamedHistograms>
HistogramWatch::look(Model &model,
                     std::span<const runtime::Argument> inputs) const {
  NamedHistograms made;
  auto add = [&](std::string name, const Tensor &tensor) {
    if (!isWatched(name))
      return Status::success();
    auto host = tensor.onHost();
    if (!host)
      return std::move(host).status();
    made.emplace_back(std::move(name), Histogram::of(*host));
    return Status::success();
  };
  for (const artifact::Value &value : model.manifest().values)
    if (std::string name = named(kParam, value.name);
        value.role == Role::Param && isWatched(name)) {
      auto tensor = model.get(value.name);
      if (!tensor)
        return std::move(tensor).status();
      if (Status status = add(std::move(name), *tensor); !status)
        return status;
    }
  if (!needsForward_)
    return made;

  // Saved values are seen as they are packed; the backward gets them as they
  // are. An argument that is not copied is packed too, and is no activation.
  auto hooks = std::make_shared<runtime::SavedHooks>();
  auto isSaved = [&](std::string_view name) {
    const Program *forward = model.manifest().findProgram("forward");
    return std::any_of(forward->results.begin(), forward->results.end(),
                       [&](const Slot &slot) {
                         return slot.role == Role::Saved && slot.name == name;
                       });
  };
  hooks->pack = [&](std::string_view name,
                    const Tensor &value) -> Result<std::shared_ptr<void>> {
    if (isSaved(name))
      if (Status status = add(named(kActivation, std::string(name)), value);
          !status)
        return status;
    return std::shared_ptr<void>(std::make_shared<Tensor>(value));
  };
  hooks->unpack = [](std::string_view,
                     const std::shared_ptr<void> &packed) -> Result<Tensor> {
    return *std::static_pointer_cast<Tensor>(packed);
  };
  bool wantsSaved =
      std::any_of(names_.begin(), names_.end(), [](const std::string &name) {
        return name.starts_with(kActivation);
      });
  constexpr std::string_view programs[] = {"forward", "backward"};
  auto kept = KeptVariables::of(model, programs);
  if (!kept)
    return std::move(kept).status();
  auto run = runBatch(model, inputs, needsBackward_,
                      wantsSaved ? std::move(hooks) : nullptr);
  if (!run)
    return std::move(run).status();
  if (Status status = kept->putBack(model); !status)
    return status;
  auto addAll = [&](const Program *program, std::string_view kind,
                    std::span<const Tensor> tensors) {
    for (size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].defined() && tensors[i].isBacked())
        if (Status status =
                add(named(kind, program->results[i].name), tensors[i]);
            !status)
          return status;
    return Status::success();
  };
  if (Status status = addAll(run->forward, kActivation, run->outputs); !status)
    return status;
  if (Status status = addAll(run->backward, kGrad, run->gradients); !status)
    return status;
  // An output that is saved, too, was looked at twice.
  std::sort(made.begin(), made.end(),
            [](const auto &a, const auto &b) { return a.first < b.first; });
  made.erase(std::unique(made.begin(), made.end(),
                         [](const auto &a, const auto &b) {
                           return a.first == b.first;
                         }),
             made.end());
  return made;
}

} // namespace tandem::commands
