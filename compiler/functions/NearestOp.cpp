//===- NearestOp.cpp - which op a model that names none may mean ----------===//
#include "compiler/functions/NearestOp.h"
#include "compiler/functions/Function.h"
#include "ir/Nearest.h"

#include "mlir/IR/OperationSupport.h"

using namespace mlir;
using namespace tandem;

bool tandem::isOpOfPhases(StringRef name) {
  static constexpr StringRef names[] = {
      "read",    "make_ref",   "yield",      "kernel",
      "launch",  "undefined",  "to_host",    "to_device",
      "or_zero", "accumulate", "if_defined", "pass_grad"};
  return llvm::is_contained(names, name);
}

static constexpr std::pair<StringLiteral, StringLiteral> aliases[] = {
#define OP_ALIAS(name, ours) {name, ours},
#include "compiler/functions/OpAliases.def"
#undef OP_ALIAS
};

std::string tandem::suggestOp(MLIRContext *context, StringRef name,
                              bool withFunctions) {
  for (auto [alias, ours] : aliases)
    if (alias == name)
      return " (did you mean '" + ours.str() + "'?)";
  SmallVector<StringRef> known;
  for (RegisteredOperationName op : context->getRegisteredOperations())
    if (StringRef own = op.getStringRef();
        own.consume_front("tandem.") && (!withFunctions || !isOpOfPhases(own)))
      known.push_back(own);
  if (withFunctions)
    for (const auto &entry : FunctionTable::get().all())
      known.push_back(entry.first);
  return didYouMean(name, known);
}
