//===- IndexRange.h - which indices a program takes -----------------------===//
//
// On a cast to i64, what importers say of an index: the least that the program
// takes, and one more than the largest. tandem-record-ranges reads it, for
// inputs, and removes it.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_INDEXRANGE_H
#define TANDEM_IR_INDEXRANGE_H

#include "llvm/ADT/StringRef.h"

namespace tandem {

inline constexpr llvm::StringLiteral kIndexRangeAttr = "tandem.index_range";

} // namespace tandem

#endif
