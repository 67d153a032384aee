//===- Check.cpp - a program as compiled, against the oracle --------------===//
#include "tests/property/Check.h"

#include "tests/property/Comparison.h"

#include "compiler/Compile.h"
#include "compiler/Phases.h"
#include "ir/Signature.h"
#include "ir/reference/Arguments.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <cmath>
#include <random>

using namespace mlir;
using namespace tandem;
using namespace tandem::property;

/// Numbers with few digits, the same for the same seed and name.
static Array draw(uint64_t seed, StringRef name, ArrayRef<int64_t> shape) {
  for (char c : name)
    seed = seed * 1099511628211u + static_cast<unsigned char>(c);
  std::mt19937_64 random(seed);
  Array result(shape);
  for (double &x : result.data)
    x = (static_cast<double>(random() % 3000) - 1500) / 1000;
  return result;
}

std::vector<Array> property::valuesOf(const Recipe &recipe, func::FuncOp func) {
  reference::Call call;
  for (unsigned i = 0; i < func.getNumArguments(); ++i) {
    RoleAttr role = roleOfArgument(func, i);
    auto alias = role.getProperties().getAs<DictionaryAttr>("alias");
    auto type = cast<RefType>(func.getArgumentTypes()[i]);
    call.arguments.push_back(
        alias ? std::nullopt
              : std::optional(
                    draw(recipe.seed, role.getName(), type.getShape())));
    // Storage that is no argument.
    if (auto shared = alias ? alias.getAs<TypeAttr>("type") : TypeAttr()) {
      StringRef name = alias.getAs<StringAttr>("of");
      call.storages[name.str()] =
          draw(recipe.seed, name,
               cast<RankedTensorType>(shared.getValue()).getShape());
    }
  }
  reference::Outcome outcome;
  auto refs = reference::bindRefs(func, call, outcome);
  std::vector<Array> values;
  if (succeeded(refs))
    for (auto &ref : *refs)
      values.push_back(*ref->read());
  return values;
}

Array property::cotangentOf(const Recipe &recipe, StringRef name,
                            ArrayRef<int64_t> shape) {
  return draw(recipe.seed + 1, name, shape);
}

void property::dropSome(const Recipe &recipe,
                        std::map<std::string, Array> &cotangents) {
  std::mt19937_64 random(recipe.seed + 2);
  if (random() % 2)
    return;
  // Without any the runtime runs nothing, and there is nothing to compare.
  for (auto it = cotangents.begin(); it != cotangents.end();)
    it = cotangents.size() > 1 && random() % 3 == 0 ? cotangents.erase(it)
                                                    : std::next(it);
}

std::string property::textOf(const Recipe &recipe, MLIRContext &context) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  build(recipe, context)->print(stream);
  return text;
}

static std::string nameOf(Mistake mistake) {
  switch (mistake) {
  case Mistake::Overlap:
    return "a write through an overlapping view";
  case Mistake::LeafWritten:
    return "a param that is written visibly";
  case Mistake::SetAndWrite:
    return "set_ and a visible write";
  case Mistake::SharedState:
    return "a backward on storage that inputs share";
  case Mistake::NoStrides:
    return "an output without strides";
  case Mistake::ModelHandle:
    return "a change of a handle of the model";
  case Mistake::OutputOverlap:
    return "outputs that overlap";
  }
  return "";
}

/// The kind of error that diagnostics are about; nothing if none that is known.
static std::optional<Mistake> classify(StringRef diagnostics) {
  if (diagnostics.contains("whose elements overlap in storage"))
    return Mistake::Overlap;
  if (diagnostics.contains("uses storage which inputs share"))
    return Mistake::SharedState;
  if (diagnostics.contains("not at equal distances"))
    return Mistake::NoStrides;
  if (diagnostics.contains("which is the model's"))
    return Mistake::ModelHandle;
  if (diagnostics.contains("which requires grad and is written by"))
    return Mistake::SetAndWrite;
  if (diagnostics.contains("overlap in storage that no output"))
    return Mistake::OutputOverlap;
  if (diagnostics.contains("requires grad, but the graph writes it"))
    return Mistake::LeafWritten;
  return std::nullopt;
}

namespace {

class Checker {
public:
  Checker(const Recipe &recipe, MLIRContext &context)
      : recipe(recipe), context(context), captured(build(recipe, context)),
        handler(&context, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
            diagnostics += diagnostic.str() + "\n";
          return success();
        }) {}

