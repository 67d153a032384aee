//===- PartitionMarks.cpp - what passes of partition say to each other ----===//
#include "ir/PartitionMarks.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using namespace tandem;

bool tandem::isPartitionMark(StringRef name) {
  return name == kSavedAttr || name == kSavedByAttr || name == kPreparedAttr;
}

/// One reason, or for several results a list with at least one.
static bool areReasons(Attribute value, unsigned results) {
  if (results == 1)
    return isa<StringAttr>(value);
  auto list = dyn_cast<ArrayAttr>(value);
  if (!list || list.size() != results)
    return false;
  return llvm::all_of(list, llvm::IsaPred<StringAttr, UnitAttr>) &&
         llvm::any_of(list, llvm::IsaPred<StringAttr>);
}

LogicalResult tandem::verifyPartitionMark(Operation *op, NamedAttribute mark) {
  StringRef name = mark.getName();
  unsigned results = op->getNumResults();
  if (name != kSavedByAttr && !isa_and_nonnull<func::FuncOp>(op->getParentOp()))
    return op->emitOpError()
           << "'" << name << "' belongs on an op of a function's body";
  if (name != kSavedAttr) {
    auto text = dyn_cast<StringAttr>(mark.getValue());
    if (name == kPreparedAttr && results != 1)
      return op->emitOpError() << "expected one result under '" << name << "'";
    if (text && !text.empty())
      return success();
    return op->emitOpError() << "expected '" << name
                             << "' to be a string, but got " << mark.getValue();
  }
  if (results == 0)
    return op->emitOpError() << "has no result that '" << name << "' could be "
                             << "about";
  if (areReasons(mark.getValue(), results))
    return success();
  InFlightDiagnostic error = op->emitOpError()
                             << "expected '" << name << "' to be ";
  if (results == 1)
    error << "a reason, as a string";
  else
    error << "a list of " << results
          << ", a reason or 'unit' for each result, at least one of them a "
             "reason";
  return error << ", but got " << mark.getValue();
}
