//===- OpsConv.cpp - ONNX: convolutions -----------------------------------===//
#include "compiler/import/onnx/NodeWindows.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

/// The sizes behind batch and channels of operand `i`, which must be a tensor
/// of at least three dimensions.
static FailureOr<ArrayRef<int64_t>> planeOf(Node &node, size_t i,
                                            StringRef what) {
  RankedTensorType type = node.type(i);
  if (!type)
    return node.error("expected " + what + " to be a dense tensor");
  if (type.getRank() < 3)
    return node.error("expected " + what +
                      " to have at least 3 dimensions, but got " +
                      Twine(type.getRank()));
  return type.getShape().drop_front(2);
}

static LogicalResult translateConv(Node &node) {
  auto input = planeOf(node, 0, "the input");
  auto kernel = planeOf(node, 1, "the filter");
  if (failed(input) || failed(kernel))
    return failure();
  if (input->size() != kernel->size())
    return node.error("expected an input and a filter of one rank");
  auto windows = NodeWindows::get(node, *input, *kernel);
  if (failed(windows))
    return failure();
  auto attributes = windows->attributes(node, false);
  attributes.push_back(node.attr("groups", node.integer("group", 1)));
  node.result(0, node.call("conv",
                           {node.operand(0), node.operand(1), node.operand(2)},
                           attributes));
  return success();
}

static LogicalResult translateConvTranspose(Node &node) {
  auto input = planeOf(node, 0, "the input");
  auto kernel = planeOf(node, 1, "the filter");
  if (failed(input) || failed(kernel))
    return failure();
  size_t count = input->size();
  if (count != kernel->size())
    return node.error("expected an input and a filter of one rank");
  auto windows = NodeWindows::get(node, *input, *kernel);
  if (failed(windows))
    return failure();
  SmallVector<int64_t> more = node.integers("output_padding");
  SmallVector<int64_t> shape = node.integers("output_shape");
  if (more.empty())
    more.assign(count, 0);
  if (shape.size() == count + 2) // with batch and channels, as some write it
    shape.erase(shape.begin(), shape.begin() + 2);
  bool isSame = StringRef(windows->autoPad).starts_with("SAME");
  if (more.size() != count || (!shape.empty() && shape.size() != count))
    return node.error("expected 'output_padding' and 'output_shape' to have " +
                      Twine(count) + " entries");
  if (isSame && shape.empty())
    for (size_t d = 0; d < count; ++d)
      shape.push_back((*input)[d] * windows->strides[d]);
  // What an output shape leaves over is padding; below 0, zeros at the end.
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 1 || shape[d] >= int64_t(1) << 31 || more[d] < 0 ||
        more[d] >= int64_t(1) << 31)
      return node.error("expected 'output_shape' to be at least 1");
    int64_t total = windows->strides[d] * ((*input)[d] - 1) + more[d] +
                    (windows->kernel[d] - 1) * windows->dilations[d] + 1 -
                    shape[d];
    // Unlike convolutions, SAME_UPPER alone pads the end more.
    int64_t less = std::max<int64_t>(total, 0) / 2;
    int64_t rest = std::max<int64_t>(total, 0) - less;
    bool isUpper = windows->autoPad == "SAME_UPPER";
    windows->padding[2 * d] = isUpper ? less : rest;
    windows->padding[2 * d + 1] =
        (isUpper ? rest : less) + std::min<int64_t>(total, 0);
  }
  auto attributes = windows->attributes(node, false);
  attributes.push_back(node.attr("groups", node.integer("group", 1)));
  attributes.push_back(node.attr("output_padding", ArrayRef<int64_t>(more)));
  node.result(0, node.call("conv_transpose",
                           {node.operand(0), node.operand(1), node.operand(2)},
                           attributes));
  return success();
}

void onnx::addConvOps(OpTable &table) {
  table.add("Conv", translateConv);
  table.add("ConvTranspose", translateConvTranspose);
}
