//===- StablehloFuzz.cpp - any bytes as a module of StableHLO -------------===//
//
// A module that is accepted verifies, and prints and parses to itself; one that
// is not has a message, and what is wrong was said.
//
//===----------------------------------------------------------------------===//
#include "compiler/Nesting.h"
#include "compiler/import/stablehlo/Exported.h"
#include "compiler/import/stablehlo/Import.h"
#include "compiler/import/stablehlo/Portable.h"
#include "tests/fuzz/ImportFuzz.h"

using namespace tandem;
using namespace tandem::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  int errors = 0;
  mlir::ScopedDiagnosticHandler handler(
      &context, [&](mlir::Diagnostic &diagnostic) {
        errors += diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
        return mlir::success();
      });
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  if (auto exported = stablehlo::readExported(text)) {
    require(stablehlo::isBytecode(exported->module));
    text = exported->module;
  } else {
    requireMessage(exported.status());
  }
  Status status = checkNesting(text, "small.mlir");
  (void)stablehlo::isModule(text);
  if (!status) {
    requireMessage(status);
    return 0;
  }
  ImportOptions options;
  options.loss = size % 2 ? "mse:result,labels" : "";
  auto module =
      stablehlo::importModule(text, "small.mlir", context, status, options);
  if (!module) {
    require(!status.ok() && !status.message().empty());
    require(errors || status.code() == Code::Usage);
    return 0;
  }
  require(status.ok() && errors == 0);
  requireModule(*module);
  return 0;
}
