//===- SourceDialect.h - the syntax of StableHLO --------------------------===//
//
// What JAX and others write: text in the form that StableHLO's ops print, and
// MLIR's generic form. No op is registered. An op is read as a table of formats
// says (Syntax.cpp) and stays an op without verifier, whose attributes are
// builtin ones: the translation checks what it uses. Of an attribute
// `#stablehlo.gather<offset_dims = [1], ...>` a dictionary is made, of an
// enumerator `#stablehlo<comparison_direction EQ>` its name as a string.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_STABLEHLO_SOURCEDIALECT_H
#define TANDEM_COMPILER_IMPORT_STABLEHLO_SOURCEDIALECT_H

#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"

namespace tandem::stablehlo {

/// Makes the dialects `stablehlo`, `chlo` and `sdy` known to a context. Of the
/// last, annotations of how devices share the work, the ops `mesh` and
/// `sharding_constraint` and attributes are read; what they say is passed over.
void loadSourceDialects(mlir::MLIRContext &context);

/// Returns the format of an op's own syntax ("stablehlo.iota"); empty if it has
/// none, and is written generically.
llvm::StringRef formatOf(llvm::StringRef op);

/// Reads an op as its format says.
mlir::ParseResult parseByFormat(mlir::OpAsmParser &parser,
                                mlir::OperationState &state);

/// Reads what stands behind `#stablehlo.` or in `#stablehlo<...>`; null, and an
/// error was given, if it is wrong.
mlir::Attribute parseSourceAttribute(mlir::DialectAsmParser &parser);

/// Passes over `<...>`, in which brackets, names and numbers may stand.
mlir::ParseResult skipAngles(mlir::AsmParser &parser);

/// Reads `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`.
mlir::ParseResult parseConvolution(mlir::AsmParser &parser,
                                   mlir::DictionaryAttr &numbers);

} // namespace tandem::stablehlo

#endif
