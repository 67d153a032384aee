//===- ScheduleMethods.h - the names of ways to compute a kernel ----------===//
//
// What `method` of `#tandem.schedule` may be: the names of the rows in the
// tables of methods (passes/lower/common/Method.h). A name is spelled here once
// for all targets, so that a misspelt one is an error where it stands; which
// rows a kernel has, and which of them compute it, the tables say.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_SCHEDULEMETHODS_H
#define TANDEM_IR_SCHEDULEMETHODS_H

#include "ir/Dialect.h"

namespace tandem {

/// All names; a ScheduleMethod is the place of its name among them.
llvm::ArrayRef<llvm::StringRef> methodNames();

llvm::StringRef nameOf(ScheduleMethod method);
/// Nothing if no method is called so.
std::optional<ScheduleMethod> methodNamed(llvm::StringRef name);

/// "'a', 'b' or 'c'", for messages.
std::string listOf(llvm::ArrayRef<llvm::StringRef> names);

} // namespace tandem

#endif
