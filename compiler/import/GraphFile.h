//===- GraphFile.h - a run-time graph that was written as JSON ------------===//
//
// What tdm_graph_write_json writes (docs/GRAPH.md has the fields): nodes whose
// edges lead from what was computed back to what it was computed of. Every
// error names its place by a JSON pointer; all of them are in one status.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_GRAPHFILE_H
#define TANDEM_COMPILER_IMPORT_GRAPHFILE_H

#include "runtime/artifact/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::link {

/// Leads to an input of a node; or nowhere.
struct GraphEdge {
  int node = -1;
  int input = 0;
  std::string name; ///< what the node that has the edge calls it; or ""

  explicit operator bool() const { return node >= 0; }
};

/// An input of a node: what its forward gave.
struct GraphInput {
  std::string type;
  std::vector<int64_t> shape;
  std::string name;
  bool isPlaceholder = false;
};

struct GraphNode {
  std::string name;
  std::string kind;     ///< program, gradient, op, function, leaf or node
  std::string model;    ///< of a program
  std::string graph;    ///< a digest of its model's graph, or ""
  int64_t instance = 0; ///< the same for calls of one loaded model
  std::optional<double> factor;
  int64_t number = 0; ///< of its thread's nodes, as they were made
  int64_t hooks = 0;
  std::vector<GraphInput> inputs;
  std::vector<GraphEdge> edges;

  bool isLeaf() const { return kind == "leaf"; }
};

struct GraphFile {
  std::vector<GraphNode> nodes; ///< the position of each is its id
  std::vector<GraphEdge> roots;
};

/// Reads what is in `text`; `path` is for messages.
Result<GraphFile> readGraphFile(std::string_view text, const std::string &path);

} // namespace tandem::link

#endif
