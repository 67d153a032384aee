//===- ModuleTranslator.h - the module of one StableHLO module ------------===//
//
// The function `main` becomes the graph; what it calls is inlined. A value of
// the source is one of the program; of an op that cannot be translated they are
// stand-ins of the declared types, so that what follows is still checked.
//
// Arguments that the source aliases to results (`tf.aliasing_output`, which
// donated arguments have) are states: read first and written last.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_STABLEHLO_MODULETRANSLATOR_H
#define TANDEM_COMPILER_IMPORT_STABLEHLO_MODULETRANSLATOR_H

#include "compiler/import/stablehlo/Import.h"
#include "compiler/import/stablehlo/Node.h"
#include "ir/Dialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/Regex.h"

#include <set>

namespace tandem::stablehlo {

struct ScanParts;

class ModuleTranslator {
public:
  ModuleTranslator(mlir::ModuleOp source, const std::string &path,
                   const ImportOptions &options)
      : source(source), path(path), options(options),
        builder(source.getContext()) {}

  /// Null if there are problems, which were emitted.
  mlir::OwningOpRef<mlir::ModuleOp> run();
  /// Why there is no module: Usage if an option is wrong, Unsupported if all is
  /// right but cannot be compiled.
  Status status() const;

private:
  friend class Node;

  // The signature (Signature.cpp).
  struct Argument {
    std::string name;
    int64_t alias = -1; ///< the result that is its new value
    RoleAttr role;
  };
  void findArguments(mlir::func::FuncOp main);
  void findResults(mlir::func::FuncOp main);
  void checkChoices();
  void addArguments(mlir::func::FuncOp main);
  mlir::LogicalResult addLossTo(llvm::ArrayRef<mlir::Value> made,
                                llvm::SmallVectorImpl<mlir::Value> &outputs,
                                llvm::SmallVectorImpl<RoleAttr> &roles);
  void finishStates(llvm::ArrayRef<mlir::Value> made);
  void addResults(mlir::func::FuncOp main, llvm::ArrayRef<mlir::Value> values);
  void noteChoices();
  bool isTrained(llvm::StringRef name, mlir::Type type) const;
  mlir::Value addInput(mlir::RankedTensorType type, RoleAttr role,
                       mlir::Location loc);

  // The loss (Loss.cpp).
  mlir::Value addLoss(llvm::ArrayRef<mlir::Value> values);

  // Ops.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  inlineBlock(mlir::Block &block, llvm::ArrayRef<mlir::Value> arguments);
  void translate(mlir::Operation *op);
  mlir::LogicalResult translate(Node &node, Translation translation);
  mlir::Value standIn(mlir::Type type, mlir::Location loc);
  /// Tandem's type; null if it has none, then `why` says so.
  mlir::RankedTensorType typeOf(mlir::Type type, std::string &why) const;
  /// Where an op stands: its name in the program, and a place in a file.
  mlir::Location location(mlir::Location loc);
  /// The location of what has a name.
  mlir::Location placeOfName(llvm::StringRef name);
  void misuse(const llvm::Twine &text);
  /// Each is a problem: of the module, and of what is not supported.
  mlir::InFlightDiagnostic wrong(mlir::Location loc);
  mlir::InFlightDiagnostic missing(mlir::Location loc);

  mlir::ModuleOp source;
  const std::string &path;
  const ImportOptions &options;
  mlir::OpBuilder builder;
  mlir::func::FuncOp func;
  llvm::DenseMap<mlir::Value, mlir::Value> values;
  std::vector<Argument> arguments;
  std::vector<std::string> results; ///< names
  mlir::Value loss;
  std::set<std::string> dropped; ///< kinds of annotations that were left out
  std::vector<llvm::StringRef> calls; ///< functions that are being inlined
  /// The scans whose bodies are being translated.
  llvm::SmallVector<ScanParts *> scans;
  Status misused;
  int64_t count = 0;                 ///< ops that were translated
  int problems = 0, unsupported = 0; ///< errors; those of what is not there
};

} // namespace tandem::stablehlo

#endif
