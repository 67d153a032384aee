//===- Node.h - what the translation of an ATen operator sees -------------===//
//
// A translation is a function of a Node: it asks for operands and arguments by
// the names of ATen's schema, makes ops, and gives results. Operands are
// storage (refs): `value` reads one, `ref` is the storage itself, for views and
// writes. A mistake is a problem of the node; translations may go on after one.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_TORCH_NODE_H
#define TANDEM_COMPILER_IMPORT_TORCH_NODE_H

#include "compiler/import/torch/Program.h"
#include "ir/Expr.h"

#include <functional>

namespace tandem::torch {

class GraphTranslator;

/// What does something else in training than in inference.
enum class Inactive { Nothing, Dropout, Norm };

class Node {
public:
  using List = llvm::SmallVector<int64_t>;

  llvm::StringRef op() const { return op_; } ///< "add", of "aten.add_.Tensor"
  llvm::StringRef overload() const { return overload_; }
  mlir::Location loc() const { return loc_; }
  mlir::OpBuilder &builder() const;
  mlir::MLIRContext *context() const { return loc_.getContext(); }

  //===--------------------------------------------------------------------===//
  // Arguments by name: absent ones and None are the same
  //===--------------------------------------------------------------------===//

  bool has(llvm::StringRef name) const;
  /// True if it is a tensor; numbers may stand where tensors do.
  bool isTensor(llvm::StringRef name) const;

  mlir::Value ref(llvm::StringRef name);
  /// Reads a tensor; null if absent, or after a mistake.
  Expr value(llvm::StringRef name);
  /// All of a list, null for absent ones.
  llvm::SmallVector<mlir::Value> refs(llvm::StringRef name);
  llvm::SmallVector<mlir::Value> values(llvm::StringRef name);
  llvm::SmallVector<mlir::Value> refsOf(const Argument &argument);

  int64_t integer(llvm::StringRef name, int64_t otherwise);
  double number(llvm::StringRef name, double otherwise);
  bool flag(llvm::StringRef name, bool otherwise);
  std::string text(llvm::StringRef name, llvm::StringRef otherwise);
  /// A list of integers; one integer is a list of one.
  List integers(llvm::StringRef name, llvm::ArrayRef<int64_t> otherwise = {});
  llvm::SmallVector<double> numbers(llvm::StringRef name);
  /// `count` integers, of which a list of one gives each.
  List integersFor(llvm::StringRef name, int64_t count, int64_t otherwise);
  /// A dimension of a tensor of `rank`, negative ones counted from the end.
  int64_t dim(llvm::StringRef name, int64_t otherwise, int64_t rank);
  /// Dimensions; all of `rank` if there are none.
  List dims(llvm::StringRef name, int64_t rank);
  /// An element type that an argument says; null if absent.
  mlir::Type elementType(llvm::StringRef name);
  const NodeData &data() const { return data_; }
  const Argument *argument(llvm::StringRef name) const;

  //===--------------------------------------------------------------------===//
  // What the archive says of tensors
  //===--------------------------------------------------------------------===//

  /// Of result `i`: null if it has none, or its sizes are not known.
  mlir::RankedTensorType resultType(size_t i = 0);
  size_t resultCount() const;
  bool wants(size_t i) const; ///< false for a result that nothing uses
  /// The strides of a tensor argument; none if they are not known.
  std::optional<List> strides(llvm::StringRef name);
  /// Whether a tensor argument is its whole storage, in row-major order.
  bool isWhole(llvm::StringRef name);

  //===--------------------------------------------------------------------===//
  // Making values
  //===--------------------------------------------------------------------===//

  Expr wrap(mlir::Value value) { return {builder(), loc(), value}; }
  /// The first result of a function or an op of the dialect; null, and a
  /// problem, after a mistake, or if an operand is one.
  Expr make(llvm::StringRef name, mlir::ValueRange operands,
            llvm::ArrayRef<mlir::NamedAttribute> attributes = {},
            mlir::Type type = {});
  llvm::SmallVector<mlir::Value>
  makeAll(llvm::StringRef name, mlir::ValueRange operands,
          llvm::ArrayRef<mlir::NamedAttribute> attributes = {},
          mlir::TypeRange types = {});
  /// The same with absent operands, which are null.
  llvm::SmallVector<mlir::Value>
  call(llvm::StringRef function, llvm::ArrayRef<mlir::Value> operands,
       llvm::ArrayRef<mlir::NamedAttribute> attributes = {});

  Expr full(mlir::Type element, llvm::ArrayRef<int64_t> shape, double number);
  /// The number argument `name`, as a constant of the type.
  Expr scalar(llvm::StringRef name, mlir::Type element);
  /// A number as PyTorch rounds it to narrow floats; of other types as is.
  static double rounded(double number, mlir::Type element);
  Expr cast(const Expr &x, mlir::Type element);
  Expr reshape(const Expr &x, llvm::ArrayRef<int64_t> shape);
  Expr stretch(const Expr &x, llvm::ArrayRef<int64_t> shape);

