//===- DialectFuzz.h - a text through the phases, as a file would go ------===//
#ifndef TANDEM_TESTS_FUZZ_DIALECTFUZZ_H
#define TANDEM_TESTS_FUZZ_DIALECTFUZZ_H

#include "compiler/Compile.h"
#include "tests/fuzz/Decisions.h"
#include "tests/fuzz/ImportFuzz.h"
#include "tests/support/Folder.h"

#include <filesystem>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace tandem::fuzz {

/// A file `m.mlir` in memory.
class ModelFile {
public:
  ModelFile() : memory(::memfd_create("m", MFD_CLOEXEC)) {
    require(memory >= 0);
    std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(memory),
                                    path());
  }
  ModelFile(const ModelFile &) = delete;

  void write(std::string_view text) {
    require(::ftruncate(memory, 0) == 0 &&
            ::pwrite(memory, text.data(), text.size(), 0) ==
                ssize_t(text.size()));
  }
  std::string path() const { return folder / "m.mlir"; }

private:
  int memory;
  test::Folder folder;
};

/// What may be asked of a compilation that has an effect on many modules.
inline CompileOptions optionsFrom(Decisions &next) {
  CompileOptions options;
  options.target = "cpu:x86-64-v3";
  options.threads = 1;
  options.stopAfter = "lower";
  options.kernelCache = "off";
  switch (next.below(12)) {
  case 0:
    options.inference = true;
    break;
  case 1:
    options.optimizer = "adamw:lr=0.1";
    break;
  case 2:
    options.memoryBudget = "0";
    break;
  case 3:
    options.amp = "bf16";
    break;
  case 4:
    options.partition = "default";
    break;
  case 5:
    options.target = "cuda:sm_80";
    break;
  case 6:
    options.order = 2;
    break;
  default:
    break;
  }
  return options;
}

/// Reads the text and runs the phases that it has not been through. What ends
/// before the last one has a message.
inline void compileText(std::string_view text, const CompileOptions &options) {
  static ModelFile file;
  static const mlir::DialectRegistry registry = [] {
    mlir::DialectRegistry made;
    registerCompiler(made);
    return made;
  }();
  file.write(text);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  int errors = 0;
  mlir::ScopedDiagnosticHandler handler(
      &context, [&](mlir::Diagnostic &diagnostic) {
        errors += diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
        // What is wrong is printed, too.
        (void)diagnostic.str();
        return mlir::success();
      });
  Status status;
  auto module = readModel(file.path(), context, status);
  if (!module) {
    require(!status.ok() && !status.message().empty());
    return;
  }
  std::vector<PhaseTime> times;
  auto made = runTargets(std::move(module), options, times);
  if (!made) {
    require(!made.status().message().empty());
    return;
  }
  require(errors == 0);
  for (auto &one : *made)
    requireModule(*one);
}

} // namespace tandem::fuzz

#endif
