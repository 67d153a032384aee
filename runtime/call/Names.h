//===- Names.h - what messages call arguments and results -----------------===//
//
// Internal to the runtime. Of the artifact's programs; nothing here knows a
// call.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_CALL_NAMES_H
#define TANDEM_RUNTIME_CALL_NAMES_H

#include "runtime/artifact/Manifest.h"

#include <string>

namespace tandem::runtime {

/// Returns "grad of 'w' (index 2)".
std::string slotName(const artifact::Slot &slot, size_t index);
/// Returns the name of an argument of `plan`.
std::string argumentName(const artifact::Program &plan, size_t index);
/// Returns the name of an argument, result or alias, counted in this order.
std::string entryName(const artifact::Program &plan, int entry);
/// Returns the op that writes the value of that name, and where it stands; or
/// "the program", if the artifact does not say.
std::string writerOf(const artifact::Program &plan, const std::string &value);

} // namespace tandem::runtime

#endif
