//===- Write.cpp - a graph as text ----------------------------------------===//
#include "runtime/graph/Write.h"
#include "runtime/graph/Hooks.h"

#include <array>
#include <charconv>
#include <cmath>
#include <map>

namespace tandem::graph {

namespace {

/// As a string of JSON.
std::string inQuotes(const std::string &text) {
  std::string made = "\"";
  for (char c : text) {
    bool isControl = static_cast<unsigned char>(c) < ' ';
    if (c == '"' || c == '\\')
      made += '\\';
    made += isControl ? ' ' : c;
  }
  return made + "\"";
}

/// The nodes in the order in which a search from the roots meets them.
struct Listed {
  std::vector<const Node *> nodes;
  std::map<const Node *, size_t> ids;
  std::map<const void *, size_t> instances; ///< of models

  explicit Listed(std::span<const Edge> roots) {
    for (const Edge &root : roots)
      add(root);
    for (size_t i = 0; i < nodes.size(); ++i)
      for (const Edge &edge : nodes[i]->edges())
        add(edge);
  }
  void add(const Edge &edge) {
    if (!edge || !ids.try_emplace(edge.node.get(), nodes.size()).second)
      return;
    nodes.push_back(edge.node.get());
    if (const void *instance = edge.node->described().instance)
      instances.try_emplace(instance, instances.size());
  }
  /// An edge as JSON.
  std::string textOf(const Edge &edge, const std::string &name = "") const {
    if (!edge)
      return "null";
    return "{\"node\": " + std::to_string(ids.at(edge.node.get())) +
           ", \"input\": " + std::to_string(edge.input) +
           (name.empty() ? "" : ", \"name\": " + inQuotes(name)) + "}";
  }
};

size_t hooksOf(const Node &node) {
  return node.hooks() ? node.hooks()->count() : 0;
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

namespace {

/// A node as an object of JSON.
class NodeText {
public:
  NodeText(const Listed &listed, const Node &node)
      : listed(listed), node(node), described(node.described()) {}

  std::string text() {
    Traits traits = node.traits();
    add("id", std::to_string(listed.ids.at(&node)));
    add("name", inQuotes(node.name()));
    add("kind", inQuotes(described.kind));
    if (described.instance) {
      add("model", inQuotes(described.model));
      add("graph", inQuotes(described.graph));
      add("instance", std::to_string(listed.instances.at(described.instance)));
    }
    if (described.factor)
      add("factor", numberText(*described.factor));
    add("thread", std::to_string(node.thread()));
    add("number", std::to_string(node.number()));
    add("topological", std::to_string(node.topologicalNumber()));
    add("leaf", flag(node.isLeaf()));
    add("traceable", flag(traits.isTraceable));
    add("state_transparent", flag(traits.isStateTransparent));
    add("saved_bytes", std::to_string(node.savedBytes()));
    add("hooks", std::to_string(hooksOf(node)));
    add("inputs", list(node.inputs().size(), [&](size_t i) {
          return inputText(node.inputs()[i], nameIn(described.inputs, i));
        }));
    add("edges", list(node.edges().size(), [&](size_t i) {
          return listed.textOf(node.edges()[i], nameIn(described.edges, i));
        }));
    return made + "}";
  }

private:
  void add(const char *key, const std::string &value) {
    made += made.empty() ? "{" : ", ";
    made += inQuotes(key) + ": " + value;
  }
  static std::string flag(bool on) { return on ? "true" : "false"; }
  /// JSON has no infinity and no NaN.
  static std::string numberText(double number) {
    if (!std::isfinite(number))
      return "null";
    std::array<char, 32> digits;
    char *end = std::to_chars(digits.begin(), digits.end(), number).ptr;
    return {digits.begin(), end};
  }
  static std::string nameIn(const std::vector<std::string> &names, size_t i) {
    return i < names.size() ? names[i] : "";
  }
  template <typename Fn> static std::string list(size_t count, Fn fn) {
    std::string text = "[";
    for (size_t i = 0; i < count; ++i)
      text += (i ? ", " : "") + fn(i);
    return text + "]";
  }
  static std::string inputText(const InputInfo &info, const std::string &name) {
    if (info.isPlaceholder)
      return "null";
    std::string text =
        "{\"type\": " + inQuotes(std::string(artifact::spelling(info.dtype))) +
        ", \"shape\": " + list(info.shape.size(), [&](size_t i) {
          return std::to_string(info.shape[i]);
        });
    return text + (name.empty() ? "" : ", \"name\": " + inQuotes(name)) + "}";
  }

  const Listed &listed;
  const Node &node;
  Described described;
  std::string made;
};

} // namespace

std::string asJson(std::span<const Edge> roots) {
  Listed listed(roots);
  std::string text = "{\n  \"format\": \"tandem-run-time-graph\",\n"
                     "  \"version\": 1,\n  \"nodes\": [";
  for (size_t i = 0; i < listed.nodes.size(); ++i)
    text +=
        (i ? ",\n    " : "\n    ") + NodeText(listed, *listed.nodes[i]).text();
  text += "\n  ],\n  \"roots\": [";
  for (size_t i = 0; i < roots.size(); ++i)
    text += (i ? ", " : "") + listed.textOf(roots[i]);
  return text + "]\n}\n";
}

} // namespace tandem::graph
