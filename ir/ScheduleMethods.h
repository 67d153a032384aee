//===- ScheduleMethods.h - the names of ways to compute a kernel ----------===//
//
// What `method` of `#tandem.schedule` may be (ScheduleMethod of
// ir/Attributes.td), for messages and completions.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_SCHEDULEMETHODS_H
#define TANDEM_IR_SCHEDULEMETHODS_H

#include "ir/Dialect.h"

namespace tandem {

/// All names, in the order of the enumeration.
llvm::SmallVector<llvm::StringRef> methodNames();

/// "'a', 'b' or 'c'", for messages.
std::string listOf(llvm::ArrayRef<llvm::StringRef> names);

} // namespace tandem

#endif
