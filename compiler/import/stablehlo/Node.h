//===- Node.h - what the translation of a StableHLO op sees ---------------===//
//
// A family of ops is a file `Ops<Family>.cpp` that adds one function for each
// to the table. That takes a `Node`, builds ops of Tandem's dialect, and gives
// each result. Whatever is wrong is said by `error` (the module is wrong) or
// `unsupported` (Tandem cannot do it), at the op's location, and ends its
// translation; other ops are still looked at, so that all problems are known at
// once. Nothing that was read is trusted: types of results are compared with
// what the built ops give, and an attribute that a translation never asks for
// is a problem of its own.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_STABLEHLO_NODE_H
#define TANDEM_COMPILER_IMPORT_STABLEHLO_NODE_H

#include "ir/Expr.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <optional>

namespace tandem::stablehlo {

class ModuleTranslator;
struct ScanParts;

using List = llvm::SmallVector<int64_t>;
using Sizes = llvm::ArrayRef<int64_t>;

class Node {
public:
  Node(ModuleTranslator &translator, mlir::Operation *op,
       llvm::ArrayRef<mlir::Value> operands, mlir::Location loc);

  mlir::Operation *source() const { return op; }
  mlir::Location loc() const { return where; }
  mlir::OpBuilder &builder() const;

  // Operands, as values of the program that is built.

  size_t size() const { return operands.size(); }
  mlir::Value operand(size_t i) const { return operands[i]; }
  llvm::ArrayRef<mlir::Value> all() const { return operands; }
  Expr expr(size_t i) const { return wrap(operands[i]); }
  Expr wrap(mlir::Value value) const { return {builder(), where, value}; }
  mlir::RankedTensorType type(size_t i) const { return typeOf(operands[i]); }
  static mlir::RankedTensorType typeOf(mlir::Value value) {
    return mlir::cast<mlir::RankedTensorType>(value.getType());
  }
  Sizes shape(size_t i) const { return type(i).getShape(); }
  int64_t rank(size_t i) const { return type(i).getRank(); }
  mlir::Type element(size_t i) const { return type(i).getElementType(); }
  /// Fails unless there are so many operands, results and regions.
  mlir::LogicalResult expect(size_t operands, size_t results = 1,
                             size_t regions = 0);

  /// The one number that a tensor is full of, if it is a constant.
  std::optional<double> splat(mlir::Value value) const;
  /// The one element of a constant of integers.
  std::optional<int64_t> integerOf(mlir::Value value) const;

  // Attributes, inherent ones and others. One of another form than asked for
  // is an error, and the default is returned; the op fails then.

  mlir::Attribute attribute(llvm::StringRef name);
  int64_t integer(llvm::StringRef name, int64_t otherwise);
  bool flag(llvm::StringRef name, bool otherwise);
  std::string text(llvm::StringRef name, llvm::StringRef otherwise);
  List integers(llvm::StringRef name, Sizes otherwise = {});
  /// The fields of a structure (`#stablehlo.gather<...>`); null if absent.
  mlir::DictionaryAttr fields(llvm::StringRef name);
  /// A field of it.
  List integers(mlir::DictionaryAttr fields, llvm::StringRef name);
  int64_t integer(mlir::DictionaryAttr fields, llvm::StringRef name,
                  int64_t otherwise);
  /// These attributes do not matter here.
  void ignore(std::initializer_list<llvm::StringRef> names);

  // Results.

  /// The type that the source declares; null, and an error was given, if Tandem
  /// has none such.
  mlir::RankedTensorType resultType(size_t i = 0);
  Sizes resultShape(size_t i = 0) { return resultType(i).getShape(); }
  size_t numResults() const { return op->getNumResults(); }
  void result(mlir::Value value) { result(0, value); }
  void result(size_t i, mlir::Value value);

  // Building. Each gives null, and an error was given, if something is wrong,
  // also if an operand is null.

