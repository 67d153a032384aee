//===- Choose.cpp - which nodes of a run-time graph are taken in ----------===//
#include "compiler/link/Choose.h"
#include "compiler/capture/DemoteRefs.h"
#include "compiler/capture/GraphDigest.h"
#include "ir/Signature.h"
#include "ir/Tags.h"

#include "mlir/IR/Builders.h"

#include <set>

using namespace mlir;
using namespace tandem;
using namespace tandem::link;

std::string tandem::link::describe(const GraphFile &graph, int node) {
  return "'" + graph.nodes[static_cast<size_t>(node)].name + "' (node " +
         std::to_string(node) + ")";
}

func::FuncOp tandem::link::graphOf(const Piece &piece) {
  return piece.module.get().lookupSymbol<func::FuncOp>("graph");
}

bool tandem::link::hasDigest(ModuleOp module, const std::string &digest) {
  // The loss is part of it.
  OwningOpRef<ModuleOp> copy = module.clone();
  if (graphDigest(*copy) == digest)
    return true;
  auto graph = copy->lookupSymbol<func::FuncOp>("graph");
  if (!graph)
    return false;
  Builder builder(copy->getContext());
  for (unsigned i = 0; i < graph.getNumResults(); ++i)
    if (RoleAttr role = roleOfResult(graph, i)) {
      copy.get()->setAttr(kLossAttr, role.getName());
      if (graphDigest(*copy) == digest)
        return true;
    }
  copy.get()->removeAttr(kLossAttr);
  return graphDigest(*copy) == digest;
}

namespace {

/// Inputs of a piece that its graph changes.
std::set<std::string> changedInputs(const Piece &piece) {
  std::set<std::string> names;
  func::FuncOp graph = graphOf(piece);
  graph.walk([&](Operation *op) {
    for (Value ref : changedRefs(op))
      if (auto argument = dyn_cast<BlockArgument>(storageOf(ref)))
        if (argument.getOwner() == &graph.getBody().front())
          if (RoleAttr role = roleOfArgument(graph, argument.getArgNumber()))
            if (role.getKind() == RoleKind::Input)
              names.insert(role.getName().str());
  });
  return names;
}

class Chooser {
public:
  Chooser(const GraphFile &graph, ArrayRef<Piece> pieces)
      : graph(graph), pieces(pieces), why(graph.nodes.size()) {
    choice.pieces.resize(graph.nodes.size());
    choice.isIn.resize(graph.nodes.size());
  }

  Result<Choice> run() {
    if (Status status = checkPieces(); !status)
      return status;
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      why[i] = reasonAgainst(static_cast<int>(i));
    takeInMost();
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      if (!graph.nodes[i].isLeaf() && !why[i].empty())
        choice.left.push_back({describe(graph, static_cast<int>(i)), why[i]});
    order();
    return std::move(choice);
  }

private:
  const GraphNode &node(int i) const {
    return graph.nodes[static_cast<size_t>(i)];
  }

  /// Each piece is a model at `capture` that a node calls.
  Status checkPieces() {
    for (const Piece &piece : pieces) {
      if (piece.module && !graphOf(piece))
        return Status::usage("'" + piece.path +
                             "': expected a model at 'capture'");
      bool isCalled = llvm::any_of(graph.nodes, [&](const GraphNode &one) {
        return one.kind == "program" && one.model == piece.model;
      });
      if (!isCalled)
        return Status::usage("'" + piece.path +
                             "': the graph calls no model '" + piece.model +
                             "'");
      for (const Piece &other : pieces.take_front(&piece - pieces.data()))
        if (other.model == piece.model)
          return Status::usage("'" + other.path + "' and '" + piece.path +
                               "' are both called '" + piece.model + "'");
    }
    return Status::success();
  }

  /// Why the node cannot be taken in; "" if it can.
  std::string reasonAgainst(int i) {
    const GraphNode &one = node(i);
    if (one.isLeaf())
      return "it is a leaf";
    if (one.kind == "function")
      return "it is a function of the program, which no file has";
    if (one.kind == "gradient")
      return "it is the gradient of a program";
    if (one.kind == "node")
      return "it is a node of the program, which no file has";
    if (one.hooks)
      return "it has " + std::to_string(one.hooks) +
             " hooks, which would not be called";
    return one.kind == "op" ? reasonAgainstOp(one) : reasonAgainstProgram(i);
  }

  static std::string reasonAgainstOp(const GraphNode &one) {
    static const std::set<std::string> known = {
        "add", "mul", "scale", "sum", "expand", "reshape", "cast"};
    if (!known.count(one.name))
      return "no op of the dialect is '" + one.name + "'";
    bool isBinary = one.name == "add" || one.name == "mul";
    if (one.inputs.size() != 1 || one.inputs[0].isPlaceholder ||
        one.edges.size() != (isBinary ? 2u : 1u))
      return "its inputs and edges are not those of the op";
    if (one.name == "scale" && !one.factor)
      return "its factor is not a finite number";
    return "";
  }

