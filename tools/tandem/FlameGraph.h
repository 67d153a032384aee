//===- FlameGraph.h - where in a model the time goes, as a picture --------===//
#ifndef TANDEM_TOOLS_TANDEM_FLAMEGRAPH_H
#define TANDEM_TOOLS_TANDEM_FLAMEGRAPH_H

#include <nlohmann/json.hpp>
#include <string>

namespace tandem::commands {

/// Returns a flame graph (SVG) of a profile's facts (ProfileFacts.h) that has
/// places: the program, below it what is of a gradient and what is not, then
/// modules by their paths (or, where there is none, lines), and at the bottom
/// kernels. A box is as wide as its time; pointing at it shows the number.
std::string flameGraph(const nlohmann::ordered_json &facts);

} // namespace tandem::commands

#endif
