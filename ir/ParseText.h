//===- ParseText.h - MLIR's text, which may be malformed ------------------===//
#ifndef TANDEM_IR_PARSETEXT_H
#define TANDEM_IR_PARSETEXT_H

#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/SourceMgr.h"

namespace tandem {

/// Parses the main file of `sources` into `block`, and notes in `parsed` where
/// things stand; nothing is verified. Returns failure where the parser emits an
/// error. In place of mlir::parseAsmSourceFile, which
/// - writes to freed memory at a syntax error behind a region that defines what
///   ops before it use,
/// - goes on behind some errors, without the line that they are in.
llvm::LogicalResult parseText(const llvm::SourceMgr &sources,
                              mlir::Block &block, mlir::AsmParserState &parsed,
                              mlir::MLIRContext &context);

} // namespace tandem

#endif
