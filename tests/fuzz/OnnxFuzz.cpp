//===- OnnxFuzz.cpp - any bytes as an ONNX model --------------------------===//
//
// ImportFuzz.h says what holds of what comes of them.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/onnx/Import.h"
#include "compiler/import/onnx/OnnxFile.h"
#include "tests/fuzz/ImportFuzz.h"

using namespace tandem;
using namespace tandem::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto model = onnx::parseModel(
      std::string_view(reinterpret_cast<const char *>(data), size), "");
  if (!model) {
    requireMessages(model.status());
    return 0;
  }
  onnx::ImportOptions options;
  options.loss = size % 2 ? "mse:y,labels" : "";
  onnx::Import made = onnx::importModel(*model, "model.onnx", options, context);
  requireImport(made);
  return 0;
}
