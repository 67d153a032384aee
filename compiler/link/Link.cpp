//===- Link.cpp - one model of those that a run-time graph composes -------===//
//
// As in the tracer and the importers everything is recorded as refs; those that
// nobody writes become values at the end.
//
//===----------------------------------------------------------------------===//
#include "compiler/link/Link.h"
#include "compiler/capture/DemoteRefs.h"
#include "compiler/capture/GraphDigest.h"
#include "compiler/link/Choose.h"
#include "compiler/link/GraphOps.h"
#include "ir/BuildOp.h"
#include "ir/Expr.h"
#include "ir/Ops.h"
#include "ir/Report.h"
#include "ir/Signature.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"

#include <map>
#include <set>

using namespace mlir;
using namespace tandem;
using namespace tandem::link;

namespace {

/// What an argument of the linked graph stands for: a leaf, or a param or state
/// of a loaded model, or an operand that comes from nowhere.
struct Source {
  int leaf = -1;
  int64_t instance = -1;
  int node = -1;
  std::string name; ///< of a param, state or operand

  auto key() const { return std::tie(leaf, instance, node, name); }
  bool operator<(const Source &other) const { return key() < other.key(); }
};

class Linker {
public:
  Linker(const GraphFile &graph, const Choice &choice, MLIRContext &context)
      : graph(graph), choice(choice), builder(&context) {}

  FailureOr<OwningOpRef<ModuleOp>> run() {
    module = ModuleOp::create(builder.getUnknownLoc(), moduleName());
    module.get()->setAttr(kPhaseAttr, builder.getStringAttr("capture"));
    builder.setInsertionPointToEnd(module->getBody());
    auto loc = NameLoc::get(builder.getStringAttr("graph"));
    func = createGraphFunction(builder, loc, "graph", {}, {});
    builder.setInsertionPointToEnd(&func.getBody().front());
    nameInstances();
    noteParams();
    for (int i : choice.taken)
      if (failed(node(i).kind == "op" ? addOp(i) : addProgram(i)))
        return failure();
    nameInputs();
    addOutputs();
    if (failed(verify(*module)))
      return failure();
    // As of every module that the compiler wrote.
    module.get()->setAttr(kGraphDigestAttr,
                          builder.getStringAttr(graphDigest(*module)));
    return std::move(module);
  }

  /// What the calls of programs are called: those of one loaded model alike.
  std::vector<std::string> calls() const {
    std::vector<std::string> labels;
    for (int i : choice.taken)
      if (choice.pieces[size_t(i)])
        labels.push_back(labelOf(i));
    return labels;
  }

  /// What `run` gave the program.
  std::vector<LinkedInput> inputs() {
    std::vector<LinkedInput> made;
    for (unsigned i = 0; i < func.getNumArguments(); ++i)
      for (const auto &[source, index] : arguments)
        if (index == i && isInput[i])
          made.push_back(describeInput(source, i));
    return made;
  }

private:
  const GraphNode &node(int i) const {
    return graph.nodes[static_cast<size_t>(i)];
  }

  //===--------------------------------------------------------------------===//
  // Names
  //===--------------------------------------------------------------------===//

  std::string moduleName() const {
    std::string name;
    std::set<std::string> seen;
    for (int i : choice.taken)
      if (choice.pieces[size_t(i)] && seen.insert(node(i).model).second)
        name += (name.empty() ? "" : "+") + node(i).model;
    return name.empty() ? "linked" : name;
  }

  /// A second loaded model of one name gets a number.
  void nameInstances() {
    std::map<std::string, int> counts;
    for (int i : choice.taken)
      if (choice.pieces[size_t(i)] && !instances.count(node(i).instance)) {
        int count = ++counts[node(i).model];
        instances[node(i).instance] =
            node(i).model + (count > 1 ? std::to_string(count) : "");
      }
  }

  std::string labelOf(int i) const {
    auto found = instances.find(node(i).instance);
    return node(i).kind == "program" ? found->second : node(i).name;
  }

