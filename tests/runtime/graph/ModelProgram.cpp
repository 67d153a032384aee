//===- ModelProgram.cpp - what must come of a program ---------------------===//
//
// The rules of docs/GRAPH.md, word for word: search everything, and run the
// ready node that comes first. Nothing here is fast.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/graph/Programs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <set>

namespace tdm::testing {

namespace {

using Number = std::optional<float>;

std::string text(const Number &number) {
  return numberText(number ? &*number : nullptr);
}

Number sum(const Number &x, const Number &y) {
  return x && y ? Number(*x + *y) : x ? x : y;
}

/// A node: the gradient of edge i is its own times factors[i], or none.
struct ModelNode {
  std::vector<int> edges;
  std::vector<float> factors;
  int number = -1; ///< of a leaf: none before its first use
  bool isLeaf = false, isCut = false;
  int nested = -1; ///< the root of the backward that runs first
  std::vector<std::pair<std::string, float>> tensorHooks;
  std::vector<std::string> pre, post, accumulated;
  std::string retains; ///< the value whose gradient is kept
};

struct ModelValue {
  float value;
  int node;
};

class Simple {
public:
  Outcome outcome;

  void run(const Statement &line) {
    const std::string &kind = line[0];
    auto has = [&](size_t i) {
      return i < line.size() && values.count(line[i]);
    };
    if (kind == "backward" || kind == "grad")
      return end(line);
    if (kind == "leaf") {
      add(line[1], std::stof(line[2]), {}, {});
      nodes.back().isLeaf = true;
      nodes.back().number = -1;
    } else if (kind == "add" && has(2) && has(3)) {
      ModelValue a = values[line[2]], b = values[line[3]];
      add(line[1], a.value + b.value, {a.node, b.node}, {1, 1});
    } else if (kind == "mul" && has(2) && has(3)) {
      ModelValue a = values[line[2]], b = values[line[3]];
      add(line[1], a.value * b.value, {a.node, b.node}, {b.value, a.value});
    } else if (kind == "scale" && has(2)) {
      ModelValue a = values[line[2]];
      float factor = std::stof(line[3]);
      add(line[1], a.value * factor, {a.node}, {factor});
    } else if (kind == "cut" && has(2)) {
      ModelValue a = values[line[2]];
      add(line[1], a.value, {a.node}, {0});
      nodes.back().isCut = true;
    } else if (kind == "nest" && has(2) && has(3)) {
      ModelValue a = values[line[2]], b = values[line[3]];
      add(line[1], a.value, {a.node}, {1});
      nodes.back().nested = b.node;
    } else if (kind == "write" && has(1)) {
      write(line[1], std::stof(line[2]));
    } else if (kind == "retain" && has(1)) {
      if (ModelNode &node = nodeOf(line[1]); !node.isLeaf) {
        node.retains = line[1];
        gradients.try_emplace(line[1]);
      }
    } else if (has(2)) {
      ModelNode &node = nodeOf(line[2]);
      if (kind != "accumulated" || node.isLeaf)
        use(values[line[2]].node);
      if (kind == "hook")
        node.tensorHooks.emplace_back(line[1], std::stof(line[3]));
      if (kind == "pre")
        node.pre.push_back(line[1]);
      if (kind == "post")
        node.post.push_back(line[1]);
      if (kind == "accumulated" && node.isLeaf)
        node.accumulated.push_back(line[1]);
    }
  }

private:
  ModelNode &nodeOf(const std::string &name) {
    return nodes[size_t(values[name].node)];
  }

  void use(int node) {
    if (nodes[size_t(node)].number < 0)
      nodes[size_t(node)].number = numbers++;
  }

  void add(const std::string &name, float value, std::vector<int> edges,
           std::vector<float> factors) {
    for (int node : edges)
      use(node);
    ModelNode node;
    node.number = numbers++;
    node.edges = std::move(edges);
    node.factors = std::move(factors);
    nodes.push_back(std::move(node));
    values[name] = {value, int(nodes.size()) - 1};
    order.push_back(name);
  }

  /// The value gets a new node; what is retained moves there, hooks do not.
  void write(const std::string &name, float factor) {
    ModelValue before = values[name];
    ModelNode node;
    node.number = numbers++;
    node.edges = {before.node};
    node.factors = {factor};
    std::swap(node.retains, nodes[size_t(before.node)].retains);
    nodes.push_back(std::move(node));
    values[name] = {before.value * factor, int(nodes.size()) - 1};
  }

  bool leadsTo(int node, const std::set<int> &wanted) const {
    const std::vector<int> &edges = nodes[size_t(node)].edges;
    return std::ranges::any_of(edges, [&](int next) {
      return wanted.count(next) || leadsToCached(next, wanted);
    });
  }
  bool leadsToCached(int node, const std::set<int> &wanted) const {
    auto [it, isNew] = leads.try_emplace(node, false);
    if (isNew)
      it->second = leadsTo(node, wanted);
    return leads[node];
  }