  Verdict run(StringRef lastPhase);

private:
  /// Runs a phase; false if it found an error, of which the verdict then says
  /// whether it is due.
  bool runPhase(const Phase &phase);
  Verdict fail(const std::string &what, const std::string &details = "") {
    return {Verdict::Fails, what, details};
  }
  std::map<std::string, Array> cotangents(func::FuncOp joint) const;
  Verdict checkBackward(StringRef phase);

  const Recipe &recipe;
  MLIRContext &context;
  OwningOpRef<ModuleOp> captured, module;
  std::string diagnostics;
  ScopedDiagnosticHandler handler;
  std::optional<Oracle> oracle;
  Verdict verdict;
};

} // namespace

bool Checker::runPhase(const Phase &phase) {
  CompileOptions options;
  PassManager manager(&context);
  manager.enableVerifier(true);
  bool ok =
      succeeded(parsePassPipeline(phase.pipeline(options, "cpu"), manager)) &&
      succeeded(manager.run(*module));
  std::set<Mistake> due;
  for (Mistake mistake : oracle->required)
    if (phase.name == "functionalize"
            ? mistake != Mistake::LeafWritten
            : phase.name == "joint" && mistake == Mistake::LeafWritten)
      due.insert(mistake);
  std::string name = phase.name.str();
  if (ok) {
    if (!due.empty())
      verdict = fail(name + " accepts " + nameOf(*due.begin()));
    return due.empty();
  }
  auto found = classify(diagnostics);
  if (found && (due.count(*found) || oracle->allowed.count(*found)))
    verdict.kind = Verdict::Refused;
  else
    verdict = fail(name + " refuses " +
                       (found ? nameOf(*found) : std::string("the program")),
                   diagnostics);
  return false;
}

/// Cotangents for all that the joint can take, but for some that are undefined.
std::map<std::string, Array> Checker::cotangents(func::FuncOp joint) const {
  std::map<std::string, Array> result;
  for (unsigned i = 0, n = joint.getNumArguments(); i < n; ++i) {
    RoleAttr role = roleOfArgument(joint, i);
    if (role.getKind() == RoleKind::Cotangent)
      result[role.getName().str()] = cotangentOf(
          recipe, role.getName(),
          cast<RankedTensorType>(joint.getArgumentTypes()[i]).getShape());
  }
  dropSome(recipe, result);
  return result;
}

Verdict Checker::run(StringRef lastPhase) {
  if (failed(verify(*captured)))
    return fail("the program is invalid", diagnostics);
  auto graph = captured->lookupSymbol<func::FuncOp>("graph");
  std::vector<Array> values = valuesOf(recipe, graph);
  oracle.emplace(graph, values);
  // Sines of large numbers differ by more than rounding.
  auto isLarge = [&] { return !(oracle->largest < 1e3); };
  if (isLarge())
    return {Verdict::Skipped, "large numbers", ""};
  module = cast<ModuleOp>(captured.get()->clone());
  Comparison comparison(*oracle, graph, values);
  bool isBackwardDone = false;
  for (const Phase &phase : phases()) {
    if (!runPhase(phase))
      return verdict;
    std::string name = phase.name.str(), problem;
    if (phase.name == "functionalize") {
      problem = comparison.graph(module->lookupSymbol<func::FuncOp>("graph"));
    } else if (auto joint = module->lookupSymbol<func::FuncOp>("joint")) {
      if (!isBackwardDone) {
        if (oracle->isAmbiguous)
          return {Verdict::Skipped, "a backward that may or may not run", ""};
        auto given = cotangents(joint);
        problem = comparison.cotangents(joint, given);
        oracle->backward(given);
        isBackwardDone = true;
        if (isLarge())
          return {Verdict::Skipped, "large numbers", ""};
        if (oracle->isAmbiguous)
          return {Verdict::Skipped, "a backward that may or may not run", ""};
      }
      if (problem.empty())
        problem = comparison.joint(joint);
    } else {
      problem = comparison.programs(*module);
    }
    if (!problem.empty() || !diagnostics.empty())
      return fail(name + ": " + problem.substr(0, problem.find('\n')),
                  problem + "\n" + diagnostics);
    if (phase.name == lastPhase)
      break;
  }
  return {};
}

Verdict property::check(const Recipe &recipe, MLIRContext &context,
                        const std::string &lastPhase) {
  return Checker(recipe, context).run(lastPhase);
}