  static std::string unique(std::set<std::string> &taken,
                            const std::string &name) {
    std::string made = name;
    for (int count = 2; !taken.insert(made).second; ++count)
      made = name + "." + std::to_string(count);
    return made;
  }

  /// Inputs and outputs get the names that they have in their pieces where no
  /// other one is called so.
  void nameInputs() {
    std::map<std::string, int> counts;
    std::set<std::string> taken;
    for (auto [i, name] : llvm::enumerate(argumentNames))
      if (isInput[i])
        ++counts[name.second];
      else
        taken.insert(name.first + "." + name.second);
    for (auto [i, name] : llvm::enumerate(argumentNames)) {
      RoleAttr role = roleOfArgument(func, static_cast<unsigned>(i));
      std::string full = name.first + "." + name.second;
      if (isInput[i])
        full = unique(taken, counts[name.second] == 1 ? name.second : full);
      setRoleOfArgument(func, static_cast<unsigned>(i),
                        RoleAttr::get(builder.getContext(), role.getKind(),
                                      builder.getStringAttr(full),
                                      role.getProperties()));
    }
  }

  //===--------------------------------------------------------------------===//
  // Arguments
  //===--------------------------------------------------------------------===//

  /// Which leaves are params, and which params of a loaded model are trained.
  void noteParams() {
    for (int i : choice.taken) {
      if (!choice.pieces[size_t(i)])
        continue;
      func::FuncOp piece = graphOf(*choice.pieces[size_t(i)]);
      for (const GraphEdge &edge : node(i).edges) {
        if (!edge || !findArgument(piece, RoleKind::Param, edge.name))
          continue;
        Source source = paramOf(i, edge.name);
        trained.insert(source);
        if (node(edge.node).isLeaf())
          paramsOfLeaves.insert({edge.node, source});
      }
    }
  }

  Source paramOf(int i, StringRef name) const {
    return {-1, node(i).instance, -1, name.str()};
  }

  /// What an edge of a taken node leads to outside of what is taken.
  Source sourceOf(int i, const GraphEdge &edge, StringRef name) const {
    if (!edge)
      return {-1, -1, i, name.str()};
    if (auto param = paramsOfLeaves.find(edge.node);
        param != paramsOfLeaves.end())
      return param->second;
    if (node(edge.node).isLeaf())
      return {edge.node, -1, -1, ""};
    // What a node that stays gives is one value for all that use it.
    return {edge.node, -1, edge.input, ""};
  }

  /// What the piece says of a param that an op or another piece uses, too.
  RoleAttr roleOf(const Source &source, RoleAttr otherwise) const {
    for (int i : choice.taken)
      if (source.instance >= 0 && choice.pieces[size_t(i)] &&
          node(i).instance == source.instance) {
        func::FuncOp piece = graphOf(*choice.pieces[size_t(i)]);
        return roleOfArgument(
            piece, *findArgument(piece, RoleKind::Param, source.name));
      }
    return otherwise;
  }

  /// The argument for a source: a ref. `role` is what the first user says.
  FailureOr<Value> argumentOf(const Source &source, RoleAttr role,
                              RankedTensorType type, const std::string &label,
                              Location loc) {
    auto found = arguments.find(source);
    if (found != arguments.end()) {
      Value argument = func.getArgument(found->second);
      if (argument.getType() == RefType::of(type))
        return argument;
      return emitError(loc) << "expected " << type << " but "
                            << cast<RefType>(argument.getType()).getTensorType()
                            << " is given";
    }
    std::string owner = label;
    if (role.getKind() == RoleKind::Input && source.instance >= 0) {
      role = roleOf(source, role);
      owner = instances.at(source.instance);
    }
    unsigned index = func.getNumArguments();
    auto attributes =
        builder.getDictionaryAttr(builder.getNamedAttr(kRoleAttr, role));
    if (failed(func.insertArgument(index, RefType::of(type), attributes, loc)))
      return failure();
    arguments[source] = index;
    argumentNames.push_back({owner, role.getName().str()});
    isInput.push_back(role.getKind() == RoleKind::Input);
    return Value(func.getArgument(index));
  }

