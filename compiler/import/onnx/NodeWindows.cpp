//===- NodeWindows.cpp - the windows of ONNX's convolutions and pools -----===//
#include "compiler/import/onnx/NodeWindows.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

/// The attribute `name` with `count` entries in [least, 2^31).
static FailureOr<SmallVector<int64_t>> entries(Node &node, StringRef name,
                                               size_t count, int64_t otherwise,
                                               int64_t least) {
  SmallVector<int64_t> list = node.integers(name);
  if (list.empty())
    return SmallVector<int64_t>(count, otherwise);
  if (list.size() != count)
    return node.error("expected '" + name + "' to have " + Twine(count) +
                      " entries, but got " + Twine(list.size()));
  for (int64_t entry : list)
    if (entry < least || entry >= int64_t(1) << 31)
      return node.error("expected '" + name + "' to be at least " +
                        Twine(least) + ", but got " + Twine(entry));
  return list;
}

void NodeWindows::setPadding(size_t d, int64_t total) {
  int64_t less = total / 2, more = total - less;
  padding[2 * d] = autoPad == "SAME_LOWER" ? more : less;
  padding[2 * d + 1] = autoPad == "SAME_LOWER" ? less : more;
}

FailureOr<NodeWindows> NodeWindows::get(Node &node, ArrayRef<int64_t> input,
                                        ArrayRef<int64_t> kernel) {
  size_t count = input.size();
  if (count < 1 || count > 3)
    return node.unsupported("windows over " + Twine(count) + " dimensions");
  auto kernels = entries(node, "kernel_shape", count, 0, 1);
  auto strides = entries(node, "strides", count, 1, 1);
  auto dilations = entries(node, "dilations", count, 1, 1);
  auto pads = entries(node, "pads", 2 * count, 0, 0);
  NodeWindows windows;
  windows.autoPad =
      node.choice("auto_pad", {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"});
  if (mlir::failed(kernels) || mlir::failed(strides) ||
      mlir::failed(dilations) || mlir::failed(pads))
    return failure();
  if (!kernel.empty()) {
    if (node.hasAttribute("kernel_shape") && ArrayRef(*kernels) != kernel)
      return node.error("expected 'kernel_shape' to be that of the filter");
    kernels->assign(kernel.begin(), kernel.end());
  }
  if (llvm::is_contained(*kernels, 0))
    return node.error("expected an attribute 'kernel_shape'");
  windows.kernel = *kernels;
  windows.strides = *strides;
  windows.dilations = *dilations;
  windows.padding.assign(2 * count, 0);
  for (size_t d = 0; d < count; ++d) {
    if (windows.autoPad == "NOTSET") {
      windows.padding[2 * d] = (*pads)[d];
      windows.padding[2 * d + 1] = (*pads)[count + d];
    } else if (windows.autoPad != "VALID") {
      int64_t size = (input[d] + (*strides)[d] - 1) / (*strides)[d];
      int64_t span = ((*kernels)[d] - 1) * (*dilations)[d] + 1;
      windows.setPadding(d, std::max<int64_t>(0, (size - 1) * (*strides)[d] +
                                                     span - input[d]));
    }
  }
  return windows;
}

SmallVector<NamedAttribute> NodeWindows::attributes(Node &node,
                                                    bool withKernel) const {
  SmallVector<NamedAttribute> list = {
      node.attr("strides", ArrayRef<int64_t>(strides)),
      node.attr("padding", ArrayRef<int64_t>(padding)),
      node.attr("dilation", ArrayRef<int64_t>(dilations))};
  if (withKernel)
    list.push_back(node.attr("kernel", ArrayRef<int64_t>(kernel)));
  return list;
}
