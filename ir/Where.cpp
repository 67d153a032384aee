//===- Where.cpp - an op and its place in the source, as text -------------===//
#include "ir/Where.h"

#include "llvm/ADT/StringExtras.h"
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

/// A file may have any name, but a place is said in one line.
static std::string inOneLine(std::string text) {
  for (char &c : text)
    if (!llvm::isPrint(c) && static_cast<unsigned char>(c) < 0x80)
      c = '?';
  return text;
}

std::string tandem::whereIs(Operation *op) {
  std::string text = ("'" + op->getName().getStringRef() + "'").str();
  if (FileLineColLoc place = placeOf(op->getLoc()))
    return inOneLine(
        (text + " at " +
         llvm::sys::path::filename(place.getFilename().getValue()) + ":" +
         Twine(place.getLine()) + ":" + Twine(place.getColumn()))
            .str());
  if (auto named = dyn_cast<NameLoc>(op->getLoc()))
    return inOneLine((text + " at '" + named.getName().getValue() + "'").str());
  return text;
}
