//===- Topics.cpp - pages of help about what the compiler takes -----------===//
//
// Made from the tables that are parsed with.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/CompilerCommands.h"
#include "tools/tandem/SimulationFlags.h"

#include "compiler/PassSteps.h"
#include "compiler/import/Losses.h"
#include "passes/partition/OptimizerSpec.h"
#include "passes/partition/optimizers/Schedules.h"
#include "tools/commands/Print.h"

#include "llvm/Support/FormatVariadic.h"

using namespace tandem;
using namespace tandem::commands;

static std::string optimizers() {
  std::string text =
      "--optimizer=NAME or NAME:KEY=VALUE,... compiles an optimizer into the\n"
      "artifact. p is a parameter, g its gradient; formulas and defaults are "
      "those of the\nsource in brackets. 'train --lr' sets another learning "
      "rate. A rate of 0 is for\nexperiments: states move, parameters do "
      "not.\n";
  for (const OptimizerKind &kind : optimizerKinds()) {
    text += llvm::formatv("\n{0}: {1} [{2}]\n", kind.name, kind.meaning,
                          kind.source);
    for (const OptimizerOption &option : kind.options) {
      text += llvm::formatv("  {0,-15}{1,-8}{2} ({3})\n", option.name,
                            valueText(option), option.meaning, rangeOf(option));
    }
  }
  return text;
}

static std::string schedules() {
  std::string text =
      "--lr-schedule=NAME or NAME:KEY=VALUE,... computes the learning rate in "
      "the step,\nfrom lr, the optimizer's (the state OPT.lr, which 'train "
      "--lr' and programs set),\nand the number of updates before this one. "
      "One that is skipped does not count. The\nlast rate holds past the end. "
      "The values are those of the source in brackets.\n";
  auto add = [&](llvm::ArrayRef<OptimizerOption> options) {
    for (const OptimizerOption &option : options)
      text += llvm::formatv("  {0,-10}{1,-8}{2} ({3})\n", option.name,
                            valueText(option), option.meaning, rangeOf(option));
  };
  for (const ScheduleKind &kind : scheduleKinds()) {
    text += llvm::formatv("\n{0}: {1} [{2}]\n", kind.name, kind.meaning,
                          kind.source);
    add(kind.options);
  }
  text += "\nAll but onecycle, which rises by itself, take\n";
  add(warmupOptions());
  return text;
}

static std::string losses() {
  std::string text =
      "--loss=NAME is an output of the model, which is differentiated.\n"
      "--loss=KIND:OUTPUT,LABELS gives a model of another format a loss: the "
      "mean over\nall elements (rows, for classes; over the batch, for dice) "
      "of "
      "OUTPUT, any value\nof the graph, and LABELS, a new input. What they "
      "are:\n\n";
  for (const auto &[kind, meaning] : lossKinds())
    text += llvm::formatv("  {0,-17}{1}\n", kind, meaning);
  return text;
}

static std::string paths() {
  return "--save, --offload and --recompute match a part of an op's path: the "
         "names of the\nmodules that it is of, then its own, as "
         "h0.attn.matmul. It comes from\n\n"
         "  .mlir            the location: loc(\"h0.attn.matmul\")\n"
         "  JSON             'module' and 'name' of the node\n"
         "  a C++ program    trace.module(\"h0\")\n"
         "  ONNX             the name of the node\n\n"
         "A model without paths has nothing that could be matched.\n";
}

static std::string targets() {
  return "--target=KIND[:ARCH][+...]\n\n"
         "  cpu                        this machine's processor\n"
         "  cpu:x86-64-v3              a processor, by LLVM's name\n"
         "  cpu:aarch64                the same of aarch64: all of it, "
         "neoverse-n1, ...\n"
         "  cpu:x86-64-v3+x86-64-v4    several; the best that fits is chosen "
         "when\n                             the artifact is loaded\n"
         "  cpu:x86-64-v3+aarch64      for both kinds of machines\n"
         "  cuda, cuda:sm_90           sm_80, sm_86, sm_89, sm_90, sm_90a, "
         "sm_100\n"
         "  cpu+cuda:sm_90             both in one artifact\n";
}

std::span<const Topic> commands::compilerTopics() {
  static constexpr Topic topics[] = {
      {"losses", "what --loss can be", losses},
      {"machines", "the devices and links of 'simulate'", machinesHelp},
      {"optimizers", "what --optimizer can be, and its defaults", optimizers},
      {"passes", "the passes of each phase", passesText},
      {"paths", "how ops are named by --save and --recompute", paths},
      {"schedules", "what --lr-schedule can be", schedules},
      {"targets", "what --target can be", targets}};
  return topics;
}
