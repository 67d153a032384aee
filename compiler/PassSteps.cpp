//===- PassSteps.cpp - the passes of a compilation, one by one ------------===//
#include "compiler/PassSteps.h"
#include "compiler/CheckOptions.h"
#include "compiler/Phases.h"
#include "ir/Dialect.h"
#include "ir/Keys.h"
#include "passes/RegisterPasses.h"
#include "passes/pipelines/Pipelines.h"
#include "runtime/artifact/NearestName.h"

#include "mlir/InitAllPasses.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <mutex>

using namespace mlir;
using namespace tandem;

void tandem::registerCompilerPasses() {
  // The registry is one for the process.
  static std::once_flag once;
  std::call_once(once, [] {
    registerAllPasses();
    registerTandemPasses();
    registerTandemPipelines();
  });
}

//===----------------------------------------------------------------------===//
// Pipelines and lists
//===----------------------------------------------------------------------===//

/// Cuts the first element off a list that commas part, outside of brackets.
static StringRef takeElement(StringRef &list) {
  int depth = 0;
  size_t i = 0;
  for (; i < list.size(); ++i) {
    char c = list[i];
    depth += (c == '(' || c == '{') - (c == ')' || c == '}');
    if (c == ',' && depth == 0)
      break;
  }
  StringRef element = list.take_front(i).trim();
  list = list.drop_front(std::min(i + 1, list.size()));
  return element;
}

/// Adds the passes of a pipeline as MLIR prints it.
static void split(StringRef list, const std::vector<std::string> &nest,
                  PassSteps &steps) {
  while (!list.empty()) {
    StringRef element = takeElement(list);
    StringRef name = element.take_until(
        [](char c) { return c == '(' || c == '{' || c == ' '; });
    if (element.drop_front(name.size()).starts_with("(")) {
      std::vector<std::string> inner = nest;
      inner.push_back(name.str());
      split(element.drop_front(name.size() + 1).drop_back(), inner, steps);
      continue;
    }
    PassStep step;
    step.text = element.str();
    name.consume_front("tandem-");
    step.name = name.str();
    step.nest = nest;
    steps.push_back(std::move(step));
  }
}

Result<PassSteps> tandem::parseSteps(StringRef phase, StringRef pipeline,
                                     int first) {
  registerCompilerPasses();
  std::string message, text;
  llvm::raw_string_ostream error(message), out(text);
  OpPassManager passes(ModuleOp::getOperationName());
  if (failed(parsePassPipeline(pipeline, passes, error)))
    return Status::failed("phase '" + phase.str() +
                          "' has a broken pipeline: " + message);
  passes.printAsTextualPipeline(out);
  StringRef list = text;
  list.consume_front("builtin.module(");
  PassSteps steps;
  split(list.drop_back(), {}, steps);
  for (PassStep &step : steps) {
    step.phase = phase.str();
    step.number = step.name == "enter-phase" ? 0 : first++;
  }
  return steps;
}

Result<PassSteps> tandem::stepsOf(const Phase &phase,
                                  const CompileOptions &options,
                                  StringRef kind) {
  return parseSteps(phase.name, phase.pipeline(options, kind));
}

std::string tandem::pipelineText(ArrayRef<PassStep> steps) {
  std::string text;
  std::vector<std::string> open;
  for (const PassStep &step : steps) {
    size_t common = 0;
    while (common < open.size() && common < step.nest.size() &&
           open[common] == step.nest[common])
      ++common;
    text.append(open.size() - common, ')');
    text += text.empty() ? "" : ",";
    for (size_t i = common; i < step.nest.size(); ++i)
      text += step.nest[i] + "(";
    text += step.text;
    open = step.nest;
  }
  return text.append(open.size(), ')');
}

//===----------------------------------------------------------------------===//
// Within a phase
//===----------------------------------------------------------------------===//

void tandem::setWithin(ModuleOp module, const PassStep &done,
                       ArrayRef<PassStep> rest) {
  if (rest.empty()) {
    module->removeAttr(kWithinAttr);
    return;
  }
  Builder b(module.getContext());
  module->setAttr(
      kWithinAttr,
      b.getDictionaryAttr(
          {b.getNamedAttr(key::kAfter, b.getStringAttr(done.name)),
           b.getNamedAttr(key::kNumber, b.getI64IntegerAttr(done.number)),
           b.getNamedAttr(key::kPhase, b.getStringAttr(done.phase)),
           b.getNamedAttr(key::kRest, b.getStringAttr(pipelineText(rest)))}));
}

