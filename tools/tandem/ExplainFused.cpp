//===- ExplainFused.cpp - why two ops of a model are not in one kernel ----===//
//
// The model is compiled until the pass that forms kernels, whose decisions are
// made once more with what was decided against written down.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/ExplainFused.h"

#include "ir/Where.h"
#include "passes/plan/ExplainFusion.h"
#include "passes/target/Target.h"
#include "runtime/artifact/NearestName.h"
#include "runtime/artifact/Text.h"
#include "tools/tandem/Session.h"

#include "llvm/ADT/StringExtras.h"

#include <array>
#include <map>
#include <set>

using namespace mlir;
using namespace tandem;
using namespace tandem::commands;
using Json = nlohmann::ordered_json;

/// The last pass before kernels are formed.
static constexpr const char *kBefore = "remake-values";

/// Of a file with this many ops in one place not all pairs are told.
static constexpr size_t kMostAnswers = 20;

/// "mlp.mlir:33:11" of the first place in a file.
static std::string placeIn(Location location) {
  std::string place;
  location->walk([&](Location loc) {
    if (place.empty())
      place = placeOf(loc, /*withFolders=*/false);
    return WalkResult::advance();
  });
  return place;
}

static bool isNamed(Operation *op, StringRef name) {
  if (name.contains('@')) {
    auto [kind, rest] = name.split('@');
    if (op->getName().stripDialect() != kind)
      return false;
    name = rest;
  }
  std::string place = placeIn(op->getLoc());
  return pathOf(op) == name || place == name ||
         StringRef(place).ends_with((":" + name).str());
}

/// "mul at mlp.mlir:33:11 ('layers.0', of the gradient of exp)".
static std::string textOf(Operation *op) {
  std::string text = op->getName().stripDialect().str();
  if (std::string place = placeIn(op->getLoc()); !place.empty())
    text += " at " + artifact::printable(place);
  SmallVector<std::string> more;
  // The place of a node has its name.
  if (std::string path = artifact::inQuotes(pathOf(op));
      path != "''" && !StringRef(text).contains(path))
    more.push_back(path);
  Marks marks(op->getLoc());
  if (!marks.gradientOf.empty())
    more.push_back("of the gradient of " + marks.gradientOf.str());
  else if (marks.pass == "recompute")
    more.push_back("run again");
  return more.empty() ? text : text + " (" + llvm::join(more, ", ") + ")";
}

static SmallVector<Operation *> named(func::FuncOp func, StringRef name) {
  SmallVector<Operation *> found;
  for (Operation &op : func.getBody().front().without_terminator())
    if (isNamed(&op, name))
      found.push_back(&op);
  return found;
}

static std::string sentenceOf(const ExplainedFusion::Answer &answer,
                              Operation *a, Operation *b) {
  std::string both = textOf(a) + " and " + textOf(b);
  switch (answer.outcome) {
  case ExplainedFusion::Outcome::One:
    return both + " are in one kernel";
  case ExplainedFusion::Outcome::Repeated:
    return both + " are in no kernel together: one of them has none of its "
                  "own, as a view, a constant or a cheap op that each kernel "
                  "that uses it makes again";
  case ExplainedFusion::Outcome::Refused:
    return both + " are in two kernels: " + answer.why.str();
  case ExplainedFusion::Outcome::NotTried:
    break;
  }
  return both + " are in two kernels: fusion never tried to join these, as it "
                "tries an op with those that use it, and loops that read one "
                "large tensor";
}

static const char *spellingOf(ExplainedFusion::Outcome outcome) {
  switch (outcome) {
  case ExplainedFusion::Outcome::One:
    return "one";
  case ExplainedFusion::Outcome::Repeated:
    return "repeated";
  case ExplainedFusion::Outcome::Refused:
    return "refused";
  case ExplainedFusion::Outcome::NotTried:
    break;
  }
  return "not tried";
}

/// The pairs of one program; false, with a diagnostic, where fusion fails.
static bool addPairs(func::FuncOp func, StringRef a, StringRef b,
                     std::vector<std::string> &sentences, Json &facts) {
  SmallVector<Operation *> as = named(func, a), bs = named(func, b);
  if (as.empty() || bs.empty())
    return true;
  auto fusion = ExplainedFusion::of(func);
  if (failed(fusion))
    return false;
  for (Operation *x : as)
    for (Operation *y : bs) {
      if (x == y)
        continue;
      auto answer = fusion->between(x, y);
      std::string sentence =
          "in '" + func.getName().str() + "' " + sentenceOf(answer, x, y);
      if (llvm::is_contained(sentences, sentence))
        continue;
      sentences.push_back(std::move(sentence));
      Json one = {{"program", func.getName().str()},
                  {"a", textOf(x)},
                  {"b", textOf(y)},
                  {"outcome", spellingOf(answer.outcome)}};
      if (!answer.why.empty())
        one["why"] = answer.why.str();
      facts.push_back(std::move(one));
    }
  return true;
}

/// What ops can be asked about by.
static Status unknown(ModuleOp module, const std::string &name) {
  std::set<std::string> known;
  for (auto func : module.getOps<func::FuncOp>())
    if (!func.isExternal())
      for (Operation &op : func.getBody().front().without_terminator()) {
        if (StringRef path = pathOf(&op); !path.empty())
          known.insert(path.str());
        if (std::string place = placeIn(op.getLoc()); !place.empty())
          known.insert(std::move(place));
      }
  std::vector<std::string_view> views(known.begin(), known.end());
  std::string nearest(nearestName(name, views));
  std::string some;
  for (size_t i = 0; nearest.empty() && i < std::min<size_t>(views.size(), 5);
       ++i)
    some += (i ? ", " : "") + artifact::inQuotes(views[i]);
  return Status::usage(
      "there is no op " + artifact::inQuotes(name) +
      (nearest.empty()
           ? some.empty() ? "" : "; known are " + some
           : " (did you mean " + artifact::inQuotes(nearest) + "?)"));
}

