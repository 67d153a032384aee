//===- Nesting.h - how deep a module's text may nest ----------------------===//
//
// MLIR's parser, verifier and printer call themselves for what lies in brackets
// in one another, as deep as the text says, and attributes are printed as often
// as aliases say. So the text is looked at before MLIR sees it, for what else
// it crashes at too.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_NESTING_H
#define TANDEM_COMPILER_NESTING_H

#include "runtime/artifact/Status.h"

#include "llvm/ADT/StringRef.h"

namespace tandem {

/// Brackets (regions, lists, types, attributes), and aliases of attributes and
/// types in one another.
inline constexpr int kMaxNesting = 256;
/// What an alias stands for has at most so many aliases and brackets in all.
inline constexpr int kMaxAliasSize = 1 << 16;
/// Operators of one affine expression, each of which nests in the next.
inline constexpr int kMaxOperators = 1024;

/// Checks a module's text, which may be anything, against these; the message
/// begins with "PATH:LINE:COLUMN: ".
Status checkNesting(llvm::StringRef text, llvm::StringRef path);

} // namespace tandem

#endif
