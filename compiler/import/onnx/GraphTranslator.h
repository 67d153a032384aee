//===- GraphTranslator.h - the module of one ONNX graph -------------------===//
//
// Nodes are translated in an order in which values are defined before they are
// used. A node that cannot be translated leaves placeholders of the types that
// the model declares, so that what follows is still checked.
//
// Everything is a value of the graph function. An initializer becomes an
// argument where it is first used as a tensor; a state that is updated becomes
// a ref at the end, read at the beginning and written before the return. Where
// an initializer turns out to be needed when compiling after it was made an
// argument, the translation is done again with that said (`mustRestart`).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_ONNX_GRAPHTRANSLATOR_H
#define TANDEM_COMPILER_IMPORT_ONNX_GRAPHTRANSLATOR_H

#include "compiler/import/onnx/Import.h"
#include "compiler/import/onnx/Known.h"
#include "compiler/import/onnx/Translator.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace tandem::onnx {

class GraphTranslator {
public:
  /// `constants`: initializers that are constants, whatever they look like.
  GraphTranslator(const Model &model, const std::string &path,
                  const ImportOptions &options, mlir::MLIRContext &context,
                  std::set<std::string> &constants);

  void run(Import &to);
  /// True if `constants` has grown by what was an argument already.
  bool mustRestart() const { return restart; }

private:
  friend class Node;

  /// The names of one graph.
  struct Scope {
    std::map<std::string, Datum> names;
    std::set<std::string> broken; ///< names of what could not be made
    std::set<std::string> used;   ///< by nodes and as outputs
    const Scope *outer = nullptr;
    const Opsets *opsets = nullptr;
    std::string prefix; ///< of locations: "call/"
    bool isMain = false;
  };

  // The graph (GraphTranslator.cpp).
  void addInput(const NamedType &input, Scope &scope);
  void addInitializers(const Graph &graph, Scope &scope);
  void addNodes(const Graph &graph, Scope &scope);
  void addOutputs(const Graph &graph, Scope &scope);
  void checkNames(const Graph &graph);
  std::optional<llvm::SmallVector<int64_t>> shapeOf(const NamedType &input);
  void finishStates();
  const Datum *find(const std::string &name, const Scope &scope,
                    bool &isBroken) const;

  // Nodes (TranslateNodes.cpp).
  void addNode(const NodeData &data, const Graph *graph, Scope &scope);
  const FunctionData *functionOf(const NodeData &data) const;
  bool addCall(const NodeData &data, llvm::ArrayRef<Datum> operands,
               mlir::Location where, Scope &scope,
               llvm::SmallVectorImpl<Datum> &results);
  bool isWrittenDown(const NodeData &data) const;
  void leavePlaceholders(const NodeData &data, const Graph *graph,
                         Scope &scope);
  mlir::LogicalResult translate(Node &node, const OpTable::Entry &entry);
  /// Indices of the nodes in an order in which they can be translated.
  llvm::SmallVector<size_t> sorted(llvm::ArrayRef<NodeData> nodes,
                                   const Scope &scope);

  // Values.
  mlir::BlockArgument addArgument(mlir::RankedTensorType type, RoleAttr role,
                                  mlir::Location loc);
  /// A datum as a tensor: null if it is none, then `why` says why.
  mlir::Value materialize(const Datum &datum, mlir::Location loc,
                          std::string &why);
  /// The data of a datum that is known; `unknown` as KnownValues::of.
  TensorPtr knownData(const Datum &datum,
                      llvm::SmallVectorImpl<mlir::Value> *unknown = nullptr);
  /// Data that may become a parameter of this name.
  void addCandidate(const TensorPtr &data, const std::string &name);
  mlir::Value asParameter(const TensorPtr &data, mlir::Location loc);
  mlir::Value randomState(mlir::Location loc);

