//===- Precision.cpp - --amp, --fp8 and --precision -----------------------===//
#include "compiler/Precision.h"
#include "compiler/TagPaths.h"
#include "ir/Autocast.h"
#include "ir/UserText.h"
#include "ir/Where.h"
#include "passes/precision/Policy.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace tandem;

static constexpr llvm::StringLiteral kBackward = "backward";

Status tandem::checkAmp(const CompileOptions &options) {
  if (options.amp.empty() || options.amp == "bf16" || options.amp == "f16")
    return Status::success();
  return Status::usage("expected --amp to be bf16 or f16, but got '" +
                       options.amp + "'");
}

namespace {
struct Rule {
  StringRef paths; ///< an expression, or kBackward
  StringRef type;
};
} // namespace

/// At the last colon: an expression may have others.
static Rule ruleOf(StringRef text) {
  auto [paths, type] = text.rsplit(':');
  return {paths, type};
}

static Type typeOf(StringRef name, MLIRContext *context) {
  Builder b(context);
  return llvm::StringSwitch<Type>(name)
      .Case("f32", b.getF32Type())
      .Case("bf16", b.getBF16Type())
      .Case("f16", b.getF16Type())
      .Default({});
}

Status tandem::checkPrecisionRule(std::string_view text) {
  auto [paths, type] = ruleOf(text);
  std::string error;
  if (!llvm::is_contained({"f32", "bf16", "f16"}, type) || paths.empty())
    error = "behind the last colon there is none of f32, bf16 and f16";
  else if (paths == kBackward || isRegex(paths, error))
    return Status::success();
  return Status::usage("expected --precision=backward:TYPE or REGEX:TYPE, but "
                       "got '" +
                       std::string(text) + "': " + error);
}

/// Says the type of the ops of `graph` whose paths the rule matches.
static Status stampPaths(func::FuncOp graph, const Rule &rule,
                         StringRef option) {
  llvm::Regex expression(rule.paths);
  llvm::SetVector<StringRef> paths;
  bool any = false;
  Type type = typeOf(rule.type, graph.getContext());
  graph.walk([&](Operation *op) {
    StringRef path = pathOf(op);
    if (path.empty() || op == graph || !hasChoice(op))
      return;
    paths.insert(path);
    if (!expression.match(path))
      return;
    any = true;
    op->setAttr(kComputeTypeAttr, TypeAttr::get(type));
  });
  return any ? Status::success()
             : matchesNone(option.str(), paths.getArrayRef());
}

Status tandem::stampPrecision(ModuleOp module, const CompileOptions &options) {
  MLIRContext *context = module.getContext();
  if (!options.amp.empty())
    module->setAttr(kAmpAttr, TypeAttr::get(typeOf(options.amp, context)));
  if (!options.fp8.empty())
    module->setAttr(kFp8Attr, StringAttr::get(context, options.fp8));
  for (const std::string &text : options.precision) {
    if (Status s = checkPrecisionRule(text); !s)
      return s;
    Rule rule = ruleOf(text);
    if (rule.paths == kBackward) {
      module->setAttr(kBackwardTypeAttr,
                      TypeAttr::get(typeOf(rule.type, context)));
      continue;
    }
    auto graph = module.lookupSymbol<func::FuncOp>("graph");
    if (!graph)
      continue;
    if (Status s = stampPaths(graph, rule, "--precision=" + text); !s)
      return s;
  }
  return Status::success();
}
