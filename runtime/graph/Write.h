//===- Write.h - a graph as text ------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_WRITE_H
#define TANDEM_RUNTIME_GRAPH_WRITE_H

#include "runtime/graph/Node.h"

namespace tandem::graph {

/// Returns the nodes that `roots` lead to, as a graph for Graphviz: numbers,
/// saved bytes and hooks.
std::string asDot(std::span<const Edge> roots);
/// The same as JSON, from which `tandem link` makes one program: docs/GRAPH.md
/// has the fields.
std::string asJson(std::span<const Edge> roots);

} // namespace tandem::graph

#endif