  void end(const Statement &line) {
    std::vector<int> roots;
    std::vector<int> inputs;
    bool isInput = false;
    for (size_t i = 1; i < line.size(); ++i)
      if (line[i] == ":")
        isInput = true;
      else if (auto it = values.find(line[i]); it != values.end())
        (isInput ? inputs : roots).push_back(it->second.node);
    for (int node : roots)
      use(node);
    for (int node : inputs)
      use(node);
    bool isGrad = line[0] == "grad";
    if (!roots.empty() && (!isGrad || !inputs.empty()))
      walk(roots, {inputs.begin(), inputs.end()}, isGrad);
    outcome.push_back("log" + log);
    for (const std::string &name : order)
      if (nodeOf(name).isLeaf || gradients.count(name))
        outcome.push_back("gradient " + name + " " + text(gradients[name]));
    for (size_t i = 0; isGrad && !roots.empty() && i < inputs.size(); ++i)
      outcome.push_back("result " + std::to_string(i) + " " +
                        text(captured[inputs[i]]));
  }

  /// Leaves first, then the larger number. Leaves are equal: of two, the first
  /// that got ready, and of more, what the queue says.
  bool isBefore(int x, int y) const {
    const ModelNode &a = nodes[size_t(x)], &b = nodes[size_t(y)];
    if (a.isLeaf || b.isLeaf)
      return a.isLeaf && !b.isLeaf;
    return a.number > b.number;
  }

  void walk(const std::vector<int> &roots, const std::set<int> &wanted,
            bool isGrad) {
    std::set<int> reached;
    std::vector<int> work = roots;
    while (!work.empty()) {
      int node = work.back();
      work.pop_back();
      if (reached.insert(node).second)
        for (int next : nodes[size_t(node)].edges)
          work.push_back(next);
    }
    std::map<int, int> waits;
    for (int node : reached)
      for (int next : nodes[size_t(node)].edges)
        ++waits[next];
    std::map<int, Number> came;
    for (int root : roots)
      came[root] = sum(came[root], 1.0f);
    auto isWanted = [&](int node) {
      return !isGrad || wanted.count(node) || leadsToCached(node, wanted);
    };
    auto isAfter = [&](int x, int y) { return isBefore(y, x); };
    std::priority_queue<int, std::vector<int>, decltype(isAfter)> ready(
        isAfter);
    std::set<int> queued;
    auto queue = [&](int node) {
      if (waits[node] == 0 && isWanted(node) && queued.insert(node).second)
        ready.push(node);
    };
    for (int root : roots)
      queue(root);
    while (!ready.empty()) {
      int node = ready.top();
      ready.pop();
      std::vector<Number> gave = visit(
          node, came[node], !isGrad || leadsToCached(node, wanted), isGrad);
      const std::vector<int> &edges = nodes[size_t(node)].edges;
      for (size_t i = 0; i < edges.size(); ++i) {
        came[edges[i]] = sum(came[edges[i]], gave[i]);
        --waits[edges[i]];
        queue(edges[i]);
      }
    }
  }

  std::vector<Number> visit(int index, Number gradient, bool isRun,
                            bool isGrad) {
    ModelNode &node = nodes[size_t(index)];
    std::vector<Number> gave(node.edges.size());
    bool runs = isRun && !(isGrad && node.isLeaf);
    if (runs && isGrad) // else it is what hooks make of it
      captured[index] = gradient;
    for (auto &[id, factor] : node.tensorHooks) {
      log += " " + id + ":" + text(gradient);
      if (gradient)
        *gradient *= factor;
    }
    if (!node.retains.empty())
      gradients[node.retains] = sum(gradients[node.retains], gradient);
    if (!runs) {
      captured[index] = gradient;
      return gave;
    }
    for (const std::string &id : node.pre)
      log += " " + id + ":" + text(gradient);
    if (node.nested >= 0) {
      use(node.nested);
      walk({node.nested}, {}, false);
    }
    if (node.isLeaf) {
      std::string name;
      for (const std::string &one : order)
        if (values[one].node == index)
          name = one;
      gradients[name] = sum(gradients[name], gradient);
      for (const std::string &id : node.accumulated)
        log += " " + id + ":" + text(gradients[name]);
    }
    for (size_t i = 0; i < gave.size(); ++i)
      if (gradient && !node.isCut)
        gave[i] = *gradient * node.factors[i];
    for (const std::string &id : node.post)
      log += " " + id + ":" + text(gradient);
    return gave;
  }

  std::vector<ModelNode> nodes;
  int numbers = 0;
  std::map<std::string, ModelValue> values;
  std::vector<std::string> order;
  std::map<std::string, Number> gradients;
  std::map<int, Number> captured;
  mutable std::map<int, bool> leads;
  std::string log;
};

} // namespace

Outcome model(const Program &program) {
  Simple simple;
  for (const Statement &line : program)
    simple.run(line);
  return simple.outcome;
}

} // namespace tdm::testing
