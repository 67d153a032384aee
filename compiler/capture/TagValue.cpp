//===- TagValue.cpp - tags of values that are still storage ---------------===//
#include "compiler/capture/TagValue.h"

#include "compiler/capture/DemoteRefs.h"
#include "ir/Ops.h"
#include "ir/Tags.h"

using namespace mlir;
using namespace tandem;

/// The last write to a storage, whatever view it goes through.
static WriteOp lastWriteTo(Value storage) {
  WriteOp last;
  SmallVector<Value> refs = {storage};
  for (size_t i = 0; i < refs.size(); ++i)
    for (Operation *user : refs[i].getUsers()) {
      if (isa<RefViewOpInterface, TransposeHandleOp>(user))
        refs.push_back(user->getResult(0));
      auto write = dyn_cast<WriteOp>(user);
      if (write && (!last || last->isBeforeInBlock(write)))
        last = write;
    }
  return last;
}

LogicalResult tandem::tagValue(Value ref, StringRef tag, Location loc) {
  while (true) {
    Value storage = storageOf(ref), value;
    if (WriteOp write = lastWriteTo(storage)) {
      if (tag == kRecomputeAttr) {
        auto error = emitError(loc)
                     << "'" << write->getName()
                     << "' writes the value, and cannot be computed again as '"
                     << tag << "' says";
        error.attachNote(write.getLoc()) << "it is written here";
        return error;
      }
      value = write.getValue();
    } else if (auto make = storage.getDefiningOp<MakeRefOp>()) {
      value = make.getValue();
    }
    Operation *op = value ? value.getDefiningOp() : nullptr;
    if (auto read = dyn_cast_or_null<ReadOp>(op)) {
      ref = read.getRef();
      continue;
    }
    if (!op)
      return emitError(loc) << "expected '" << tag
                            << "' to be about a value that the program "
                               "computes, but got an argument";
    op->setAttr(tag, UnitAttr::get(op->getContext()));
    return verifyTag(op, *op->getDiscardableAttrDictionary().getNamed(tag));
  }
}
