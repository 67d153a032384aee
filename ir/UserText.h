//===- UserText.h - what a user gives to LLVM's parsers -------------------===//
//
// LLVM's parsers of regular expressions and of JSON call themselves for each
// level, and a regular expression is written out for each repeat. These look at
// a text before they do.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_USERTEXT_H
#define TANDEM_IR_USERTEXT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"

#include <string>

namespace tandem {

/// True if `text` is a regular expression (llvm::Regex), of at most 10,000
/// characters when its repeats are written out, and 100 levels of parentheses.
/// Else `error` says why.
bool isRegex(llvm::StringRef text, std::string &error);

/// llvm::json::parse of a text of at most 100 levels, none of whose objects has
/// a key twice, which the parser takes for one.
llvm::Expected<llvm::json::Value> parseUserJson(llvm::StringRef text);

} // namespace tandem

#endif
