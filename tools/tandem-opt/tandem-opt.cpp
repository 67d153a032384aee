//===- tandem-opt.cpp - runs single passes on IR, for tests and study -----===//
//
// MLIR's mlir-opt with Tandem's dialect and passes. It reads a text by a
// function that malformed ones crash (ir/ParseText.h), so the text is looked at
// first; what has syntax errors gets no further. With -verify-diagnostics it is
// MLIR that reads it, because the errors are what is asked for.
//
//===----------------------------------------------------------------------===//
#include "ir/Dialect.h"
#include "ir/ParseText.h"
#include "passes/RegisterPasses.h"
#include "passes/pipelines/Pipelines.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/ToolUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/ToolOutputFile.h"

#include <cstdio>
#include <cstdlib>

using namespace mlir;

namespace {

/// Shows the syntax errors of a text; with a marker between texts, of each.
LogicalResult checkText(const llvm::MemoryBuffer &file,
                        const MlirOptMainConfig &config,
                        const DialectRegistry &registry) {
  auto check = [&](std::unique_ptr<llvm::MemoryBuffer> text,
                   llvm::raw_ostream &) {
    MLIRContext context(registry, MLIRContext::Threading::DISABLED);
    context.allowUnregisteredDialects(config.shouldAllowUnregisteredDialects());
    llvm::SourceMgr sources;
    sources.AddNewSourceBuffer(std::move(text), SMLoc());
    SourceMgrDiagnosticHandler shown(sources, &context);
    Block block;
    AsmParserState parsed;
    return tandem::parseText(sources, block, parsed, context);
  };
  return splitAndProcessBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(file.getBuffer(),
                                           file.getBufferIdentifier()),
      check, llvm::nulls(), config.inputSplitMarker());
}

/// MLIR's reader of bytecode does not return from a count that no memory holds.
void endAtFatalError(void *, const char *reason, bool) {
  std::fprintf(stderr, "tandem-opt: error: malformed bytecode (%s)\n", reason);
  std::_Exit(1);
}

LogicalResult run(int argc, char **argv, DialectRegistry &registry) {
  llvm::InitLLVM init(argc, argv);
  auto [from, to] =
      registerAndParseCLIOptions(argc, argv, "tandem pass driver\n", registry);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return MlirOptMain(argc, argv, from, to, registry);
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(from, &error);
  std::unique_ptr<llvm::ToolOutputFile> out;
  if (file)
    out = openOutputFile(to, &error);
  if (!out) {
    llvm::errs() << error << "\n";
    return failure();
  }
  if (isBytecode(file->getMemBufferRef()))
    llvm::install_fatal_error_handler(endAtFatalError);
  else if (!config.shouldVerifyDiagnostics() &&
           failed(checkText(*file, config, registry)))
    return failure();
  if (failed(MlirOptMain(out->os(), std::move(file), registry, config)))
    return failure();
  out->keep();
  return success();
}

} // namespace

int main(int argc, char **argv) {
  mlir::registerAllPasses();
  tandem::registerTandemPasses();
  tandem::registerTandemPipelines();
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<tandem::TandemDialect>();
  return mlir::asMainReturnCode(run(argc, argv, registry));
}
