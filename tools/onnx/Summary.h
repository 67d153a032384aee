//===- Summary.h - what is in an ONNX model, as text ----------------------===//
#ifndef TANDEM_TOOLS_ONNX_SUMMARY_H
#define TANDEM_TOOLS_ONNX_SUMMARY_H

#include "compiler/import/onnx/Import.h"

namespace tandem::onnx {

/// What `inspect` prints of a model: first everything that is wrong with it or
/// not supported, one line each; then versions, inputs, outputs, parameters
/// and how often it has each operator.
std::string summaryOf(const Model &model, const Import &import);

} // namespace tandem::onnx

#endif
