//===- InspectTypes.cpp - which op is computed in which type --------------===//
//
// Of the forward, whose choices those of the backward follow.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/InspectTypes.h"

#include "ir/Autocast.h"
#include "ir/Where.h"
#include "passes/precision/ApplyAutocast.h"
#include "passes/precision/QuantizeProducts.h"
#include "passes/precision/Retyper.h"

#include <cstdio>
#include <map>

using namespace mlir;
using namespace tandem;
using namespace tandem::commands;

/// The type of the first float that `op` reads.
static std::string typeOf(Operation *op) {
  for (Value operand : op->getOperands())
    if (Type element = elementOf(operand); element && isa<FloatType>(element)) {
      std::string text;
      llvm::raw_string_ostream(text) << element;
      return text;
    }
  return "";
}

/// Its path, or its place where it has none.
static std::string nameOf(Operation *op) {
  StringRef path = pathOf(op);
  return path.empty() ? placeOf(op->getLoc(), /*withFolders=*/false)
                      : path.str();
}

Status commands::printTypes(const std::string &path, CompileOptions options) {
  options.stopAfter = "functionalize";
  Session session(options);
  Modules modules = session.phases(path);
  if (modules.empty())
    return session.status();
  std::map<std::string, int> counts;
  std::printf("%-40s %-16s %-8s %s\n", "path", "op", "type", "why");
  auto printAs = [&](Operation *op, const std::string &type, StringRef why) {
    ++counts[type];
    std::printf("%-40s %-16s %-8s %s\n", nameOf(op).c_str(),
                op->getName().stripDialect().str().c_str(), type.c_str(),
                why.str().c_str());
  };
  // What stands in them is one product.
  llvm::SmallPtrSet<Operation *, 8> products;
  auto printProduct = [&](Operation *op, Operation *made, StringRef why) {
    products.insert(made);
    printAs(op, "f8E4M3FN", why);
  };
  auto print = [&](Operation *op, StringRef why) {
    if (!products.contains(op->getParentOp()))
      printAs(op, typeOf(op), why);
  };
  if (failed(quantizeProducts(*modules.front(), printProduct)) ||
      failed(applyAutocast(*modules.front(), print)))
    return session.status();
  std::printf("\n");
  for (const auto &[type, count] : counts)
    std::printf("%d ops in %s\n", count, type.c_str());
  return Status::success();
}
