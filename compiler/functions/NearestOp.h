//===- NearestOp.h - which op a model that names none may mean ------------===//
#ifndef TANDEM_COMPILER_FUNCTIONS_NEARESTOP_H
#define TANDEM_COMPILER_FUNCTIONS_NEARESTOP_H

#include "mlir/IR/MLIRContext.h"

#include <string>

namespace tandem {

/// True for an op that only phases make ("kernel"), and no model.
bool isOpOfPhases(llvm::StringRef name);

/// To end a message about the unknown op `name` with: " (did you mean
/// 'take'?)", from the names that PyTorch gives to what is called otherwise
/// here, or from how names are spelt. Empty if nothing is near.
/// `withFunctions`: functions can be called, too (in .mlir there are ops
/// alone).
std::string suggestOp(mlir::MLIRContext *context, llvm::StringRef name,
                      bool withFunctions);

} // namespace tandem

#endif
