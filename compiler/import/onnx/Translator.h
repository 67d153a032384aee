//===- Translator.h - what the translation of an ONNX operator sees -------===//
//
// A family of operators is a file `Ops<Family>.cpp` that registers one function
// for each. That takes a `Node`, builds ops of the dialect, and gives each
// result. Whatever is wrong with a node is said by `error` (the model is wrong)
// or `unsupported` (Tandem cannot do it), and ends its translation; other nodes
// are still looked at, so that all problems are known at once.
//
// An attribute that a translation never asks for is a problem of its own: what
// does not matter is named to `ignore`. A value is *known* if it follows from
// constants; shapes, axes and the like must be.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_ONNX_TRANSLATOR_H
#define TANDEM_COMPILER_IMPORT_ONNX_TRANSLATOR_H

#include "compiler/import/onnx/Graph.h"
#include "ir/Expr.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"

#include <optional>
#include <set>

namespace tandem::onnx {

class GraphTranslator;

/// What a name in the graph stands for: one of these, or nothing (absent).
struct Datum {
  Datum() = default;
  Datum(mlir::Value value) : value(value) {}
  Datum(TensorPtr data) : data(std::move(data)) {}
  explicit operator bool() const { return value || data || list; }

  mlir::Value value;                              ///< a tensor of the program
  TensorPtr data;                                 ///< known when compiling
  std::shared_ptr<const std::vector<Datum>> list; ///< a sequence
  /// A narrow type whose numbers the value or the data hold (Narrow.h).
  ElementKind kind = ElementKind::Undefined;
};

class Node {
public:
  llvm::StringRef name() const;
  llvm::StringRef op() const;
  /// The version of the node's domain that the model is written in. An operator
  /// whose meaning changed in version 13 asks `opset() >= 13`.
  int64_t opset() const;
  mlir::Location loc() const;
  mlir::OpBuilder &builder() const;
  mlir::MLIRContext *context() const;

  // Operands.

  size_t numOperands() const;
  /// False for an operand that is left out.
  bool has(size_t i) const;
  /// The operand as a tensor; null if it is absent. A known one becomes a
  /// constant. Null too, and an error was given, if it is no dense tensor.
  mlir::Value operand(size_t i);
  /// The same, to calculate with.
  Expr expr(size_t i) { return wrap(operand(i)); }
  Expr wrap(mlir::Value value) { return {builder(), loc(), value}; }
  /// Its type, without making a constant of a known one; null if absent.
  mlir::RankedTensorType type(size_t i) const;
  llvm::ArrayRef<int64_t> shape(size_t i) const { return type(i).getShape(); }
  int64_t rank(size_t i) const { return type(i).getRank(); }
  mlir::Type elementType(size_t i) const { return type(i).getElementType(); }
  const Datum &datum(size_t i) const;
  /// What a name of the graph stands for; nothing if there is none.
  Datum named(const std::string &name) const;

  /// The value of an operand, if it is known; null if it is absent or not
  /// known. An initializer that is asked for so is a constant from then on, and
  /// no parameter: ask only for what must be known.
  mlir::DenseElementsAttr known(size_t i);
  /// The same as integers, row-major; nothing if absent or not known.
  std::optional<llvm::SmallVector<int64_t>> knownInts(size_t i);
  std::optional<llvm::SmallVector<double>> knownNumbers(size_t i);
  std::optional<llvm::SmallVector<int64_t>> knownInts(const Datum &datum);
  /// The same of what has to be known: otherwise an error, which names the
  /// graph's input on which it depends and how to give that. `what` says what
  /// it is ("the shape"). The operand must not be absent.
  mlir::FailureOr<llvm::SmallVector<int64_t>> needInts(size_t i,
                                                       llvm::StringRef what);
  mlir::FailureOr<llvm::SmallVector<double>> needNumbers(size_t i,
                                                         llvm::StringRef what);
  /// One integer, of a tensor of one element.
  mlir::FailureOr<int64_t> needInt(size_t i, llvm::StringRef what);
  mlir::FailureOr<double> needNumber(size_t i, llvm::StringRef what);

  // Attributes. One of another form than asked for is an error, and the
  // default is returned; the node fails then, whatever the translation does.

