//===- Import.h - from an exported PyTorch program to a captured module ---===//
#ifndef TANDEM_COMPILER_IMPORT_TORCH_IMPORT_H
#define TANDEM_COMPILER_IMPORT_TORCH_IMPORT_H

#include "compiler/import/Import.h"
#include "compiler/import/torch/Program.h"

namespace tandem::torch {

/// What `options` say of symbolic dimensions, the loss and what is trained is
/// obeyed; parameters that require grad in PyTorch are trained by default.
Import importProgram(const Program &program, const std::string &path,
                     const ImportOptions &options, mlir::MLIRContext &context);

} // namespace tandem::torch

#endif