  mlir::NamedAttribute attr(llvm::StringRef name, int64_t value);
  mlir::NamedAttribute attr(llvm::StringRef name, double value);
  mlir::NamedAttribute attr(llvm::StringRef name, bool value);
  mlir::NamedAttribute attr(llvm::StringRef name, llvm::StringRef text);
  mlir::NamedAttribute attr(llvm::StringRef name, llvm::ArrayRef<int64_t> list);

  /// The element type that PyTorch promotes these arguments to; tensors of no
  /// dimensions and numbers count less.
  mlir::Type promoted(llvm::ArrayRef<llvm::StringRef> names);
  /// These arguments in one type, promoted unless it is given; numbers are
  /// rounded to it. `narrow` is the type that the result has. With `isExact`
  /// floats of 16 bits are widened for a number that is none of the type, and
  /// for a wider tensor of no dimensions.
  llvm::SmallVector<Expr> together(llvm::ArrayRef<llvm::StringRef> names,
                                   mlir::Type &narrow, bool isExact = false);

  /// The state of random numbers, and a draw that no other node has.
  mlir::Value randomState();
  int64_t nextDraw();
  /// Dropout of `x`, each element by itself.
  Expr dropped(const Expr &x, double p);
  /// Whether a node does what it does in training: `training` says how it was
  /// exported, --keep-eval that nothing does. Counts those that do not.
  bool trains(Inactive what, bool training);

  //===--------------------------------------------------------------------===//
  // Results
  //===--------------------------------------------------------------------===//

  /// New storage that holds a value. Null values are mistakes.
  mlir::LogicalResult result(size_t i, mlir::Value value);
  mlir::LogicalResult result(mlir::Value value) { return result(0, value); }
  /// Storage that is there already: a view.
  mlir::LogicalResult view(size_t i, mlir::Value ref);
  mlir::LogicalResult view(mlir::Value ref) { return view(0, ref); }
  /// A view op of storage; null after a mistake.
  mlir::Value viewOf(mlir::Value ref, llvm::StringRef op,
                     llvm::ArrayRef<mlir::NamedAttribute> attributes,
                     mlir::Type type = {});
  mlir::Value reshapeView(mlir::Value ref, llvm::ArrayRef<int64_t> shape);
  /// Replaces what storage holds.
  void write(mlir::Value value, mlir::Value ref);

  /// What the op makes in a graph in it, with these operands.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  inlined(const Graph &graph, llvm::ArrayRef<mlir::Value> refs);
  GraphTranslator &translator() { return translator_; }

  /// Say what is wrong; the node fails.
  mlir::LogicalResult error(const llvm::Twine &message);
  mlir::LogicalResult unsupported(const llvm::Twine &message);
  bool failed() const { return failed_; }

private:
  friend class GraphTranslator;
  Node(GraphTranslator &translator, const NodeData &data, const Graph &graph,
       mlir::Location loc)
      : translator_(translator), data_(data), graph_(graph), loc_(loc) {}
  /// In a region of autocast an operand has the type of the result, if both are
  /// floats: that is what PyTorch casts, whatever its lists of operators are.
  Expr autocast(const Expr &x);
  /// Whether a number, or a tensor of no dimensions, may be none of this type.
  bool losesBits(llvm::StringRef name, mlir::Type narrow);
  /// Of an op in place, or with an argument `out`: what it computed becomes
  /// what that operand holds.
  void writeTo(llvm::StringRef operand);
  std::optional<int64_t> integerOf(const Number &number);
  std::optional<double> numberOf(const Number &number);
  std::vector<std::string> resultNames() const;

  GraphTranslator &translator_;
  const NodeData &data_;
  const Graph &graph_;
  mlir::Location loc_;
  std::string op_, overload_;
  std::string place; ///< for problems
  std::vector<mlir::Value> results;
  std::vector<std::string> names_; ///< of results, lists flattened
  bool failed_ = false;
};

using Translation = std::function<mlir::LogicalResult(Node &)>;

/// How operators are translated: "aten.add" for all overloads, "aten.max.dim"
/// for one, "higher_order.cond".
class OpTable {
public:
  void add(llvm::StringRef name, Translation translation);
  /// Several names, separated by spaces.
  const Translation *find(llvm::StringRef name, llvm::StringRef overload) const;
  const std::map<std::string, Translation, std::less<>> &all() const {
    return table;
  }

private:
  std::map<std::string, Translation, std::less<>> table;
};

const OpTable &opTable();

// The families, a file each.
void addPointwiseOps(OpTable &table);
void addArithmeticOps(OpTable &table);
void addViewOps(OpTable &table);
void addShapeOps(OpTable &table);
void addReductionOps(OpTable &table);
void addContractionOps(OpTable &table);
void addNormalizationOps(OpTable &table);
void addLossOps(OpTable &table);
void addIndexingOps(OpTable &table);
void addCreationOps(OpTable &table);
void addRandomOps(OpTable &table);
void addPoolingOps(OpTable &table);
void addFlowOps(OpTable &table);
void addRecurrentOps(OpTable &table);

} // namespace tandem::torch

#endif