  bool hasAttribute(llvm::StringRef name);
  int64_t integer(llvm::StringRef name, int64_t otherwise);
  double number(llvm::StringRef name, double otherwise);
  std::string text(llvm::StringRef name, llvm::StringRef otherwise);
  /// One of `choices`, the first by default; anything else is unsupported.
  std::string choice(llvm::StringRef name,
                     llvm::ArrayRef<llvm::StringRef> choices);
  llvm::SmallVector<int64_t> integers(llvm::StringRef name,
                                      llvm::ArrayRef<int64_t> otherwise = {});
  llvm::SmallVector<double> numbers(llvm::StringRef name,
                                    llvm::ArrayRef<double> otherwise = {});
  llvm::SmallVector<std::string> texts(llvm::StringRef name);
  TensorPtr tensor(llvm::StringRef name);
  std::shared_ptr<const Graph> graph(llvm::StringRef name);
  /// The attribute as it stands; null if there is none.
  const Attribute *attribute(llvm::StringRef name);
  /// These attributes do not matter here.
  void ignore(std::initializer_list<llvm::StringRef> names);
  /// The element type of a number of ONNX's TensorProto.DataType; null, and an
  /// error was given, if there is none here.
  mlir::Type elementTypeOf(int64_t kind);

  // Results.

  size_t numResults() const;  ///< that the node names, absent ones counted
  bool wants(size_t i) const; ///< false for a result that nobody uses
  void result(size_t i, mlir::Value value);
  /// A result that is known, whatever the operands are (as `Shape`'s).
  void result(size_t i, mlir::DenseElementsAttr value);
  void result(size_t i, Datum datum);

  // Building.

  /// The op `tandem.<name>`; null, and an error was given, if that cannot be.
  /// `types` are its results' where they do not follow from the operands.
  mlir::Operation *build(llvm::StringRef name, mlir::ValueRange operands,
                         llvm::ArrayRef<mlir::NamedAttribute> attributes = {},
                         mlir::TypeRange types = {});
  /// The one result of that op.
  mlir::Value make(llvm::StringRef name, mlir::ValueRange operands,
                   llvm::ArrayRef<mlir::NamedAttribute> attributes = {},
                   mlir::TypeRange types = {});
  /// The results of a function of compiler/functions; none, and an error was
  /// given, if that cannot be.
  llvm::SmallVector<mlir::Value>
  callAll(llvm::StringRef function, mlir::ValueRange operands,
          llvm::ArrayRef<mlir::NamedAttribute> attributes = {});
  /// Its first result; null if that failed.
  mlir::Value call(llvm::StringRef function, mlir::ValueRange operands,
                   llvm::ArrayRef<mlir::NamedAttribute> attributes = {});
  /// `a` as a constant.
  mlir::Value constant(mlir::DenseElementsAttr a);
  /// A constant of the type, every element `number`.
  mlir::Value splat(mlir::RankedTensorType type, double number);
  /// A known tensor of i64.
  mlir::DenseElementsAttr ints(llvm::ArrayRef<int64_t> values) const;
  mlir::NamedAttribute attr(llvm::StringRef name, int64_t value) const;
  mlir::NamedAttribute attr(llvm::StringRef name, double value) const;
  mlir::NamedAttribute attr(llvm::StringRef name,
                            llvm::ArrayRef<int64_t> list) const;
  mlir::NamedAttribute attr(llvm::StringRef name, llvm::StringRef text) const;
  mlir::NamedAttribute attr(llvm::StringRef name, mlir::Attribute value) const;
  mlir::NamedAttribute flag(llvm::StringRef name) const; ///< a unit attribute
  /// Operands of ONNX's (NumPy's) multidirectional broadcasting in one shape;
  /// false, and an error was given, if they have none.
  bool broadcast(llvm::MutableArrayRef<Expr> values);

  // Training.

  /// True if there is a loss to train with (and not --keep-eval): then
  /// BatchNormalization and Dropout do what they do in training.
  bool isTraining() const;
  /// True if they do as in inference, whatever the graph says (--keep-eval).
  bool keepsInference() const;
  /// Operand i, an initializer, has the value from the next step on: it
  /// becomes a state (running statistics). Fails if it is no initializer.
  mlir::LogicalResult update(size_t i, mlir::Value value);
  /// The state of random numbers (tensor<2xi64>), and a draw that no other node
  /// has. `nextDraw` must be called as often whatever is known. In a loop the
  /// state is another one in each iteration.
  mlir::Value randomState();
  int64_t nextDraw();

