// The compiler as a library: compiles IN.mlir OUT.tdm
#include "compiler/Compile.h"

#include "mlir/IR/MLIRContext.h"

#include <cstdio>

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  mlir::DialectRegistry registry;
  tandem::registerCompiler(registry);
  mlir::MLIRContext context(registry);
  tandem::CompileOptions options;
  options.optimizer = "sgd:lr=0.1";
  tandem::Status status;
  auto module = tandem::readModel(argv[1], context, status);
  if (!module)
    return 1;
  std::vector<tandem::PhaseTime> times;
  auto modules = tandem::runTargets(std::move(module), options, times);
  if (!modules) {
    std::fprintf(stderr, "%s\n", modules.status().message().c_str());
    return 1;
  }
  auto writer = tandem::emitTargets(*modules, options, times);
  if (writer)
    status = writer->write(argv[2]);
  else
    status = writer.status();
  if (!status)
    std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.exitCode();
}
