//===- Explain.cpp - the command `explain` --------------------------------===//
#include "tools/tandem/CompileFlags.h"
#include "tools/tandem/CompilerCommands.h"
#include "tools/tandem/ExplainFacts.h"
#include "tools/tandem/ExplainFused.h"
#include "tools/tandem/LoadFacts.h"

#include "runtime/artifact/Text.h"

#include <algorithm>
#include <cstdio>

using namespace tandem;
using namespace tandem::commands;
using Json = nlohmann::ordered_json;

/// The version of the object that is printed. It grows where a field goes, or
/// means another thing; fields come without it.
static constexpr int kVersion = 1;

namespace {
struct ExplainOptions {
  static constexpr std::string_view
      usage = "explain X.tdm|MODEL --value=NAME [options]",
      description =
          "Answers a question about a compilation in sentences, from the facts "
          "that 'inspect --json' has. A model is compiled first, in memory; an "
          "artifact knows less, and says so.";

  std::string path, value, kernel, saved, pair;
  bool slow = false, large = false, json = false;
  CompileFlags flags;

  void declare(OptionTable &table);
};
} // namespace

static Status checkPair(std::string_view text) {
  // A name may have commas, too: which one is between the two is asked of the
  // model.
  size_t comma = text.find(',', 1);
  if (comma != std::string_view::npos && comma + 1 < text.size())
    return Status::success();
  return Status::usage("expected --why-not-fused=A,B with two ops, but got " +
                       artifact::inQuotes(text));
}

void ExplainOptions::declare(OptionTable &table) {
  table.positional("FILE", path, "an artifact (.tdm), or a model");
  table.text("value", "NAME", value,
             "what the value is, what reads and writes it");
  table.text("kernel", "SYMBOL|N", kernel,
             "what the kernel computes, how long and why so long");
  table.text("why-saved", "NAME", saved,
             "why the value is saved for the backward, or is not; or what a "
             "module of the model, such as layers.3, saves");
  table
      .text("why-not-fused", "A,B", pair,
            "why two ops are not in one kernel: each a path, a LINE:COLUMN of "
            "the model, or OP@ in front of one of these")
      .check(checkPair)
      .example("a,b")
      .notFor(".tdm", "an artifact, whose kernels are formed");
  table.flag("why-slow", slow, "where the predicted time of a step goes");
  table.flag("why-large", large,
             "what the peak of a step is made of, and which memory budget "
             "would halve it");
  table.flag("json", json, "print it as one JSON object");
  table.exactlyOneOf({"value", "kernel", "why-saved", "why-not-fused",
                      "why-slow", "why-large"});
  size_t own = table.options().size();
  table.groupOf("compile");
  flags.declare(table);
  // `--value=INPUT=VALUE` of a model in ONNX has the name of a question. A
  // model that needs it is compiled to an artifact first.
  auto &options = table.options();
  options.erase(
      std::find_if(options.begin() + static_cast<ptrdiff_t>(own), options.end(),
                   [](const Option &one) { return one.name == "value"; }));
  for (size_t i = own; i < table.options().size(); ++i)
    if (Option &option = table.options()[i]; option.name != "force")
      option.notFor(".tdm", "an artifact, which is compiled");
}

static Result<Json> answerOf(const ExplainOptions &command,
                             const FactsView &view, const SmallerPlans *plans) {
  Explainer explainer(view);
  if (command.large)
    return explainer.whyLarge(plans);
  if (!command.value.empty())
    return explainer.value(command.value);
  if (!command.kernel.empty())
    return explainer.kernel(command.kernel);
  if (!command.saved.empty())
    return explainer.whySaved(command.saved);
  return explainer.whySlow();
}

/// Of several targets those that can answer, unless none can.
static Result<Json> answersOf(const ExplainOptions &command,
                              const CompileOptions &options) {
  if (!command.pair.empty())
    return explainFused(command.path, options, command.pair);
  auto loaded = loadFacts(command.path, options);
  if (!loaded)
    return loaded.status();
  std::optional<SmallerPlans> plans;
  if (command.large && !isArtifact(command.path)) {
    FactsView view(loaded->facts, 0);
    const Json &peak = view.summary()["peaks"][0];
    if (loaded->facts["manifests"].size() == 1 && view.sizes().size() == 1 &&
        peak.is_number() && view.find("backward")) {
      auto smaller = smallerPlans(command.path, options, peak);
      if (smaller)
        plans = *std::move(smaller);
      // What is past the partition has its plan.
      else if (smaller.status().code() != Code::Usage)
        return smaller.status();
    }
  }
  Json answers = Json::array();
  Status first;
  for (size_t i = 0; i < loaded->facts["manifests"].size(); ++i) {
    auto answer = answerOf(command, FactsView(loaded->facts, i),
                           plans ? &*plans : nullptr);
    if (answer)
      answers.push_back(*answer);
    else if (first)
      first = answer.status();
  }
  if (answers.empty())
    return first;
  return answers;
}

static Json questionOf(const ExplainOptions &command) {
  for (const auto &[name, text] : {std::pair("value", &command.value),
                                   std::pair("kernel", &command.kernel),
                                   std::pair("why-saved", &command.saved),
                                   std::pair("why-not-fused", &command.pair)})
    if (!text->empty())
      return {{"question", name}, {"of", *text}};
  return {{"question", command.large ? "why-large" : "why-slow"}};
}

static Status runExplain(const ExplainOptions &command) {
  CompileOptions options;
  if (Status s = command.flags.finishWhole(options); !s)
    return s;
  Files files;
  command.flags.declare(files, command.path);
  if (Status s = files.check(command.flags.force); !s)
    return s;
  auto answers = answersOf(command, options);
  if (!answers)
    return answers.status();
  if (command.json) {
    Json all = {{"kind", "explain"}, {"version", kVersion}};
    all.update(questionOf(command));
    all["answers"] = *std::move(answers);
    std::printf("%s\n", jsonText(all).c_str());
    return Status::success();
  }
  for (const Json &answer : *answers) {
    if (answers->size() > 1)
      std::printf(
          "for %s\n",
          artifact::printable(answer["target"].get<std::string>()).c_str());
    for (const Json &sentence : answer["sentences"])
      std::printf("%s\n", sentence.get<std::string>().c_str());
  }
  return Status::success();
}

Command commands::explainCommand() {
  return commandOf<runExplain>("explain",
                               "answer a question about a compilation");
}
