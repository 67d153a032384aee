//===- TorchFuzz.cpp - any bytes as the JSON of an exported program -------===//
//
// Its weights are those of no archive; ImportFuzz.h says what holds.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/torch/Archive.h"
#include "compiler/import/torch/Import.h"
#include "tests/fuzz/ImportFuzz.h"

using namespace tandem;
using namespace tandem::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto program = torch::readProgram(
      std::string_view(reinterpret_cast<const char *>(data), size), "m.pt2");
  if (!program) {
    requireMessages(program.status());
    return 0;
  }
  for (const torch::InputSpec &input : program->inputs)
    program->unread[input.target] = "is not here";
  ImportOptions options;
  options.loss = size % 2 ? "mse:loss,labels" : "";
  Import made = torch::importProgram(*program, "m.pt2", options, context);
  requireImport(made);
  return 0;
}