/// A string of the stamp; empty if there is none.
static StringRef withinString(ModuleOp module, StringRef key) {
  auto within = module->getAttrOfType<DictionaryAttr>(kWithinAttr);
  auto text = within ? within.getAs<StringAttr>(key) : StringAttr();
  return text ? text.getValue() : StringRef();
}

std::string tandem::phaseWithin(ModuleOp module) {
  return withinString(module, key::kPhase).str();
}

std::string tandem::placeOf(ModuleOp module) {
  if (!module->hasAttr(kWithinAttr))
    return "'" + phaseOf(module).str() + "'";
  return "'" + phaseWithin(module) + "', after the pass '" +
         withinString(module, key::kAfter).str() + "'";
}

int tandem::phaseReached(ModuleOp module) {
  auto within = phaseNumber(phaseWithin(module));
  return within ? *within : *phaseNumber(phaseOf(module));
}

/// The passes that the stamp says are left of its phase. They are the
/// compiler's own, or others that the phase has, so that a dump starts nothing
/// that compiling would not.
static Result<PassSteps>
stepsWithin(ModuleOp module, const CompileOptions &options, StringRef kind) {
  auto wrong = [](const Twine &what) {
    return Status::failed(("'tandem.within' " + what).str());
  };
  StringRef name = withinString(module, key::kPhase);
  const Phase *phase = llvm::find_if(
      phases(), [&](const Phase &one) { return one.name == name; });
  if (phase == phases().end() ||
      *phaseNumber(name) != *phaseNumber(phaseOf(module)) + 1)
    return wrong("expected 'phase' to be the one that follows '" +
                 phaseOf(module) + "' but got '" + name + "'");
  auto number = module->getAttrOfType<DictionaryAttr>(kWithinAttr)
                    .getAs<IntegerAttr>(key::kNumber);
  int first = number && number.getInt() >= 0 && number.getInt() < 10000
                  ? static_cast<int>(number.getInt()) + 1
                  : 1;
  StringRef rest = withinString(module, key::kRest);
  if (rest.empty())
    return wrong("expected 'rest' to be the passes that are left of '" + name +
                 "'");
  auto steps = parseSteps(name, rest, first);
  if (!steps)
    return steps;
  auto own = stepsOf(*phase, options, kind);
  if (!own)
    return own;
  for (const PassStep &step : *steps)
    if (!StringRef(step.text).starts_with("tandem-") &&
        llvm::none_of(
            *own, [&](const PassStep &one) { return one.text == step.text; }))
      return wrong("has a pass that '" + name + "' has not: '" + step.text +
                   "'");
  return steps;
}

//===----------------------------------------------------------------------===//
// Where a compilation stops
//===----------------------------------------------------------------------===//

/// "NAME:N" as name, without "tandem-", and count; 0 if it is no count.
static std::pair<StringRef, int> parseStop(StringRef text) {
  auto [name, count] = text.split(':');
  name.consume_front("tandem-");
  int number = 1;
  if (text.contains(':') && (count.getAsInteger(10, number) || number < 1))
    number = 0;
  return {name, number};
}

/// Where the pass that is asked for ends among `steps`; 0 if nowhere.
static size_t endOf(ArrayRef<PassStep> steps, StringRef name, int run) {
  for (auto [i, step] : llvm::enumerate(steps))
    if (step.name == name && --run == 0)
      return i + 1;
  return 0;
}

Result<PassSteps> tandem::stepsLeft(ModuleOp module,
                                    const CompileOptions &options,
                                    StringRef kind) {
  PassSteps all;
  bool isWithin = module->hasAttr(kWithinAttr);
  int done = *phaseNumber(phaseOf(module));
  auto last = phaseNumber(options.stopAfter);
  if (last && phaseReached(module) > *last)
    return Status::usage("cannot stop after '" + options.stopAfter +
                         "': the module is at " + placeOf(module));
  for (const Phase &phase : phases()) {
    int number = *phaseNumber(phase.name);
    if (number <= done || (last && number > *last))
      continue;
    auto steps = isWithin && number == done + 1
                     ? stepsWithin(module, options, kind)
                     : stepsOf(phase, options, kind);
    if (!steps)
      return steps;
    llvm::append_range(all, *steps);
  }
  if (last || options.stopAfter.empty())
    return all;
  auto [name, run] = parseStop(options.stopAfter);
  size_t end = endOf(all, name, run);
  if (!end)
    return Status::usage(
        "cannot stop after '" + options.stopAfter + "': for '" + kind.str() +
        "' " + (run > 1 ? "so many runs of the pass" : "no such pass") +
        (run > 1 ? " are" : " is") + " not left for a module at " +
        placeOf(module));
  all.resize(end);
  return all;
}

