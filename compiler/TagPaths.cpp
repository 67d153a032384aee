//===- TagPaths.cpp - tags for the ops of some paths ----------------------===//
#include "compiler/TagPaths.h"
#include "compiler/PassSteps.h"
#include "compiler/Phases.h"
#include "ir/Dialect.h"
#include "ir/Tags.h"
#include "ir/UserText.h"
#include "ir/Where.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace tandem;

namespace {

/// An option, and the tag that it gives.
struct PathOption {
  const char *name;
  const std::string &expression;
  StringRef tag;
  SmallVector<StringRef, 2> others; ///< that exclude it
};

} // namespace

static std::array<PathOption, 3> pathOptions(const CompileOptions &options) {
  return {{{"--save", options.save, kSaveAttr, {kRecomputeAttr}},
           {"--offload", options.offload, kOffloadAttr, {kRecomputeAttr}},
           {"--recompute",
            options.recompute,
            kRecomputeAttr,
            {kSaveAttr, kOffloadAttr}}}};
}

Status tandem::checkTagPaths(const CompileOptions &options) {
  std::vector<std::string> wrong;
  for (const PathOption &option : pathOptions(options)) {
    if (option.expression.empty())
      continue;
    std::string error;
    if (!isRegex(option.expression, error))
      wrong.push_back("expected " + std::string(option.name) +
                      " to be a regular expression, but got '" +
                      option.expression + "': " + error);
    if (options.inference)
      wrong.push_back("--inference and " + std::string(option.name) +
                      " exclude each other");
  }
  return wrong.empty() ? Status::success()
                       : Status::usage(llvm::join(wrong, "; "));
}

/// "'a', 'b' and 3 more".
static std::string listOf(ArrayRef<StringRef> paths) {
  constexpr size_t kMost = 24;
  std::string text;
  for (auto [i, path] : llvm::enumerate(paths.take_front(kMost)))
    text += (i ? ", '" : "'") + path.str() + "'";
  if (paths.size() > kMost)
    text += " and " + std::to_string(paths.size() - kMost) + " more";
  return text;
}

Status tandem::matchesNone(const std::string &option,
                           ArrayRef<StringRef> paths) {
  return Status::usage(
      option + " matches none of the paths of the model: " +
      (paths.empty() ? "it has none (in .mlir an op gets one by "
                       "loc(\"h0.relu\"), in JSON by 'name' and 'module', in a "
                       "traced program by trace.module)"
                     : listOf(paths)));
}

/// Tags what `option` matches among `ops`.
static Status tag(ArrayRef<Operation *> ops, const PathOption &option) {
  llvm::Regex expression(option.expression);
  llvm::SetVector<StringRef> paths;
  bool any = false;
  for (Operation *op : ops) {
    StringRef path = pathOf(op);
    if (path.empty() || !isTaggable(op) || !isRepeatable(op))
      continue;
    paths.insert(path);
    if (!expression.match(path))
      continue;
    any = true;
    for (StringRef other : option.others)
      if (op->hasAttr(other))
        return Status::usage(std::string(option.name) + "=" +
                             option.expression + " matches '" + path.str() +
                             "', which is tagged '" + other.str() + "'");
    op->setAttr(option.tag, UnitAttr::get(op->getContext()));
  }
  return any ? Status::success()
             : matchesNone(std::string(option.name) + "=" + option.expression,
                           paths.getArrayRef());
}

Status tandem::tagPaths(ModuleOp module, const CompileOptions &options) {
  bool isPast = phaseReached(module) >= *phaseNumber("partition");
  SmallVector<Operation *> ops;
  for (StringRef name : {"graph", "joint", "grad_joint"})
    if (auto func = module.lookupSymbol<func::FuncOp>(name))
      for (Operation &op : func.getOps()) {
        // Of a joint, what the model says itself.
        auto pass = op.getAttrOfType<StringAttr>(kPassAttr);
        if (!pass || pass.getValue() == "forward")
          ops.push_back(&op);
      }
  for (const PathOption &option : pathOptions(options)) {
    if (option.expression.empty())
      continue;
    if (isPast)
      return Status::usage(std::string(option.name) +
                           " has no effect on a module that is past "
                           "'partition'; this one is at " +
                           placeOf(module));
    if (Status s = tag(ops, option); !s)
      return s;
  }
  return Status::success();
}
