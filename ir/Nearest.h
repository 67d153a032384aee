//===- Nearest.h - what somebody who misspelt a name meant ----------------===//
//
// As runtime/artifact/NearestName.h, which the IR must not see, with LLVM's
// distance of texts.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_NEAREST_H
#define TANDEM_IR_NEAREST_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace tandem {

/// The name of `known` that is nearest to `name`, if about a third of the
/// letters differ or less; else empty. The first of several.
llvm::StringRef nearestName(llvm::StringRef name,
                            llvm::ArrayRef<llvm::StringRef> known);

/// " (did you mean 'NEAREST'?)", to end a message with; empty if nothing is
/// near.
std::string didYouMean(llvm::StringRef name,
                       llvm::ArrayRef<llvm::StringRef> known);

} // namespace tandem

#endif
