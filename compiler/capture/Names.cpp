//===- Names.cpp - what a model and its values may be called --------------===//
#include "compiler/capture/Names.h"
#include "ir/Signature.h"
#include "ir/TiedNames.h"
#include "runtime/artifact/Text.h"

using namespace mlir;
using namespace tandem;

static bool isSeparator(char c) { return c == '/' || c == '\\'; }

std::string tandem::modelNameProblem(StringRef name) {
  if (!artifact::hasControls(name) && !llvm::any_of(name, isSeparator))
    return "";
  return "expected a model's name without '/', '\\' and control characters, "
         "since files are named after it, but got " +
         artifact::inQuotes(name);
}

std::string tandem::modelNameOf(StringRef name) {
  std::string made = name.empty() ? "model" : name.str();
  for (char &c : made)
    if (isSeparator(c) || artifact::hasControls(std::string_view(&c, 1)))
      c = '_';
  return made;
}

LogicalResult tandem::checkNames(ModuleOp module) {
  bool isFine = true;
  if (std::string problem = modelNameProblem(module.getName().value_or(""));
      !problem.empty()) {
    module.emitError(problem);
    isFine = false;
  }
  auto checkName = [&](StringRef name, Location loc) {
    if (!artifact::hasControls(name))
      return;
    mlir::emitError(loc) << "expected a name without control characters, but "
                            "got "
                         << artifact::inQuotes(name);
    isFine = false;
  };
  auto check = [&](RoleAttr role, Location loc) {
    if (!role)
      return;
    checkName(role.getName().getValue(), loc);
    if (auto others = role.getProperty<ArrayAttr>(kAlsoCalled))
      for (auto other : others.getAsRange<StringAttr>())
        checkName(other.getValue(), loc);
  };
  for (auto func : module.getOps<func::FuncOp>()) {
    for (BlockArgument argument :
         func.isDeclaration() ? Block::BlockArgListType()
                              : Block::BlockArgListType(func.getArguments()))
      check(roleOfArgument(func, argument.getArgNumber()), argument.getLoc());
    for (unsigned i = 0; i < func.getNumResults(); ++i)
      check(roleOfResult(func, i), func.getLoc());
  }
  return success(isFine);
}
