//===- Import.h - from an ONNX model to a captured module -----------------===//
//
// The way in for ONNX: plain data (OnnxFile.h) and what the user says about it
// become a module of phase `capture`, and the initial values of its parameters
// and states. What is wrong or not supported is listed completely.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_ONNX_IMPORT_H
#define TANDEM_COMPILER_IMPORT_ONNX_IMPORT_H

#include "compiler/import/Import.h"
#include "compiler/import/onnx/Graph.h"

namespace tandem::onnx {

using tandem::Import;
using tandem::ImportOptions;
using Problem = ImportProblem;

Import importModel(const Model &model, const std::string &path,
                   const ImportOptions &options, mlir::MLIRContext &context);

} // namespace tandem::onnx

#endif