/// The passes of all phases for a kind of target; none if that is not right.
static PassSteps allSteps(const CompileOptions &options, StringRef kind) {
  PassSteps all;
  for (const Phase &phase : phases())
    if (auto steps = stepsOf(phase, options, kind))
      llvm::append_range(all, *steps);
  return all;
}

std::vector<std::string> tandem::passNames() {
  std::vector<std::string> names;
  for (StringRef kind : {"cpu", "cuda"})
    for (const PassStep &step : allSteps({}, kind))
      if (!llvm::is_contained(names, step.name))
        names.push_back(step.name);
  return names;
}

std::string tandem::phaseOfStop(StringRef text) {
  if (phaseNumber(text))
    return text.str();
  auto [name, run] = parseStop(text);
  for (StringRef kind : {"cpu", "cuda"}) {
    PassSteps all = allSteps({}, kind);
    if (size_t end = endOf(all, name, run))
      return all[end - 1].phase;
  }
  return "";
}

Status tandem::checkStopAfter(const CompileOptions &options) {
  if (options.stopAfter.empty() || phaseNumber(options.stopAfter))
    return Status::success();
  std::vector<StringRef> kinds = {"cpu", "cuda"};
  if (auto targets = targetsOf(options); targets && !options.target.empty()) {
    kinds.clear();
    for (const Target &target : *targets)
      if (!llvm::is_contained(kinds, kindOf(target)))
        kinds.push_back(kindOf(target));
  }
  auto [name, run] = parseStop(options.stopAfter);
  std::vector<std::string> known = {"capture"};
  for (const Phase &phase : phases())
    known.push_back(phase.name.str());
  std::string phaseList;
  for (const std::string &phase : known)
    phaseList += (phaseList.empty() ? "" : ", ") + phase;
  std::vector<StringRef> with;
  for (StringRef kind : kinds) {
    PassSteps all = allSteps(options, kind);
    for (const PassStep &step : all)
      known.push_back(step.name);
    if (run && endOf(all, name, run))
      with.push_back(kind);
  }
  bool isAnyTarget = options.target.empty();
  if (with.size() == kinds.size() || (isAnyTarget && !with.empty()))
    return Status::success();
  if (!with.empty())
    return Status::usage("--stop-after: not every target has the pass '" +
                         options.stopAfter + "'; '" + with.front().str() +
                         "' has it");
  std::vector<std::string_view> views(known.begin(), known.end());
  if (!llvm::is_contained(known, name.str()) &&
      llvm::is_contained(passNames(), name.str()))
    return Status::usage("--stop-after: what is asked for needs no pass '" +
                         name.str() + "'");
  if (llvm::is_contained(known, name.str()))
    return Status::usage(
        "option '--stop-after' expected NAME:N, the run N of a pass, with at "
        "most as many as there are, but got '" +
        options.stopAfter + "'");
  return Status::usage("option '--stop-after' expected " + phaseList +
                       " or the name of a pass but got '" + options.stopAfter +
                       "'" + didYouMean(name.str(), views));
}

/// "enter-phase, simplify".
static std::string listOf(ArrayRef<PassStep> steps) {
  return llvm::join(
      llvm::map_range(steps, [](const PassStep &step) { return step.name; }),
      ", ");
}

/// In lines of at most 79 columns, those behind the first indented.
static std::string wrapped(StringRef text) {
  std::string lines;
  size_t column = 0;
  for (StringRef word : llvm::split(text, ' ')) {
    bool begins = column > 0 && column + 1 + word.size() > 79;
    StringRef before = begins ? "\n  " : column ? " " : "";
    column = (begins ? 2 : column + before.size()) + word.size();
    lines += (before + word).str();
  }
  return lines + "\n";
}

std::string tandem::passesText() {
  std::string text =
      "The passes of each phase, in their order, as '--stop-after=PASS' and "
      "the "
      "files of\n'--dump-passes' name them. Of a pass that runs several times "
      "NAME is the next run\nand NAME:N the one that is the Nth from where the "
      "model stands. What a pass does\nis in docs/passes.md, and in "
      "'tandem-opt --help'.\n";
  for (const Phase &phase : phases()) {
    auto cpu = stepsOf(phase, {}, "cpu"), cuda = stepsOf(phase, {}, "cuda");
    if (!cpu || !cuda)
      continue;
    std::string ofCpu = listOf(*cpu), ofCuda = listOf(*cuda);
    std::string name = phase.name.str();
    text += ofCpu == ofCuda ? "\n" + wrapped(name + ": " + ofCpu)
                            : "\n" + wrapped(name + " (cpu): " + ofCpu) + "\n" +
                                  wrapped(name + " (cuda): " + ofCuda);
  }
  return text;
}
