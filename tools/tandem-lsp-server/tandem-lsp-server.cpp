//===- tandem-lsp-server.cpp - the dialect in an editor -------------------===//
#include "ir/Dialect.h"

#include "mlir/InitAllDialects.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  registry.insert<tandem::TandemDialect>();
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