  std::string reasonAgainstProgram(int i) {
    const GraphNode &one = node(i);
    const Piece *piece = llvm::find_if(
        pieces, [&](const Piece &other) { return other.model == one.model; });
    if (piece == pieces.end())
      return "no model '" + one.model + "' is given";
    if (!piece->module)
      return piece->why;
    if (!one.graph.empty() && !hasDigest(*piece->module, one.graph))
      return "'" + piece->path + "' is another model than the one that ran";
    func::FuncOp function = graphOf(*piece);
    std::set<std::string> changed = changedInputs(*piece), named;
    for (const GraphEdge &edge : one.edges) {
      if (!edge)
        continue;
      if (!named.insert(edge.name).second)
        return "two of its edges are called '" + edge.name + "'";
      if (!findValue(function, edge.name))
        return "'" + piece->path + "' has no input or param '" + edge.name +
               "'";
      bool isInput =
          findArgument(function, RoleKind::Input, edge.name).has_value();
      if (isInput && changed.count(edge.name) && !node(edge.node).isLeaf())
        return "it writes its input '" + edge.name + "', which " +
               describe(graph, edge.node) + " makes";
    }
    for (const GraphNode &user : graph.nodes)
      for (const GraphEdge &edge : user.edges)
        if (edge.node == i)
          if (const std::string &name = one.inputs[size_t(edge.input)].name;
              !findResult(function, RoleKind::Output, name))
            return "'" + user.name + "' uses its '" + name +
                   "', which is no output";
    for (unsigned a = 0; a < function.getNumArguments(); ++a)
      if (RoleAttr role = roleOfArgument(function, a);
          role && role.has(RoleAttr::kAlias))
        return "its '" + role.getName().str() +
               "' is declared to share the storage of another value";
    choice.pieces[static_cast<size_t>(i)] = piece;
    return "";
  }

  /// The nodes that are computed of one that stays, or those that one is
  /// computed of.
  std::vector<int> tainted(bool isByUse) const {
    std::vector<int> by(graph.nodes.size(), -1); // the node that stays
    bool changes = true;
    auto taint = [&](int to, int from) {
      bool isStaying = !node(from).isLeaf() && !why[size_t(from)].empty();
      int cause = isStaying ? from : by[size_t(from)];
      if (node(to).isLeaf() || cause < 0 || by[size_t(to)] >= 0)
        return;
      by[size_t(to)] = cause;
      changes = true;
    };
    while (changes) {
      changes = false;
      for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i)
        for (const GraphEdge &edge : node(i).edges)
          if (edge)
            isByUse ? taint(edge.node, i) : taint(i, edge.node);
    }
    return by;
  }

  int weightOf(const std::vector<int> &by) const {
    int weight = 0;
    for (size_t i = 0; i < by.size(); ++i)
      if (why[i].empty() && by[i] < 0)
        weight += graph.nodes[i].kind == "program" ? 1000 : 1;
    return weight;
  }

  void takeInMost() {
    std::vector<int> feeding = tainted(true), fed = tainted(false);
    bool takesAbove = weightOf(feeding) >= weightOf(fed);
    const std::vector<int> &by = takesAbove ? feeding : fed;
    for (size_t i = 0; i < by.size(); ++i) {
      if (why[i].empty() && by[i] >= 0)
        why[i] = takesAbove
                     ? describe(graph, by[i]) + ", which stays, is computed "
                                                "of it"
                     : "it is computed of " + describe(graph, by[i]) +
                           ", which stays";
      choice.isIn[i] = why[i].empty();
    }
  }

  /// Of the nodes whose operands are there, the one that was made first.
  void order() {
    std::vector<int> waits(graph.nodes.size(), 0);
    std::vector<std::vector<int>> users(graph.nodes.size());
    std::set<std::pair<int64_t, int>> ready;
    for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
      if (!choice.isTaken(i))
        continue;
      for (const GraphEdge &edge : node(i).edges)
        if (edge && choice.isTaken(edge.node)) {
          ++waits[size_t(i)];
          users[size_t(edge.node)].push_back(i);
        }
      if (waits[size_t(i)] == 0)
        ready.insert({node(i).number, i});
    }
    while (!ready.empty()) {
      int next = ready.begin()->second;
      ready.erase(ready.begin());
      choice.taken.push_back(next);
      for (int user : users[size_t(next)])
        if (--waits[size_t(user)] == 0)
          ready.insert({node(user).number, user});
    }
  }

  const GraphFile &graph;
  ArrayRef<Piece> pieces;
  std::vector<std::string> why; ///< a node stays; "": it does not
  Choice choice;
};

} // namespace

Result<Choice> tandem::link::choose(const GraphFile &graph,
                                    ArrayRef<Piece> pieces) {
  return Chooser(graph, pieces).run();
}