/// True if an op of a program has the name.
static bool isKnown(ModuleOp module, StringRef name) {
  return llvm::any_of(module.getOps<func::FuncOp>(), [&](func::FuncOp func) {
    return !func.isExternal() && !named(func, name).empty();
  });
}

/// The two names of "A,B", which may have commas themselves: where the module
/// has both, else at the first comma.
static std::pair<std::string, std::string> namesIn(ModuleOp module,
                                                   StringRef pair) {
  for (size_t comma = pair.find(','); comma != StringRef::npos;
       comma = pair.find(',', comma + 1)) {
    StringRef a = pair.take_front(comma), b = pair.drop_front(comma + 1);
    if (isKnown(module, a) && isKnown(module, b))
      return {a.str(), b.str()};
  }
  auto [a, b] = pair.split(',');
  return {a.str(), b.str()};
}

static Result<Json> answerOf(ModuleOp module, StringRef pair) {
  auto [a, b] = namesIn(module, pair);
  bool hasA = false, hasB = false;
  std::vector<std::string> list;
  Json pairs = Json::array();
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isExternal())
      continue;
    hasA |= !named(func, a).empty();
    hasB |= !named(func, b).empty();
    if (!addPairs(func, a, b, list, pairs))
      return Status::failed("kernels cannot be formed");
  }
  if (!hasA || !hasB)
    return unknown(module, hasA ? b : a);
  if (list.empty())
    list.emplace_back(a == b ? "that is one op, of which there is one in each "
                               "program"
                             : "the two are in no program together");
  if (list.size() > kMostAnswers) {
    std::string rest = "and " + std::to_string(list.size() - kMostAnswers) +
                       " pairs more: OP@PLACE names fewer ops";
    list.resize(kMostAnswers);
    list.push_back(rest);
  }
  list.emplace_back("a later pass can still make one kernel of two that it "
                    "knows as gradients of attention, or, on a GPU, as small "
                    "updates: 'tandem inspect MODEL --json' has the kernels as "
                    "they are");
  return Json{{"sentences", list}, {"facts", {{"pairs", std::move(pairs)}}}};
}

/// "cpu znver4", as FactsView has it of an artifact.
static std::string targetText(ModuleOp module) {
  std::string kind = isForCuda(module) ? "cuda" : "cpu";
  auto target = module->getAttrOfType<TargetAttr>(kTargetAttr);
  return target && !target.getArch().empty()
             ? kind + " " + target.getArch().str()
             : kind;
}

Result<Json> commands::explainFused(const std::string &path,
                                    CompileOptions options,
                                    const std::string &pair) {
  options.stopAfter = kBefore;
  Session session(options);
  Modules modules = session.phases(path);
  if (modules.empty())
    return session.status();
  Json answers = Json::array();
  for (auto &module : modules) {
    auto answer = answerOf(*module, pair);
    if (!answer)
      return answer.status();
    Json one = {{"target", targetText(*module)}};
    one.update(*answer);
    answers.push_back(std::move(one));
  }
  return answers;
}

/// Reasons that are alike count as one, with the ops of the first.
static Result<Json> notFusedIn(func::FuncOp func) {
  auto fusion = ExplainedFusion::of(func);
  if (failed(fusion))
    return Status::failed("kernels cannot be formed");
  Json rows = Json::array();
  std::map<std::array<std::string, 3>, size_t> known;
  for (const ExplainedFusion::Refused &one : fusion->refused()) {
    auto kindOf = [](Operation *op) {
      return op->getName().stripDialect().str();
    };
    auto [place, isNew] = known.try_emplace(
        {kindOf(one.a), kindOf(one.b), one.why.str()}, rows.size());
    if (isNew)
      rows.push_back({{"program", func.getName().str()},
                      {"a", textOf(one.a)},
                      {"b", textOf(one.b)},
                      {"why", one.why.str()},
                      {"times", 0}});
    Json &times = rows[place->second]["times"];
    times = times.get<int64_t>() + 1;
  }
  return rows;
}

Status commands::addNotFused(Json &facts, const std::string &model,
                             CompileOptions options) {
  if (!facts.contains("planned") || !options.variants.empty())
    return Status::success();
  options.stopAfter = kBefore;
  options.dumpPhases.clear();
  options.dumpPasses.clear();
  options.tune.reset();
  options.timing = nullptr;
  Session session(options);
  // What is wrong with the model was said when it was compiled.
  ScopedDiagnosticHandler quiet(&session.context(),
                                [](Diagnostic &) { return success(); });
  Modules modules = session.phases(model);
  // A module that is past that has its kernels.
  if (modules.empty())
    return Status::success();
  Json targets = Json::array();
  for (auto &module : modules) {
    Json rows = Json::array();
    for (auto func : module.get().getOps<func::FuncOp>()) {
      if (func.isExternal())
        continue;
      auto ofProgram = notFusedIn(func);
      if (!ofProgram)
        return ofProgram.status();
      for (Json &row : *ofProgram)
        rows.push_back(std::move(row));
    }
    targets.push_back(std::move(rows));
  }
  facts["not_fused"] = std::move(targets);
  return Status::success();
}