  // Graphs in attributes.

  /// Translates `graph` where the builder stands; its nodes see the names
  /// outside. Returns what its outputs are; fails if a node does.
  mlir::FailureOr<llvm::SmallVector<Datum>>
  inlineGraph(const Graph &graph, llvm::ArrayRef<Datum> inputs);
  /// The same for one iteration of a loop of the program: `index` is its
  /// number, an i64 of rank 0.
  mlir::FailureOr<llvm::SmallVector<Datum>>
  inlineIteration(const Graph &graph, llvm::ArrayRef<Datum> inputs,
                  mlir::Value index);
  /// What a datum is as a tensor (a known one as a constant).
  mlir::Value valueOf(const Datum &datum);

  // Problems. Both return failure.

  mlir::LogicalResult error(const llvm::Twine &message);
  mlir::LogicalResult unsupported(const llvm::Twine &message);

  Node(GraphTranslator &translator, const NodeData &data,
       llvm::ArrayRef<Datum> operands, mlir::Location where, int64_t version)
      : translator(translator), data(data),
        operands(operands.begin(), operands.end()), where(where),
        version(version), results(data.outputs.size()) {}

private:
  friend class GraphTranslator;
  const Attribute *find(llvm::StringRef name, Attribute::Form form);
  TensorPtr need(size_t i, llvm::StringRef what);

  GraphTranslator &translator;
  const NodeData &data;
  llvm::SmallVector<Datum> operands;
  mlir::Location where;
  int64_t version;
  llvm::SmallVector<Datum> results;
  std::set<std::string> asked; ///< attributes
  std::string place;           ///< "node 'conv1' (Conv)"
  void *scope = nullptr;       ///< the names that graphs in it see
  bool failed = false;
};

using Translation = mlir::LogicalResult (*)(Node &);

/// The newest version of ai.onnx whose operators are known.
inline constexpr int64_t newestOpset = 28;

/// How operators are translated, by domain and name.
class OpTable {
public:
  struct Entry {
    Translation translation = nullptr;
    int64_t first = 1; ///< the first version of the domain that is understood
    int64_t last = newestOpset; ///< the last
  };
  /// An operator of ai.onnx.
  void add(llvm::StringRef op, Translation translation, int64_t first = 1,
           int64_t last = newestOpset) {
    add("", op, translation, first, last);
  }
  void add(llvm::StringRef domain, llvm::StringRef op, Translation translation,
           int64_t first = 1, int64_t last = newestOpset) {
    entries[{domain.str(), op.str()}] = {translation, first, last};
  }
  const Entry *find(llvm::StringRef domain, llvm::StringRef op) const {
    auto it = entries.find({domain.str(), op.str()});
    return it == entries.end() ? nullptr : &it->second;
  }
  const std::map<std::pair<std::string, std::string>, Entry> &all() const {
    return entries;
  }

private:
  std::map<std::pair<std::string, std::string>, Entry> entries;
};

/// All operators (OpTable.cpp calls the families).
const OpTable &opTable();

// One for each family, in its file.
void addFlowOps(OpTable &table);
void addScanOps(OpTable &table);
void addGraphOps(OpTable &table);
void addSequenceOps(OpTable &table);
void addIndexOps(OpTable &table);
void addLogicOps(OpTable &table);
void addMathOps(OpTable &table);
void addQuantizeOps(OpTable &table);
void addResizeOps(OpTable &table);
void addSignalOps(OpTable &table);
void addReduceOps(OpTable &table);
void addShapeOps(OpTable &table);
void addConvOps(OpTable &table);
void addPoolOps(OpTable &table);
void addActivationOps(OpTable &table);
void addNormOps(OpTable &table);
void addLossOps(OpTable &table);
void addRecurrentOps(OpTable &table);
void addRandomOps(OpTable &table);
void addTrainingOps(OpTable &table);
void addAttentionOps(OpTable &table);
void addContribOps(OpTable &table);
void addContribAttentionOps(OpTable &table); ///< of addContribOps

} // namespace tandem::onnx

#endif
