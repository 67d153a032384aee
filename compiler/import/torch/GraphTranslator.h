//===- GraphTranslator.h - the module of one exported program -------------===//
//
// Everything is recorded as storage, as the tracer does: a tensor's name names
// a ref, views share one, other ops read their operands and make a ref of each
// result, what ends with an underscore writes. What nobody writes becomes
// values at the end.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_TORCH_GRAPHTRANSLATOR_H
#define TANDEM_COMPILER_IMPORT_TORCH_GRAPHTRANSLATOR_H

#include "compiler/import/Import.h"
#include "compiler/import/torch/Node.h"
#include "compiler/import/torch/Sizes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem::torch {

class GraphTranslator {
public:
  GraphTranslator(const Program &program, const std::string &path,
                  const ImportOptions &options, mlir::MLIRContext &context);

  void run(Import &to);

  /// The names of one graph.
  struct Scope {
    const Graph *graph = nullptr;
    std::map<std::string, mlir::Value> refs; ///< null: its maker is wrong
  };
  /// What the nodes stand in.
  struct Mode {
    bool differentiates = true;
    /// In a region of autocast: what PyTorch casts is seen by the types of
    /// results.
    bool isAutocast = false;
  };

  /// Translates the nodes of a graph where the builder stands, with its inputs
  /// bound to refs. The refs of its outputs; failure if one has none.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  translate(const Graph &graph, llvm::ArrayRef<mlir::Value> inputs);

  mlir::OpBuilder builder;
  Mode mode;

private:
  friend class Node;

  // Arguments and outputs.
  void bindSymbols();
  void bind(const InputSpec &input);
  void checkRanges();
  void addInput(const InputSpec &input, Scope &scope);
  void addInputs(Scope &scope);
  /// A parameter has a further name.
  void addName(mlir::BlockArgument parameter, const std::string &name);
  void addOutputs(Scope &scope);
  void checkConstants();
  void checkStorage();
  void addLoss(Scope &scope,
               llvm::SmallVectorImpl<std::pair<std::string, mlir::Value>> &to);
  mlir::BlockArgument addArgument(mlir::RankedTensorType type, RoleAttr role,
                                  mlir::Location loc);
  /// Null, and a problem, unless all is known.
  mlir::RankedTensorType typeOf(const TensorMeta &meta,
                                const std::string &where);
  bool isTrained(const std::string &name) const;
  void checkChoices();
  void noteChoices();
  void noteInference();

  // Nodes.
  void addNodes(const Graph &graph, Scope &scope);
  void addNode(const NodeData &data, Scope &scope);
  void finish(Node &node, Scope &scope, bool isInPlace);
  bool isSizes(const NodeData &data, const Graph &graph) const;
  void tag(mlir::Operation *before);
  mlir::Location locationOf(const NodeData &data, llvm::StringRef op);

  mlir::Value randomState();
  void problem(const std::string &where, const std::string &text,
               bool isUnsupported = false);
  void misuse(const std::string &option, const std::string &text);

  const Program &program;
  const std::string &path;
  const ImportOptions &options;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp func;
  Symbols symbols;
  Scope *scope = nullptr; ///< of the nodes that are being translated
  std::vector<ImportProblem> problems;
  std::vector<std::string> notes;
  std::set<std::string> trainable;
  std::map<std::string, TensorPtr> weights;
  std::map<std::string, mlir::BlockArgument> parameters; ///< with values
  std::map<std::string, mlir::BlockArgument> placed;     ///< and buffers, all
  /// Parameters and buffers with values, by their names.
  std::vector<std::pair<std::string, mlir::BlockArgument>> kept;
  /// Buffers that no state_dict has, and constants: where, and their storage.
  std::vector<std::pair<std::string, mlir::Value>> constants;
  mlir::Value random;      ///< the state's ref
  mlir::Value randomValue; ///< what it is in this step
  int64_t draws = 0;
  /// Nodes that were exported in train() and in eval().
  std::map<Inactive, int64_t> active, inactive;
  int depth = 0;
};

/// "torch.ops.aten.add.Tensor" as "aten.add" and "Tensor".
std::pair<std::string, std::string> operatorOf(llvm::StringRef target);

/// Whether anything reads a value of `graph`.
bool isRead(const std::string &name, const Graph &graph);

} // namespace tandem::torch

#endif
