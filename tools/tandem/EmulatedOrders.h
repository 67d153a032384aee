//===- EmulatedOrders.h - in which order the emulated GPU works -----------===//
//
// What a program computes is the same in whatever order blocks, warps and
// threads take their turns, and streams their work, as far as nothing orders
// them.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_TANDEM_EMULATEDORDERS_H
#define TANDEM_TOOLS_TANDEM_EMULATEDORDERS_H

#include "runtime/artifact/Status.h"

namespace tandem {

/// Ascending; descending, with other streams first; random
/// (cuda/emulator/Control.h).
inline constexpr const char *kEmulatedOrders[] = {"eager", "others-first",
                                                  "random:7"};

/// Forgets what the device cuda-emu found until now. No model may be loaded.
Status resetEmulator();

/// Sets the order of the device cuda-emu. NoDevice where its library is not
/// there.
Status setEmulatedOrder(const char *order);

} // namespace tandem

#endif
