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
/// own name. Without a place in a file, the op's path, or the op alone.
std::string whereIs(mlir::Operation *op);

/// A name that may be anything, with '?' in place of control characters.
std::string inOneLine(std::string text);

/// The path of an op: the modules that it was recorded in and its own name, as
/// "h0.attn.matmul", or the name of its node in a file without lines; empty if
/// it has none. It is the first name of the location that is no mark. A
/// gradient has the path of the op whose gradient it is.
llvm::StringRef pathOf(mlir::Location loc);
llvm::StringRef pathOf(mlir::Operation *op);

//===----------------------------------------------------------------------===//
// Marks: names of a location that say what an op is for
//===----------------------------------------------------------------------===//

/// `loc` of an op that computes a gradient of the op `name` there.
mlir::Location gradientOf(llvm::StringRef name, mlir::Location loc);
/// `loc` of the op `name` that the backward runs again.
mlir::Location recomputationOf(llvm::StringRef name, mlir::Location loc);
/// `loc` of an op of an update in a step; `name` is that of the program.
mlir::Location updateBy(llvm::StringRef name, mlir::Location loc);

/// What the marks of a location say.
struct Marks {
  /// Of the outermost one: "backward" of a gradient, "recompute" and "update"
  /// of the others; empty without one.
  llvm::StringRef pass;
  llvm::StringRef gradientOf; ///< the op's name; empty if it is no gradient
  explicit Marks(mlir::Location loc);
};

/// "'input "x"' (argument #0)" and "'output "o"' (result #0)".
std::string nameOfArgument(RoleAttr role, unsigned index);
std::string nameOfResult(RoleAttr role, unsigned index);

} // namespace tandem

#endif
