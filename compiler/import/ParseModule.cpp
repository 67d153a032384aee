//===- ParseModule.cpp - a module from a file that may be malformed -------===//
#include "compiler/import/ParseModule.h"

#include "ir/ParseText.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SaveAndRestore.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/SourceMgr.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>

using namespace mlir;
using namespace tandem;

using Module = OwningOpRef<ModuleOp>;

static Module moduleOf(const llvm::SourceMgr &sources, Location at) {
  Block block;
  AsmParserState parsed;
  if (failed(parseText(sources, block, parsed, *at.getContext())))
    return {};
  Module module =
      mlir::detail::constructContainerOpForParserIfNecessary<ModuleOp>(
          &block, at.getContext(), at);
  return module && succeeded(verify(*module)) ? std::move(module) : Module();
}

/// The handler is one for the process: others may compile meanwhile.
static thread_local bool readsBytecode = false;

static void endAtFatalError(void *path, const char *reason, bool) {
  if (readsBytecode)
    std::fprintf(stderr, "tandem: error: '%s': malformed bytecode (%s)\n",
                 static_cast<const std::string *>(path)->c_str(), reason);
  else
    std::fprintf(stderr, "tandem: error: %s\n", reason);
  llvm::sys::RunInterruptHandlers(); // removes files that are half written
  std::_Exit(1);
}

Module tandem::parseModule(StringRef text, const std::string &path,
                           MLIRContext &context) {
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(text, path);
  bool isBytecode = mlir::isBytecode(buffer->getMemBufferRef());
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  if (!isBytecode)
    return moduleOf(sources, FileLineColLoc::get(&context, path, 0, 0));
  static std::mutex readers;
  std::lock_guard lock(readers);
  llvm::ScopedFatalErrorHandler handler(endAtFatalError,
                                        const_cast<std::string *>(&path));
  llvm::SaveAndRestore reads(readsBytecode, true);
  return parseSourceFile<ModuleOp>(sources, &context);
}
