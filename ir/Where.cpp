//===- Where.cpp - what messages call ops, arguments and results ----------===//
#include "ir/Where.h"

#include "ir/Ops.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace tandem;

/// A kind is a name in parentheses between a node's and its file.
static bool isKind(StringRef name) {
  return name.starts_with("(") && name.ends_with(")");
}

static constexpr StringLiteral kGradient = "grad of ",
                               kRecomputation = "recompute of ",
                               kUpdate = "update by ";

static bool isMark(StringRef name) {
  return name.starts_with(kGradient) || name.starts_with(kRecomputation) ||
         name.starts_with(kUpdate);
}

std::string tandem::placeOf(Location loc, bool withFolders) {
  StringRef name, kind;
  if (auto named = dyn_cast<NameLoc>(loc)) {
    name = named.getName().getValue();
    if (isMark(name))
      return "";
    loc = named.getChildLoc();
    if (auto inner = dyn_cast<NameLoc>(loc);
        inner && isKind(inner.getName().getValue())) {
      kind = inner.getName().getValue();
      loc = inner.getChildLoc();
    }
  }
  auto file = dyn_cast<FileLineColLoc>(loc);
  if (!file || (!name.empty() && file.getColumn() != 0))
    return "";
  StringRef path = file.getFilename().getValue();
  std::string text =
      (withFolders ? path : llvm::sys::path::filename(path)).str();
  if (file.getColumn() != 0)
    return (text + ":" + Twine(file.getLine()) + ":" + Twine(file.getColumn()))
        .str();
  if (file.getLine() != 0)
    text += ", node " + std::to_string(file.getLine());
  else if (!name.empty())
    text += ",";
  if (!name.empty())
    text += (" '" + name + "'").str();
  return kind.empty() ? text : (text + " " + kind).str();
}

Location tandem::placeWithoutLine(StringRef file, StringRef name,
                                  StringRef kind, unsigned number,
                                  MLIRContext *context) {
  Location loc = FileLineColLoc::get(context, file, number, /*column=*/0);
  if (!kind.empty())
    loc = NameLoc::get(StringAttr::get(context, "(" + kind + ")"), loc);
  return NameLoc::get(StringAttr::get(context, name), loc);
}

std::string tandem::inOneLine(std::string text) {
  for (char &c : text)
    if (!llvm::isPrint(c) && static_cast<unsigned char>(c) < 0x80)
      c = '?';
  return text;
}

std::string tandem::whereIs(Operation *op) {
  std::string text = ("'" + op->getName().getStringRef() + "'").str(), place;
  if (auto custom = dyn_cast<CustomVjpOp>(op))
    text += (" '" + custom.getName() + "'").str();
  op->getLoc()->walk([&](Location inner) {
    place = placeOf(inner, /*withFolders=*/false);
    return place.empty() ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (!place.empty())
    return inOneLine(text + " at " + place);
  if (StringRef path = pathOf(op); !path.empty())
    return inOneLine((text + " at '" + path + "'").str());
  return text;
}

StringRef tandem::pathOf(Location loc) {
  StringRef path;
  loc->walk([&](Location inner) {
    auto named = dyn_cast<NameLoc>(inner);
    StringRef name = named ? named.getName().getValue() : StringRef();
    if (name.empty() || isMark(name) || isKind(name))
      return WalkResult::advance();
    path = name;
    return WalkResult::interrupt();
  });
  return path;
}

StringRef tandem::pathOf(Operation *op) { return pathOf(op->getLoc()); }

//===----------------------------------------------------------------------===//
// Marks
//===----------------------------------------------------------------------===//

static Location marked(StringRef mark, StringRef name, Location loc) {
  return NameLoc::get(StringAttr::get(loc.getContext(), mark + name), loc);
}

Location tandem::gradientOf(StringRef name, Location loc) {
  return marked(kGradient, name, loc);
}

Location tandem::recomputationOf(StringRef name, Location loc) {
  return marked(kRecomputation, name, loc);
}

Location tandem::updateBy(StringRef name, Location loc) {
  return marked(kUpdate, name, loc);
}

Marks::Marks(Location loc) {
  loc->walk([&](Location inner) {
    auto named = dyn_cast<NameLoc>(inner);
    StringRef name = named ? named.getName().getValue() : StringRef();
    if (!isMark(name))
      return WalkResult::advance();
    if (pass.empty())
      pass = name.starts_with(kGradient)        ? "backward"
             : name.starts_with(kRecomputation) ? "recompute"
                                                : "update";
    if (name.consume_front(kGradient) && gradientOf.empty())
      gradientOf = name.split(' ').first;
    return WalkResult::advance();
  });
}

std::string tandem::nameOfArgument(RoleAttr role, unsigned index) {
  return "'" + role.str() + "' (argument #" + std::to_string(index) + ")";
}

std::string tandem::nameOfResult(RoleAttr role, unsigned index) {
  return "'" + role.str() + "' (result #" + std::to_string(index) + ")";
}
