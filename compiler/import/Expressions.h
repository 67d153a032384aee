//===- Expressions.h - names that --train and --freeze say ----------------===//
#ifndef TANDEM_COMPILER_IMPORT_EXPRESSIONS_H
#define TANDEM_COMPILER_IMPORT_EXPRESSIONS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace tandem {

/// "a" and "b(c|d)" of "a|b(c|d)".
llvm::SmallVector<llvm::StringRef> alternativesOf(llvm::StringRef expression);

/// Whether the expression is there and matches a part of `name`.
bool matches(const std::string &expression, const std::string &name);

} // namespace tandem

#endif
