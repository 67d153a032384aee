//===- RoundTrip.h - how far two processors are from each other -----------===//
#ifndef TANDEM_TOOLS_COMMANDS_ROUNDTRIP_H
#define TANDEM_TOOLS_COMMANDS_ROUNDTRIP_H

#include <optional>

namespace tandem::commands {

/// The seconds that a line of the caches takes from one thread to another and
/// back: some 50 ns where both processors share their last cache, 200 to 400
/// where they do not. A virtual machine may have both at different times. The
/// median of several tries; none where two threads did not run side by side.
std::optional<double> roundTrip();

} // namespace tandem::commands

#endif
