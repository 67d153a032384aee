//===- ParseText.cpp - MLIR's text, which may be malformed ----------------===//
#include "ir/ParseText.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"

using namespace mlir;

/// MLIR's parser deletes a region when a syntax error follows it, though ops
/// before it may use what it defines, by a name that was not yet known. So the
/// first error takes the operands of all ops that were parsed.
///
/// What it says is an error is one, whatever it returns: behind a type of a
/// dialect it lexes the next word twice, says that a string has no end, and
/// goes on with the line behind it, as if this one were not there.
LogicalResult tandem::parseText(const llvm::SourceMgr &sources, Block &block,
                                AsmParserState &parsed, MLIRContext &context) {
  bool isFirst = true;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (isFirst && diagnostic.getSeverity() == DiagnosticSeverity::Error) {
      isFirst = false;
      for (auto &definition : parsed.getOpDefs())
        definition.op->dropAllReferences();
    }
    return failure(); // others show it
  });
  // Verified later: then an error leaves the ops as they are.
  ParserConfig config(&context, /*verifyAfterParse=*/false);
  return success(
      succeeded(parseAsmSourceFile(sources, &block, config, &parsed)) &&
      isFirst);
}
