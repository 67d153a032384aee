//===- ParseModule.cpp - a module from a file that may be malformed -------===//
#include "compiler/import/ParseModule.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
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

/// MLIR's parser deletes a region when a syntax error follows it, though ops
/// before it may use what it defines, by a name that was not yet known. So the
/// first error takes the operands of all ops that were parsed.
///
/// What it says is an error is one, whatever it returns: behind a type of a
/// dialect it lexes the next word twice, says that a string has no end, and
/// goes on with the line behind it, as if this one were not there.
static Module parseText(const llvm::SourceMgr &sources, Location at) {
  MLIRContext *context = at.getContext();
  Block block;
  AsmParserState parsed;
  {
    bool isFirst = true;
    ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
      if (isFirst && diagnostic.getSeverity() == DiagnosticSeverity::Error) {
        isFirst = false;
        for (auto &definition : parsed.getOpDefs())
          definition.op->dropAllReferences();
      }
      return failure(); // others show it
    });
    // Verified later: then an error leaves the ops as they are.
    ParserConfig config(context, /*verifyAfterParse=*/false);
    if (failed(parseAsmSourceFile(sources, &block, config, &parsed)) ||
        !isFirst)
      return {};
  }
  Module module =
      mlir::detail::constructContainerOpForParserIfNecessary<ModuleOp>(
          &block, context, at);
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
    return parseText(sources, FileLineColLoc::get(&context, path, 0, 0));
  static std::mutex readers;
  std::lock_guard lock(readers);
  llvm::ScopedFatalErrorHandler handler(endAtFatalError,
                                        const_cast<std::string *>(&path));
  llvm::SaveAndRestore reads(readsBytecode, true);
  return parseSourceFile<ModuleOp>(sources, &context);
}
