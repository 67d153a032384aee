//===- NodeWindows.h - the windows of ONNX's convolutions and pools -------===//
//
// From ONNX's attributes (kernel_shape, strides, dilations, pads, auto_pad) to
// those of compiler/functions/Windows.h. All are optional in ONNX, and pads has
// all beginnings before all ends.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_ONNX_NODEWINDOWS_H
#define TANDEM_COMPILER_IMPORT_ONNX_NODEWINDOWS_H

#include "compiler/import/onnx/Translator.h"

namespace tandem::onnx {

struct NodeWindows {
  llvm::SmallVector<int64_t> kernel, strides, dilations;
  llvm::SmallVector<int64_t> padding; ///< before and after, by dimension
  std::string autoPad;                ///< "NOTSET", "VALID", "SAME_..."

  /// Reads the attributes; every list has an entry for each size of `input`
  /// (two in `padding`). `kernel`: where it follows from an operand.
  static mlir::FailureOr<NodeWindows> get(Node &node,
                                          llvm::ArrayRef<int64_t> input,
                                          llvm::ArrayRef<int64_t> kernel = {});

  /// Sets the padding with which `size` positions are padded by `total`.
  void setPadding(size_t d, int64_t total);
  /// The attributes of a function of pooling or (without `kernel`)
  /// convolution.
  llvm::SmallVector<mlir::NamedAttribute> attributes(Node &node,
                                                     bool withKernel) const;
};

} // namespace tandem::onnx

#endif
