//===- Where.cpp - an op and its place in the source, as text -------------===//
#include "ir/Where.h"

#include "llvm/Support/Path.h"

using namespace mlir;

/// The place in a file behind `loc`, or null.
static FileLineColLoc placeOf(Location loc) {
  FileLineColLoc place;
  loc->walk([&](Location inner) {
    place = dyn_cast<FileLineColLoc>(inner);
    return place ? WalkResult::interrupt() : WalkResult::advance();
  });
  return place;
}

std::string tandem::whereIs(Operation *op) {
  std::string text = ("'" + op->getName().getStringRef() + "'").str();
  if (FileLineColLoc place = placeOf(op->getLoc()))
    return (text + " at " +
            llvm::sys::path::filename(place.getFilename().getValue()) + ":" +
            Twine(place.getLine()) + ":" + Twine(place.getColumn()))
        .str();
  if (auto named = dyn_cast<NameLoc>(op->getLoc()))
    return (text + " at '" + named.getName().getValue() + "'").str();
  return text;
}
