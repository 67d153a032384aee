//===- IndexRange.h - which indices a program takes -----------------------===//
//
// On a cast to i64, what importers say of an index: the least that the program
// takes, and one more than the largest. tandem-record-ranges reads it, for
// inputs, and removes it.
//
// What it says of a whole input are the properties `high`, `low` and `ignored`
// of its role. Of parts that ops read as other indices than the rest, or alone,
// it is `ranges`: dictionaries of `begins`, `ends` and `steps`, the slice, and
// of `low`, `high` and `ignored`, what its elements are.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_INDEXRANGE_H
#define TANDEM_IR_INDEXRANGE_H

#include "llvm/ADT/StringRef.h"

namespace tandem {

inline constexpr llvm::StringLiteral kIndexRangeAttr = "tandem.index_range";

/// The property, and its keys beside RoleAttr's `high`, `low` and `ignored`.
inline constexpr llvm::StringLiteral kSliceRanges = "ranges";
inline constexpr llvm::StringLiteral kRangeBegins = "begins";
inline constexpr llvm::StringLiteral kRangeEnds = "ends";
inline constexpr llvm::StringLiteral kRangeSteps = "steps";

} // namespace tandem

#endif
