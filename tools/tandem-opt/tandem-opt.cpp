//===- tandem-opt.cpp - runs single passes on IR, for tests and study -----===//
#include "ir/Dialect.h"
#include "passes/Passes.h"
#include "passes/pipelines/Pipelines.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::registerAllPasses();
  tandem::registerTandemPasses();
  tandem::registerTandemPipelines();
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<tandem::TandemDialect>();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "tandem pass driver\n", registry));
}
