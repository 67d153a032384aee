//===- Diff.cpp - the command `diff` --------------------------------------===//
#include "tools/tandem/BugreportFiles.h"
#include "tools/tandem/CompileFlags.h"
#include "tools/tandem/CompilerCommands.h"
#include "tools/tandem/DiffFacts.h"
#include "tools/tandem/LoadFacts.h"
#include "tools/tandem/Report.h"
#include "tools/tandem/WriteText.h"

#include <cstdio>

using namespace tandem;
using namespace tandem::commands;

namespace {
struct DiffOptions {
  static constexpr std::string_view
      usage = "diff A B [options]",
      description =
          "Says what changed from one compilation to another: options, memory, "
          "predicted times, kernels, what is saved. A and B are artifacts, or "
          "models, which are compiled first, in memory. What has the largest "
          "effect comes first.";

  std::string a, b, html, onlyB;
  bool json = false, exitCode = false;
  CompileFlags flags;
  const OptionTable *table = nullptr; ///< what was given, to give it to B

  void declare(OptionTable &options);
};
} // namespace

void DiffOptions::declare(OptionTable &options) {
  table = &options;
  options.positional("A", a, "an artifact (.tdm), or a model");
  options.positional("B", b, "another one, or the same model");
  options.flag("json", json, "print it as one JSON object");
  options
      .text("html", "F.html", html,
            "write a page that shows it: it opens without a network")
      .check(checkReportFile)
      .example("report.html")
      .excludes("json");
  options.flag("exit-code", exitCode, "end with exit code 4 where they differ");
  options
      .text("b-options", "OPTIONS", onlyB,
            "further options for B, as one text: '--memory-budget=0.5'; one "
            "that A has too is replaced")
      .example("--memory-budget=0.5");
  options.groupOf("compile");
  flags.declare(options);
}

/// The options for B: those for both, and its own in place of theirs.
static Result<CompileOptions> optionsOfB(const DiffOptions &command) {
  std::vector<std::string> own = splitWords(command.onlyB), words = {command.b};
  CompileFlags flags;
  OptionTable table(DiffOptions::usage, DiffOptions::description);
  std::string file;
  table.positional("B", file, "");
  flags.declare(table);
  for (const Option &option : command.table->options()) {
    auto isReplaced = [&](const std::string &word) {
      return word == option.written() ||
             word.starts_with(option.written() + "=");
    };
    if (!option.given || !table.find(option.name) ||
        std::any_of(own.begin(), own.end(), isReplaced))
      continue;
    for (const std::string &value : option.values)
      words.push_back(option.written() +
                      (option.takesValue() ? "=" + value : ""));
  }
  words.insert(words.end(), own.begin(), own.end());
  std::vector<std::string_view> views(words.begin(), words.end());
  if (Status s = table.parse(views); !s)
    return std::move(s).in("options of B");
  if (table.helpAsked())
    return Status::usage("--b-options has options to compile by, but --help is "
                         "none");
  CompileOptions options;
  Status status = flags.finishWhole(options);
  return status ? Result<CompileOptions>(std::move(options))
                : std::move(status).in("options of B");
}

static Result<DiffSide> load(const std::string &path,
                             const CompileOptions &options) {
  auto loaded = loadFacts(path, options);
  if (!loaded)
    return loaded.status();
  return DiffSide{path, std::move(loaded->reader), std::move(loaded->facts)};
}

static Status checkSides(const DiffOptions &command) {
  bool areArtifacts = isArtifact(command.a) && isArtifact(command.b);
  for (const Option &option : command.table->options())
    if (areArtifacts && option.folded && option.given && option.name != "force")
      return Status::usage(option.written() +
                           " has no effect: A and B are artifacts, which are "
                           "compiled");
  if (isArtifact(command.b) && !command.onlyB.empty())
    return Status::usage("--b-options has no effect: B is an artifact, which "
                         "is compiled");
  return Status::success();
}

static Status runDiff(const DiffOptions &command) {
  if (Status s = checkSides(command); !s)
    return s;
  CompileOptions options;
  if (Status s = command.flags.finishWhole(options); !s)
    return s;
  auto optionsB = optionsOfB(command);
  if (!optionsB)
    return optionsB.status();
  Files files;
  command.flags.declare(files, command.a);
  files.reads("B", command.b);
  files.writes({"--html", command.html, {io::FileKind::Report}});
  if (Status s = files.check(command.flags.force); !s)
    return s;
  auto a = load(command.a, options);
  if (!a)
    return a.status();
  auto b = load(command.b, *optionsB);
  if (!b)
    return b.status();
  const nlohmann::ordered_json diff = diffFacts(*a, *b);
  if (!command.html.empty()) {
    if (Status s = writeText(command.html, reportPage(diff)); !s)
      return s;
  } else if (command.json) {
    std::printf("%s\n", jsonText(diff).c_str());
  } else {
    std::fputs(diffText(diff).c_str(), stdout);
  }
  if (command.exitCode && !diff["equal"].get<bool>())
    return {Code::Differs, "A and B differ"};
  return Status::success();
}

Command commands::diffCommand() {
  return commandOf<runDiff>("diff", "say what changed between two artifacts");
}