  LinkedInput describeInput(const Source &source, unsigned index) {
    LinkedInput made;
    made.name = roleOfArgument(func, index).getName().str();
    if (source.leaf < 0) {
      made.from = "'" + source.name + "' of " + describe(graph, source.node);
      return made;
    }
    bool isLeaf = node(source.leaf).isLeaf();
    made.from = isLeaf ? "the leaf of node " + std::to_string(source.leaf)
                       : "what " + describe(graph, source.leaf) + " gives";
    if (isLeaf)
      made.leaf = node(source.leaf).number;
    return made;
  }

  RoleAttr inputRole(StringRef name, bool requiresGrad) {
    auto role = RoleAttr::get(builder.getContext(), RoleKind::Input, name);
    return requiresGrad ? role.withUnit(RoleAttr::kRequiresGrad) : role;
  }

  //===--------------------------------------------------------------------===//
  // Values
  //===--------------------------------------------------------------------===//

  static RankedTensorType tensorType(Type type) {
    if (auto ref = dyn_cast<RefType>(type))
      return ref.getTensorType();
    return cast<RankedTensorType>(type);
  }
  Value asTensor(Location loc, Value value) {
    return isa<RefType>(value.getType())
               ? ReadOp::create(builder, loc, value).getValue()
               : value;
  }
  Value asRef(Location loc, Value value) {
    return isa<RefType>(value.getType())
               ? value
               : MakeRefOp::create(builder, loc, value).getRef();
  }

  /// What a taken node gave for an input of its node.
  FailureOr<Value> valueAt(const GraphEdge &edge, RankedTensorType type,
                           Location loc) {
    Value value = values.at({edge.node, nameAt(edge)});
    used.insert({edge.node, nameAt(edge)});
    if (tensorType(value.getType()) == type)
      return value;
    return emitError(loc) << "expected " << type << " but "
                          << describe(graph, edge.node) << " gives "
                          << tensorType(value.getType());
  }
  std::string nameAt(const GraphEdge &edge) const {
    const GraphNode &to = node(edge.node);
    return to.kind == "op" ? to.name : to.inputs[size_t(edge.input)].name;
  }

  //===--------------------------------------------------------------------===//
  // Programs
  //===--------------------------------------------------------------------===//

  static const GraphEdge *edgeOf(const GraphNode &one, StringRef name) {
    auto found = llvm::find_if(
        one.edges, [&](const GraphEdge &edge) { return edge.name == name; });
    return found == one.edges.end() || !*found ? nullptr : &*found;
  }

  /// The argument `index` of the piece that node `i` calls.
  FailureOr<Value> operandOf(int i, func::FuncOp piece, unsigned index) {
    RoleAttr role = roleOfArgument(piece, index);
    StringRef name = role.getName();
    BlockArgument argument = piece.getArgument(index);
    RankedTensorType type = tensorType(argument.getType());
    Location loc = argument.getLoc();
    const GraphEdge *edge = edgeOf(node(i), name);
    if (role.getKind() == RoleKind::Input) {
      if (edge && choice.isTaken(edge->node))
        return valueAt(*edge, type, loc);
      Source source = sourceOf(i, edge ? *edge : GraphEdge(), name);
      role = role.without(RoleAttr::kRequiresGrad);
      if (edge)
        role = role.withUnit(RoleAttr::kRequiresGrad);
      return argumentOf(source, role, type, labelOf(i), loc);
    }
    Source source = paramOf(i, name);
    bool isTrained = trained.count(source);
    if (!isTrained)
      role = role.without(RoleAttr::kRequiresGrad);
    auto made = argumentOf(source, role, type, labelOf(i), loc);
    // This call's gradient of it was not wanted.
    if (succeeded(made) && isTrained && !edge &&
        isa<RankedTensorType>(argument.getType()))
      return Value(DetachOp::create(builder, loc, asTensor(loc, *made)));
    return made;
  }

