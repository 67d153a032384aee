//===- TorchFuzz.cpp - any bytes as the JSON of an exported program -------===//
//
// A program that is accepted verifies, and prints and parses to itself; one
// that is not has a message of lines. Its weights are those of no archive.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/torch/Archive.h"
#include "compiler/import/torch/Import.h"
#include "tests/fuzz/Fuzz.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <sstream>

using namespace tandem;
using namespace tandem::fuzz;

static std::string textOf(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

static void requireMessages(const Status &status) {
  require(!status.ok() && !status.message().empty());
  std::string line;
  std::istringstream lines(status.message());
  while (std::getline(lines, line))
    requireMessage(Status::failed(line));
}

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
  if (!made.module) {
    requireMessages(made.status());
    return 0;
  }
  require(made.problems.empty());
  std::string text = textOf(*made.module);
  auto again = mlir::parseSourceString<mlir::ModuleOp>(
      text, mlir::ParserConfig(&context));
  require(again && textOf(*again) == text);
  return 0;
}
