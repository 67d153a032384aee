//===- GraphFile.cpp - a run-time graph that was written as JSON ----------===//
#include "compiler/import/GraphFile.h"
#include "compiler/import/JsonReader.h"

#include <set>

using namespace tandem;
using namespace tandem::link;

namespace {

class Reader {
public:
  explicit Reader(const Json &json) : root(json, "", problems) {}

  GraphFile read() {
    if (!root.isObject({"format", "version", "nodes", "roots"}))
      return {};
    if (!root.has("format") || root.json["format"] != kFormat)
      root.wrong(std::string("expected 'format' to be '") + kFormat + "'");
    if (!root.has("version") || root.json["version"] != 1)
      root.wrong("expected 'version' to be 1");
    std::vector<JsonPlace> nodes = root.list("nodes");
    for (size_t i = 0; i < nodes.size(); ++i)
      readNode(nodes[i], i);
    for (const JsonPlace &place : root.list("roots"))
      file.roots.push_back(edge(place));
    if (file.roots.empty())
      root.wrong("expected at least one root");
    for (const auto &[edge, place] : edges)
      checkEdge(edge, place);
    if (problems.empty())
      checkOrder();
    return std::move(file);
  }

  Problems problems;

private:
  static constexpr const char *kFormat = "tandem-run-time-graph";

  int64_t integer(const JsonPlace &place, const char *key, int64_t least,
                  int64_t most) {
    if (!place.has(key))
      return least;
    std::optional<int64_t> value = place.at(key).integer();
    if (!value || (*value >= least && *value <= most))
      return value.value_or(least);
    place.at(key).wrong("expected an integer from " + std::to_string(least) +
                        " to " + std::to_string(most) + ", but got " +
                        std::to_string(*value));
    return least;
  }

  /// The member `key`, which may be missing or empty.
  std::string optionalText(const JsonPlace &place, const char *key) {
    return place.has(key) && place.json.at(key) != "" ? place.text(key) : "";
  }

  GraphEdge edge(const JsonPlace &place) {
    GraphEdge made;
    if (place.json.is_null() || !place.isObject({"node", "input", "name"}))
      return made;
    if (!place.has("node"))
      place.wrong("expected a field 'node'");
    made.node = static_cast<int>(integer(place, "node", 0, kMost));
    made.input = static_cast<int>(integer(place, "input", 0, kMost));
    made.name = optionalText(place, "name");
    edges.emplace_back(made, place);
    return made;
  }

  GraphInput input(const JsonPlace &place) {
    GraphInput made;
    made.isPlaceholder = place.json.is_null();
    if (made.isPlaceholder || !place.isObject({"type", "shape", "name"}))
      return made;
    made.type = place.text("type");
    made.shape = place.shape("shape");
    made.name = optionalText(place, "name");
    return made;
  }

  void readNode(const JsonPlace &place, size_t id) {
    GraphNode &node = file.nodes.emplace_back();
    if (!place.isObject({"id", "name", "kind", "model", "graph", "instance",
                         "factor", "thread", "number", "topological", "leaf",
                         "traceable", "state_transparent", "saved_bytes",
                         "hooks", "inputs", "edges"}))
      return;
    if (integer(place, "id", 0, kMost) != static_cast<int64_t>(id))
      place.wrong("expected 'id' to be the node's position, " +
                  std::to_string(id));
    node.name = place.text("name");
    node.kind = place.text("kind");
    static const std::set<std::string> kinds = {"program",  "gradient", "op",
                                                "function", "leaf",     "node"};
    if (!node.kind.empty() && !kinds.count(node.kind))
      place.at("kind").wrong("expected program, gradient, op, function, leaf "
                             "or node, but got '" +
                             node.kind + "'");
    if (node.kind == "program")
      node.model = place.text("model");
    node.graph = optionalText(place, "graph");
    node.instance = integer(place, "instance", 0, kMost);
    if (place.has("factor") && !place.json.at("factor").is_null())
      node.factor = place.number("factor");
    node.number = integer(place, "number", 0, INT64_MAX);
    node.hooks = integer(place, "hooks", 0, kMost);
    for (const JsonPlace &one : place.list("inputs"))
      node.inputs.push_back(input(one));
    for (const JsonPlace &one : place.list("edges"))
      node.edges.push_back(edge(one));
  }

  void checkEdge(const GraphEdge &edge, const JsonPlace &place) {
    if (static_cast<size_t>(edge.node) >= file.nodes.size())
      place.wrong("expected a node below " + std::to_string(file.nodes.size()) +
                  ", but got " + std::to_string(edge.node));
    else if (size_t count = file.nodes[size_t(edge.node)].inputs.size();
             static_cast<size_t>(edge.input) >= count)
      place.wrong("expected an input below " + std::to_string(count) +
                  ", but got " + std::to_string(edge.input));
  }

  /// No node is computed of itself.
  void checkOrder() {
    std::vector<int> waits(file.nodes.size(), 0), ready;
    for (const GraphNode &node : file.nodes)
      for (const GraphEdge &edge : node.edges)
        if (edge)
          ++waits[size_t(edge.node)];
    for (size_t i = 0; i < waits.size(); ++i)
      if (waits[i] == 0)
        ready.push_back(static_cast<int>(i));
    size_t seen = 0;
    for (; !ready.empty(); ++seen) {
      const GraphNode &node = file.nodes[size_t(ready.back())];
      ready.pop_back();
      for (const GraphEdge &edge : node.edges)
        if (edge && --waits[size_t(edge.node)] == 0)
          ready.push_back(edge.node);
    }
    if (seen < file.nodes.size())
      root.wrong("expected no cycle of edges");
  }

  static constexpr int64_t kMost = INT32_MAX;

  JsonPlace root;
  GraphFile file;
  std::vector<std::pair<GraphEdge, JsonPlace>> edges;
};

} // namespace

Result<GraphFile> tandem::link::readGraphFile(std::string_view text,
                                              const std::string &path) {
  Result<Json> json = parseJson(text);
  if (!json)
    return Status(json.status().code(), path + ":" + json.status().message());
  Reader reader(*json);
  GraphFile file = reader.read();
  if (reader.problems.empty())
    return file;
  std::string message;
  for (const std::string &problem : reader.problems)
    message += (message.empty() ? "" : "\n") + path + ": " + problem;
  return Status::failed(message);
}
