//===- NearestName.h - which name was meant -------------------------------===//
//
// For messages about a name that nobody knows: of an option, a command, an op,
// an attribute.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_NEARESTNAME_H
#define TANDEM_RUNTIME_ARTIFACT_NEARESTNAME_H

#include <span>
#include <string>
#include <string_view>

namespace tandem {

/// Returns the one of `known` that takes the fewest letters put in, left out,
/// replaced or swapped with their neighbour to become `name`, the first of
/// several; letters' case is looked at last. Empty if none is near: one letter
/// in three, and at least one, may differ.
std::string_view nearestName(std::string_view name,
                             std::span<const std::string_view> known);

/// Returns " (did you mean 'NAME'?)" with the nearest name, or nothing.
std::string didYouMean(std::string_view name,
                       std::span<const std::string_view> known);

} // namespace tandem

#endif
