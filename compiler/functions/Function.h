//===- Function.h - what models call that is no op ------------------------===//
//
// A function is a name for a way to build ops: where the dialect has few
// primitives, functions are the rest of what frameworks offer. Importers and
// the tracer find them by name, after the ops of the dialect. What a function
// built stands in the captured module, each op located at the call.
//
// A function is described by its signature, from which calls are checked:
//
//     "elu(x; alpha=1.0)"          one operand, an attribute with its default
//     "concat_all(xs...; dim=0)"   any number of operands, at least one
//     "gemm(a, b, c?; alpha=1.0)"  the last operand may be absent
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_FUNCTIONS_FUNCTION_H
#define TANDEM_COMPILER_FUNCTIONS_FUNCTION_H

#include "compiler/functions/Call.h"

#include <map>
#include <string>

namespace tandem {

/// What a call makes; failure after a mistake.
using CallResults = mlir::FailureOr<llvm::SmallVector<mlir::Value>>;

struct Function {
  using Build = CallResults (*)(Call &);

  std::string signature;
  std::string meaning; ///< a line, for docs/functions.md
  Build build = nullptr;

  // From the signature.
  std::string name;
  std::string family; ///< "Activation"
  size_t fewest = 0, most = 0;
  llvm::SmallVector<std::string> attributes;
};

class FunctionTable {
public:
  /// All functions.
  static const FunctionTable &get();

  const Function *find(llvm::StringRef name) const;
  const std::map<std::string, Function, std::less<>> &all() const {
    return table;
  }

  /// Starts a family; the functions that follow belong to it.
  void family(llvm::StringRef name) { current = name.str(); }
  void add(llvm::StringRef signature, llvm::StringRef meaning,
           Function::Build build);

private:
  std::map<std::string, Function, std::less<>> table;
  std::string current;
};

/// Calls the function `name`. Fails with a diagnostic at `loc` if there is
/// none, or operands or attributes are not as its signature says.
CallResults callFunction(mlir::OpBuilder &builder, mlir::Location loc,
                         llvm::StringRef name, mlir::ValueRange operands,
                         llvm::ArrayRef<mlir::NamedAttribute> attributes);

/// The same, and every op that it makes gets `tags` ("tandem.stream", ...).
CallResults callFunction(mlir::OpBuilder &builder, mlir::Location loc,
                         llvm::StringRef name, mlir::ValueRange operands,
                         llvm::ArrayRef<mlir::NamedAttribute> attributes,
                         llvm::ArrayRef<mlir::NamedAttribute> tags);

// The families, a file each.
void addActivationFunctions(FunctionTable &table);
void addConvolutionFunctions(FunctionTable &table);
void addPoolingFunctions(FunctionTable &table);
void addArithmeticFunctions(FunctionTable &table);
void addLogicFunctions(FunctionTable &table);
void addMathFunctions(FunctionTable &table);
void addErrorFunctions(FunctionTable &table);
void addReductionFunctions(FunctionTable &table);
/// Products and sums up to each element, of the same family.
void addRunningFunctions(FunctionTable &table);
void addShapeFunctions(FunctionTable &table);
void addPadFunctions(FunctionTable &table);
void addPatchFunctions(FunctionTable &table);
void addDiagonalFunctions(FunctionTable &table);
void addGatherFunctions(FunctionTable &table);
void addScatterFunctions(FunctionTable &table);
void addProductFunctions(FunctionTable &table);
void addEinsumFunctions(FunctionTable &table);
void addOrderFunctions(FunctionTable &table);
void addCreationFunctions(FunctionTable &table);
void addInterpolationFunctions(FunctionTable &table);
void addSamplingFunctions(FunctionTable &table);
void addSignalFunctions(FunctionTable &table);
void addQuantizationFunctions(FunctionTable &table);
void addNormalizationFunctions(FunctionTable &table);
void addLossFunctions(FunctionTable &table);
void addDistanceLossFunctions(FunctionTable &table); ///< losses, too
void addAttentionFunctions(FunctionTable &table);
void addLinearAttentionFunctions(FunctionTable &table); ///< attention, too
void addRecurrentFunctions(FunctionTable &table);
void addRecurrentStackFunctions(FunctionTable &table); ///< recurrent, too
void addRandomFunctions(FunctionTable &table);

} // namespace tandem

#endif