  LogicalResult addProgram(int i) {
    func::FuncOp piece = graphOf(*choice.pieces[size_t(i)]);
    IRMapping mapping;
    for (unsigned a = 0; a < piece.getNumArguments(); ++a) {
      auto operand = operandOf(i, piece, a);
      if (failed(operand))
        return failure();
      BlockArgument argument = piece.getArgument(a);
      mapping.map(argument, isa<RefType>(argument.getType())
                                ? asRef(argument.getLoc(), *operand)
                                : asTensor(argument.getLoc(), *operand));
    }
    Block &body = piece.getBody().front();
    for (Operation &op : body.without_terminator())
      builder.clone(op, mapping)->walk([&](Operation *made) {
        // Its path (TagPaths.h) begins with the piece.
        if (auto name = dyn_cast<NameLoc>(made->getLoc()))
          made->setLoc(NameLoc::get(
              builder.getStringAttr(labelOf(i) + "." + name.getName().str()),
              name.getChildLoc()));
      });
    for (auto [r, result] :
         llvm::enumerate(body.getTerminator()->getOperands())) {
      RoleAttr role = roleOfResult(piece, static_cast<unsigned>(r));
      std::string name = role.getName().str();
      values[{i, name}] = mapping.lookup(result);
      outputs.push_back({i, name, role});
    }
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Ops
  //===--------------------------------------------------------------------===//

  FailureOr<RankedTensorType> typeOf(const GraphInput &input, Location loc) {
    Type element = elementOf(input.type, builder);
    if (!element || !isTensorShape(input.shape))
      return emitError(loc) << "no tensor has the type '" << input.type << "'";
    return RankedTensorType::get(input.shape, element);
  }

  /// The type of operand `k` of an op, as far as the file says it: that of the
  /// result, where both have one.
  FailureOr<Value> opOperand(int i, unsigned k, RankedTensorType result,
                             Location loc) {
    const GraphNode &one = node(i);
    const GraphEdge &edge = one.edges[k];
    bool isSame = one.name == "add" || one.name == "mul" || one.name == "scale";
    if (edge && choice.isTaken(edge.node)) {
      Value value = values.at({edge.node, nameAt(edge)});
      used.insert({edge.node, nameAt(edge)});
      if (!isSame || tensorType(value.getType()) == result)
        return asTensor(loc, value);
      return emitError(loc) << "expected " << result << " but "
                            << tensorType(value.getType()) << " is given";
    }
    RankedTensorType type = result;
    if (edge) {
      auto given = typeOf(node(edge.node).inputs[size_t(edge.input)], loc);
      if (failed(given))
        return failure();
      type = *given;
    } else if (!isSame) {
      return emitError(loc) << "operand " << k << " is unknown";
    }
    std::string name = one.edges.size() == 1 ? "x" : k == 0 ? "x" : "y";
    Source source = sourceOf(i, edge, name);
    auto made =
        argumentOf(source, inputRole(name, bool(edge)), type, labelOf(i), loc);
    if (failed(made))
      return failure();
    return asTensor(loc, *made);
  }

  LogicalResult addOp(int i) {
    const GraphNode &one = node(i);
    auto loc =
        NameLoc::get(builder.getStringAttr(one.name + "." + std::to_string(i)));
    auto result = typeOf(one.inputs[0], loc);
    if (failed(result))
      return failure();
    SmallVector<Expr> operands;
    for (unsigned k = 0; k < one.edges.size(); ++k) {
      auto operand = opOperand(i, k, *result, loc);
      if (failed(operand))
        return failure();
      operands.emplace_back(builder, loc, *operand);
    }
    if (!canGive(one, operands[0].type(), *result))
      return emitError(loc) << describe(graph, i) << " cannot give " << *result
                            << " of " << operands[0].type();
    Expr made = buildOp(one, operands, *result);
    if (made.type() != *result)
      return emitError(loc) << "expected " << describe(graph, i) << " to give "
                            << *result << " but it gives " << made.type();
    values[{i, one.name}] = made;
    auto role = RoleAttr::get(builder.getContext(), RoleKind::Output, one.name);
    outputs.push_back({i, one.name, role});
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Outputs
  //===--------------------------------------------------------------------===//

  struct Output {
    int node;
    std::string name;
    RoleAttr role;
  };

  bool isRoot(const Output &output) const {
    return llvm::any_of(graph.roots, [&](const GraphEdge &root) {
      return root && root.node == output.node && nameAt(root) == output.name;
    });
  }

  /// Roots, what nodes that stay use, and what nobody uses.
  void addOutputs() {
    for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i)
      for (const GraphEdge &edge : node(i).edges)
        if (edge && !choice.isTaken(i) && choice.isTaken(edge.node))
          used.erase({edge.node, nameAt(edge)});
    llvm::erase_if(outputs, [&](const Output &output) {
      return used.count({output.node, output.name}) && !isRoot(output);
    });
    const Output *loss = lossOf();
    std::map<std::string, int> counts;
    for (const Output &output : outputs)
      ++counts[output.name];
    std::set<std::string> taken;
    SmallVector<Value> results;
    SmallVector<RoleAttr> roles;
    for (const Output &output : outputs) {
      bool isOp = node(output.node).kind == "op";
      std::string name = counts[output.name] == 1
                             ? output.name
                             : labelOf(output.node) + "." + output.name;
      if (&output == loss && isOp && !counts.count("loss"))
        name = "loss";
      name = unique(taken, name);
      if (&output == loss)
        module.get()->setAttr(kLossAttr, builder.getStringAttr(name));
      roles.push_back(RoleAttr::get(builder.getContext(), RoleKind::Output,
                                    builder.getStringAttr(name),
                                    output.role.getProperties()));
      Value value = values.at({output.node, output.name});
      results.push_back(asRef(value.getLoc(), value));
    }
    returnOutputs(builder, func, results);
    for (auto [r, role] : llvm::enumerate(roles))
      setRoleOfResult(func, static_cast<unsigned>(r), role);
    demoteRefs(func);
  }

  /// The only root, if it is one element.
  const Output *lossOf() const {
    if (graph.roots.size() != 1)
      return nullptr;
    for (const Output &output : outputs)
      if (isRoot(output)) {
        Value value = values.at({output.node, output.name});
        RankedTensorType type = tensorType(value.getType());
        return type.getNumElements() == 1 ? &output : nullptr;
      }
    return nullptr;
  }

  const GraphFile &graph;
  const Choice &choice;
  OpBuilder builder;
  OwningOpRef<ModuleOp> module;
  func::FuncOp func;
  std::map<int64_t, std::string> instances; ///< labels
  std::set<Source> trained;
  std::map<int, Source> paramsOfLeaves;
  std::map<Source, unsigned> arguments;
  /// Of each argument: the piece and its name there.
  std::vector<std::pair<std::string, std::string>> argumentNames;
  std::vector<bool> isInput;
  std::map<std::pair<int, std::string>, Value> values;
  std::set<std::pair<int, std::string>> used; ///< by nodes that are taken
  std::vector<Output> outputs;
};

} // namespace

Result<Linked> tandem::link::linkGraph(const GraphFile &graph,
                                       ArrayRef<Piece> pieces,
                                       MLIRContext &context) {
  context.loadDialect<TandemDialect, func::FuncDialect>();
  Result<Choice> choice = choose(graph, pieces);
  if (!choice)
    return std::move(choice).status();
  Linked linked;
  bool hasProgram = false;
  for (int i : choice->taken) {
    bool isProgram = choice->pieces[static_cast<size_t>(i)];
    hasProgram |= isProgram;
    linked.ops += !isProgram;
  }
  linked.left = std::move(choice->left);
  if (!hasProgram) {
    std::string text = "no program of the graph can be taken in";
    for (const Left &left : linked.left)
      text += "\n" + left.node + ": " + left.why;
    return Status::failed(text);
  }
  Linker linker(graph, *choice, context);
  auto module = linker.run();
  if (failed(module))
    return Status::failed("the pieces do not fit together");
  linked.module = std::move(*module);
  linked.programs = linker.calls();
  linked.inputs = linker.inputs();
  return linked;
}