  // What an exporter merged (Merged.cpp).
  void findRoles(const Graph &graph);
  TensorPtr apart(const TensorPtr &data, const std::string &name);
  void splitRoles(const NodeData &node, llvm::MutableArrayRef<Datum> operands);
  void splitIdentity(const NodeData &node, Datum &result);
  void noteSplit();

  // The loss (Loss.cpp).
  /// True if `loss` asks for one; else it may name one that is there.
  bool makesLoss() const { return options.loss.find(':') != options.loss.npos; }
  void addLoss(Scope &scope);
  void findPartsOfLoss(const Graph &graph);
  void noteLoss(const std::string &kind, const std::string &output);

  // What options say by names, and what is trained (Choices.cpp).
  bool isTrained(const std::string &name, bool isWeight) const;
  void checkChoices();
  void checkExpression(const char *option, const std::string &expression);
  void checkFrozen();
  void noteChoices();
  void noteLeft(llvm::ArrayRef<std::string> trained);
  void noteShared();
  // What values and names say of who made an initializer (Weights.cpp).
  void noteTransposed();
  void noteMadeNames();
  /// What is trained, in the order of the function's arguments.
  llvm::SmallVector<TensorPtr> trainedWeights();

  void problem(const std::string &where, const std::string &text,
               bool isUnsupported = false);
  /// An option is wrong.
  void misuse(const std::string &option, const std::string &text);
  /// Of a node, its operator and its number in its graph, from 1.
  mlir::Location location(const std::string &name, const std::string &kind = "",
                          unsigned number = 0);

  const Model &model;
  const std::string &path;
  const ImportOptions &options;
  std::set<std::string> &constants;
  mlir::OpBuilder builder;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp func;
  KnownValues known;
  std::vector<Problem> problems;
  std::vector<std::string> notes;
  std::set<std::string> neededValues;

  /// Initializers of the model's graph (and what its constant nodes make, if it
  /// is trained) that may become parameters, and those that did. Buffers are
  /// running statistics, which no gradient trains.
  std::map<const TensorData *, std::string> candidates;
  std::set<std::string> buffers;
  /// Initializers that a loss of the graph's own has to itself, as the weights
  /// of classes: not trained unless --train says so.
  std::set<std::string> ofLoss;
  /// Names of Identities of what others read too, initializers that are running
  /// statistics and something else, and the variables that were made of both:
  /// by name, with the name of what they are split from.
  std::set<std::string> copies, ambiguous;
  std::map<std::string, std::pair<TensorPtr, std::string>> split;
  std::set<std::string> trainable; ///< names that --train could match
  std::set<std::string> masks;     ///< those of them with values of no weight
  std::set<std::string> left;      ///< those of them that became constants
  llvm::DenseMap<mlir::Value, TensorPtr> parameters;
  std::map<const TensorData *, mlir::Value> arguments;
  std::map<const TensorData *, mlir::Value> made; ///< constants
  /// New values of states, in the order in which they were given.
  llvm::MapVector<mlir::Value, mlir::Value> updates;
  llvm::DenseSet<mlir::Value> placeholders;
  std::vector<TensorPtr> keep; ///< what `made` points at
  mlir::Value random, loss;
  llvm::SmallVector<mlir::Value> iterations; ///< numbers of the loops around
  int64_t draws = 0;
  int depth = 0; ///< of calls and graphs in graphs
  llvm::SmallVector<const FunctionData *> calls; ///< being translated
  int64_t nodes = 0; ///< that were translated so far
  int64_t counter = 0;
  bool restart = false;
};

/// True if an element is one that no weight has, but masks do: infinite, as
/// good as that (1e30 and beyond), or the lowest number of f16.
bool hasValuesOfMasks(const TensorData &data);
/// True for "head.bias", as modules name what they own, and false for what an
/// exporter made up.
bool namesParameter(llvm::StringRef name);

/// The name of a node for messages and locations: its own, or what it makes.
std::string labelOf(const NodeData &data);
/// All names that a node uses, those in its graphs included.
std::set<std::string> usedNames(const NodeData &data);

} // namespace tandem::onnx

#endif
