//===- ImportFuzz.h - what every importer promises of any bytes -----------===//
//
// A model that is accepted verifies, and prints and parses to itself; one that
// is not has a message of lines.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_FUZZ_IMPORTFUZZ_H
#define TANDEM_TESTS_FUZZ_IMPORTFUZZ_H

#include "compiler/import/Import.h"
#include "tests/fuzz/Fuzz.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <sstream>

namespace tandem::fuzz {

inline std::string textOf(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

inline void requireMessages(const Status &status) {
  require(!status.ok() && !status.message().empty());
  std::string line;
  std::istringstream lines(status.message());
  while (std::getline(lines, line))
    requireMessage(Status::failed(line));
}

/// It prints and parses to itself.
inline void requireModule(mlir::ModuleOp module) {
  std::string text = textOf(module);
  auto again = mlir::parseSourceString<mlir::ModuleOp>(
      text, mlir::ParserConfig(module.getContext()));
  require(again && textOf(*again) == text);
}

inline void requireImport(const Import &made) {
  if (!made.module)
    return requireMessages(made.status());
  require(made.problems.empty());
  requireModule(*made.module);
}

} // namespace tandem::fuzz

#endif
