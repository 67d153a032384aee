//===- PhaseVerifier.h - the checks that verifiers of phases share --------===//
#ifndef TANDEM_PASSES_VERIFY_PHASEVERIFIER_H
#define TANDEM_PASSES_VERIFY_PHASEVERIFIER_H

#include "ir/Dialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace tandem {

/// The verification of one module. Every error names the phase, and makes
/// result() a failure.
class PhaseVerifier {
public:
  PhaseVerifier(mlir::ModuleOp module, llvm::StringRef phase)
      : module(module), phase(phase) {}

  mlir::InFlightDiagnostic error(mlir::Operation *op);
  mlir::LogicalResult result() const { return mlir::failure(failed); }
  bool hasFailed() const { return failed; }

  mlir::func::FuncOp function(llvm::StringRef name) {
    return module.lookupSymbol<mlir::func::FuncOp>(name);
  }

  /// The functions are `required`, and perhaps `optional`; all have roles.
  void functions(llvm::ArrayRef<llvm::StringRef> required,
                 llvm::ArrayRef<llvm::StringRef> optional);
  /// `func` has a body of one block, and roles; false if not.
  bool hasBody(mlir::func::FuncOp func);
  /// No op has an effect, no value is a ref, every op belongs to the dialect.
  void valuesOnly(mlir::func::FuncOp func);
  /// Nothing says yet what partition will choose.
  void unmarked(mlir::func::FuncOp func);
  /// Nothing has a role of this kind.
  void noneOfKind(mlir::func::FuncOp func, RoleKind kind);
  /// An argument has the type that it has in the function `other`.
  void sameArgument(mlir::func::FuncOp func, unsigned index,
                    mlir::Type expected, llvm::StringRef other);

  mlir::ModuleOp module;
  llvm::StringRef phase;

private:
  bool failed = false;
};

/// The programs of a module from partition on.
extern const llvm::ArrayRef<llvm::StringRef> kProgramNames;

/// Checks the programs of a module at partition or later: what they save and
/// prepare is what others of them take.
void verifyHandedValues(PhaseVerifier &verifier);

/// Checks the programs of a module that is planned or lowered: their names,
/// what they hand to each other, what they say of the same values.
mlir::LogicalResult verifyPrograms(mlir::ModuleOp module,
                                   llvm::StringRef phase);

} // namespace tandem

#endif
