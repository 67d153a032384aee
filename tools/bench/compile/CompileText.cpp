//===- CompileText.cpp ----------------------------------------------------===//
#include "tools/bench/compile/CompileText.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

using namespace tandem;
using namespace tandem::bench;

Result<Artifact> bench::compileText(const std::string &text,
                                    const CompileOptions &options) {
  mlir::DialectRegistry registry;
  registerCompiler(registry);
  mlir::MLIRContext context(registry);
  std::string said;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &d) {
    if (d.getSeverity() == mlir::DiagnosticSeverity::Error)
      said += (said.empty() ? "" : "; ") + d.str();
    return mlir::success();
  });
  auto failed = [&](const Status &status) {
    if (status.message().empty())
      return Status::failed(said);
    return Status(status.code(),
                  status.message() + (said.empty() ? "" : ": " + said));
  };
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    return failed(Status::failed(""));
  std::vector<PhaseTime> times;
  if (Status status = runPhases(*module, options, times); !status)
    return failed(status);
  auto writer = emitArtifact(*module, options, times);
  if (!writer)
    return failed(writer.status());
  return writer->bytes();
}

Result<artifact::ArtifactReader> bench::read(const Artifact &bytes) {
  return artifact::ArtifactReader::fromMemory(std::as_bytes(std::span(bytes)));
}