  mlir::Value make(llvm::StringRef name, mlir::ValueRange operands,
                   llvm::ArrayRef<mlir::NamedAttribute> attributes = {},
                   mlir::TypeRange types = {});
  llvm::SmallVector<mlir::Value>
  makeAll(llvm::StringRef name, mlir::ValueRange operands,
          llvm::ArrayRef<mlir::NamedAttribute> attributes = {},
          mlir::TypeRange types = {});
  /// A function of compiler/functions.
  llvm::SmallVector<mlir::Value>
  callAll(llvm::StringRef function, mlir::ValueRange operands,
          llvm::ArrayRef<mlir::NamedAttribute> attributes = {});
  mlir::Value call(llvm::StringRef function, mlir::ValueRange operands,
                   llvm::ArrayRef<mlir::NamedAttribute> attributes = {});
  mlir::NamedAttribute attr(llvm::StringRef name, int64_t value) const;
  mlir::NamedAttribute attr(llvm::StringRef name, Sizes list) const;
  mlir::NamedAttribute attr(llvm::StringRef name, llvm::StringRef text) const;
  mlir::NamedAttribute attr(llvm::StringRef name, mlir::Attribute value) const;
  mlir::NamedAttribute unit(llvm::StringRef name) const;
  mlir::Value constant(mlir::DenseElementsAttr value);
  /// A constant of the type, every element `number`.
  mlir::Value full(mlir::RankedTensorType type, double number);
  mlir::Value cast(mlir::Value x, mlir::Type element);
  mlir::Value reshape(mlir::Value x, Sizes shape);
  mlir::Value permute(mlir::Value x, Sizes order);
  /// Dimension i of `x` is dims[i] of the result.
  mlir::Value broadcast(mlir::Value x, Sizes shape, Sizes dims);
  mlir::Value slice(mlir::Value x, Sizes starts, Sizes limits,
                    Sizes strides = {});
  mlir::Value compare(llvm::StringRef predicate, mlir::Value a, mlir::Value b);
  /// Each element its index along `dim`.
  mlir::Value iota(mlir::Type element, Sizes shape, int64_t dim);

  // Regions of the source.

  /// Translates a region where the builder stands, its arguments being
  /// `arguments`. Returns what it returns.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  inlineRegion(mlir::Region &region, llvm::ArrayRef<mlir::Value> arguments);
  /// The body of a function of the module.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  inlineFunction(llvm::StringRef name, llvm::ArrayRef<mlir::Value> arguments);
  /// A region in words that do not depend on names: "add a0 a1; return t0".
  static std::string spelling(mlir::Region &region);

  /// The scans whose bodies are being translated, the innermost last.
  llvm::SmallVectorImpl<ScanParts *> &scans();

  // Problems. Both return failure.

  mlir::LogicalResult error(const llvm::Twine &message);
  mlir::LogicalResult unsupported(const llvm::Twine &message);
  /// Annotations of this kind are not obeyed; the import says so once.
  void leaveOut(const std::string &annotations);
  bool failed() const { return hasFailed; }

private:
  friend class ModuleTranslator;
  ModuleTranslator &translator;
  mlir::Operation *op;
  llvm::SmallVector<mlir::Value> operands, results;
  mlir::Location where;
  llvm::StringSet<> asked;
  bool hasFailed = false;
};

using Translation = mlir::LogicalResult (*)(Node &);

/// How ops are translated, by name ("stablehlo.add").
class OpTable {
public:
  static const OpTable &get();

  void add(llvm::StringRef name, Translation translation) {
    entries[("stablehlo." + name).str()] = translation;
  }
  void addNamed(llvm::StringRef name, Translation translation) {
    entries[name] = translation;
  }
  Translation find(llvm::StringRef name) const { return entries.lookup(name); }
  const llvm::StringMap<Translation> &all() const { return entries; }

private:
  llvm::StringMap<Translation> entries;
};

// One for each family, in its file.
void addElementwiseOps(OpTable &table);
void addShapeOps(OpTable &table);
void addProductOps(OpTable &table);
void addReduceOps(OpTable &table);
void addWindowOps(OpTable &table);
void addIndexOps(OpTable &table);
void addSortOps(OpTable &table);
void addFlowOps(OpTable &table);
void addCallOps(OpTable &table);

} // namespace tandem::stablehlo

#endif
