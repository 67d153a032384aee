//===- Graphs.h - graphs of commands --------------------------------------===//
//
// A graph holds commands and the edges between them, made node by node or by a
// capture. An executable graph is its flat form: child graphs are expanded, and
// steps stand in an order that the edges allow. Each step is ordered after
// those it depends on and nothing else; one launch of an executable graph comes
// after its last one.
//
// Steps share a lane where each depends on the one before (Clock.h): lanes are
// made once, when the graph is instantiated.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_GRAPHS_H
#define TANDEM_CUDA_EMULATOR_GRAPHS_H

#include "cuda/emulator/Operation.h"

#include <span>

namespace tandem::emulator {

class Machine;
struct Graph;
struct Stream;

/// What a CUgraphNode points to.
struct Node {
  Graph *graph = nullptr;
  size_t index = 0; ///< in the graph
  driver::CUgraphNodeType type = driver::CU_GRAPH_NODE_TYPE_EMPTY;
  Command command;
  std::vector<Node *> dependencies;
  std::unique_ptr<Graph> child; ///< of a child graph node
};

/// What a CUgraph points to.
struct Graph {
  explicit Graph(Machine &machine) : machine(machine) {}
  ~Graph();
  Graph(const Graph &) = delete;
  Graph &operator=(const Graph &) = delete;

  /// Adds a node; its type follows from the command's kind.
  Node &add(Machine &machine, Command command,
            std::vector<Node *> dependencies);
  std::unique_ptr<Graph> clone() const;
  /// Returns the nodes in an order that the edges allow; less than all if they
  /// go round.
  std::vector<const Node *> sorted() const;

  Machine &machine;
  std::vector<std::unique_ptr<Node>> nodes;
};

/// What a CUgraphExec points to.
struct GraphExec {
  struct Step {
    const Node *node = nullptr; ///< whose command it is; may be gone
    driver::CUgraphNodeType type = driver::CU_GRAPH_NODE_TYPE_EMPTY;
    Command command;
    std::vector<size_t> waitsFor; ///< earlier steps
    Lane lane = 0;
    bool isLast = true; ///< no step waits for it
  };
  std::vector<Step> steps;
  OperationPtr lastLaunch;
  OperationPtr upload; ///< null: the first launch does it

  /// Returns the step of a node of the graph it was made of, or null.
  Step *find(const Node *node);
};

/// Sets `steps` to the flat form of a graph, without lanes; false if its edges
/// go round.
bool flatten(const Graph &graph, std::vector<GraphExec::Step> &steps);
/// Gives each step a lane of new ones.
void assignLanes(Machine &machine, std::vector<GraphExec::Step> &steps);
/// Queues a launch.
driver::CUresult launchGraph(Machine &machine, GraphExec &exec, Stream &stream);

} // namespace tandem::emulator

#endif
