//===- Where.h - what messages call ops, arguments and results ------------===//
#ifndef TANDEM_IR_WHERE_H
#define TANDEM_IR_WHERE_H

#include "ir/Dialect.h"

#include <string>

namespace tandem {

/// "model.mlir:7:5" if `loc` is a place in a file and no more. Of files without
/// lines, whose places have column 0: "cnn.onnx, node 12 'conv1' (Conv)",
/// "cnn.onnx, 'x'" or "cnn.onnx". Empty for other locations, as for names of
/// places.
std::string placeOf(mlir::Location loc, bool withFolders = true);

/// The location of a node, its name, kind and number (from 1; 0: none), or of
/// something else with a name (`kind` empty), in a file without lines.
mlir::Location placeWithoutLine(llvm::StringRef file, llvm::StringRef name,
                                llvm::StringRef kind, unsigned number,
                                mlir::MLIRContext *context);

/// "'tandem.write' at model.mlir:7:5": the file without its folders, so that
/// the text is the same wherever the model lies. Behind a custom_vjp stands its
/// own name. Without a place in a file, the name of the location, or the op
/// alone.
std::string whereIs(mlir::Operation *op);

/// A name that may be anything, with '?' in place of control characters.
std::string inOneLine(std::string text);

/// The path of an op: the name of its location, which is the modules that it
/// was recorded in and its own name, as "h0.attn.matmul"; empty if it has none.
llvm::StringRef pathOf(mlir::Operation *op);

/// "'input "x"' (argument #0)" and "'output "o"' (result #0)".
std::string nameOfArgument(RoleAttr role, unsigned index);
std::string nameOfResult(RoleAttr role, unsigned index);

} // namespace tandem

#endif
