//===- Write.cpp - a graph as text ----------------------------------------===//
#include "runtime/graph/Write.h"
#include "runtime/graph/Hooks.h"

#include <map>

namespace tandem::graph {

namespace {

/// The nodes in the order in which a search from the roots meets them.
struct Listed {
  std::vector<const Node *> nodes;
  std::map<const Node *, size_t> ids;

  explicit Listed(std::span<const Edge> roots) {
    for (const Edge &root : roots)
      add(root);
    for (size_t i = 0; i < nodes.size(); ++i)
      for (const Edge &edge : nodes[i]->edges())
        add(edge);
  }
  void add(const Edge &edge) {
    if (edge && ids.try_emplace(edge.node.get(), nodes.size()).second)
      nodes.push_back(edge.node.get());
  }
};

size_t hooksOf(const Node &node) {
  return node.hooks() ? node.hooks()->count() : 0;
}

std::string inQuotes(const std::string &text) {
  std::string made = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      made += '\\';
    made += c == '\n' ? ' ' : c;
  }
  return made + "\"";
}

} // namespace

std::string asDot(std::span<const Edge> roots) {
  Listed listed(roots);
  std::string text = "digraph graph_of_tandem {\n  node [shape=box];\n";
  for (size_t i = 0; i < listed.nodes.size(); ++i) {
    const Node &node = *listed.nodes[i];
    std::string label = node.name() + "\\n" + std::to_string(node.thread()) +
                        ":" + std::to_string(node.number()) + ", topological " +
                        std::to_string(node.topologicalNumber());
    if (int64_t bytes = node.savedBytes())
      label += "\\n" + std::to_string(bytes) + " bytes saved";
    if (size_t hooks = hooksOf(node))
      label += "\\n" + std::to_string(hooks) + " hooks";
    std::string quoted;
    for (char c : label)
      quoted += c == '"' ? std::string("\\\"") : std::string(1, c);
    text += "  n" + std::to_string(i) + " [label=\"" + quoted + "\"" +
            (node.isLeaf() ? ", style=rounded" : "") + "];\n";
  }
  for (size_t i = 0; i < listed.nodes.size(); ++i) {
    const std::vector<Edge> &edges = listed.nodes[i]->edges();
    for (size_t e = 0; e < edges.size(); ++e)
      if (edges[e])
        text += "  n" + std::to_string(i) + " -> n" +
                std::to_string(listed.ids[edges[e].node.get()]) + " [label=\"" +
                std::to_string(e) + ":" + std::to_string(edges[e].input) +
                "\"];\n";
  }
  return text + "}\n";
}

std::string asJson(std::span<const Edge> roots) {
  Listed listed(roots);
  auto edgeText = [&](const Edge &edge) {
    return edge ? "{\"node\": " + std::to_string(listed.ids[edge.node.get()]) +
                      ", \"input\": " + std::to_string(edge.input) + "}"
                : std::string("null");
  };
  std::string text = "{\n  \"nodes\": [";
  for (size_t i = 0; i < listed.nodes.size(); ++i) {
    const Node &node = *listed.nodes[i];
    Traits traits = node.traits();
    auto flag = [](bool on) { return on ? "true" : "false"; };
    text += std::string(i ? "," : "") + "\n    {\"id\": " + std::to_string(i) +
            ", \"name\": " + inQuotes(node.name()) +
            ", \"thread\": " + std::to_string(node.thread()) +
            ", \"number\": " + std::to_string(node.number()) +
            ", \"topological\": " + std::to_string(node.topologicalNumber()) +
            ", \"leaf\": " + flag(node.isLeaf()) +
            ", \"traceable\": " + flag(traits.isTraceable) +
            ", \"state_transparent\": " + flag(traits.isStateTransparent) +
            ", \"saved_bytes\": " + std::to_string(node.savedBytes()) +
            ", \"hooks\": " + std::to_string(hooksOf(node)) + ", \"inputs\": [";
    for (size_t k = 0; k < node.inputs().size(); ++k) {
      const InputInfo &info = node.inputs()[k];
      text += (k ? ", " : "") +
              (info.isPlaceholder ? std::string("null")
                                  : inQuotes(describe(info.dtype, info.shape)));
    }
    text += "], \"edges\": [";
    for (size_t k = 0; k < node.edges().size(); ++k)
      text += (k ? ", " : "") + edgeText(node.edges()[k]);
    text += "]}";
  }
  text += "\n  ],\n  \"roots\": [";
  for (size_t i = 0; i < roots.size(); ++i)
    text += (i ? ", " : "") + edgeText(roots[i]);
  return text + "]\n}\n";
}

} // namespace tandem::graph
