//===- JsonGraphFuzz.cpp - any bytes as a JSON graph ----------------------===//
//
// A graph that is accepted verifies, and prints and parses to itself; one that
// is not has a message.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/JsonGraph.h"
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

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // One context for all rounds: it only grows by distinct types and names.
  static mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  Status status;
  auto module = importJsonGraph(
      llvm::StringRef(reinterpret_cast<const char *>(data), size), "graph.json",
      context, status);
  if (!module) {
    // A line for each problem.
    std::string line;
    std::istringstream lines(status.message());
    require(!status.message().empty());
    while (std::getline(lines, line))
      requireMessage(Status::failed(line));
    return 0;
  }
  require(status.ok());
  std::string text = textOf(*module);
  auto again = mlir::parseSourceString<mlir::ModuleOp>(
      text, mlir::ParserConfig(&context));
  require(again && textOf(*again) == text);
  return 0;
}
