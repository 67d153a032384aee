//===- FlowBody.cpp - graphs of ONNX that become regions ------------------===//
#include "compiler/import/onnx/FlowBody.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

FailureOr<SmallVector<Value>> onnx::valuesOf(Node &node, ArrayRef<Datum> data) {
  SmallVector<Value> values;
  for (const Datum &datum : data) {
    Value value = node.valueOf(datum);
    if (!value)
      return failure();
    values.push_back(value);
  }
  return values;
}

Value onnx::stackOf(Node &node, ArrayRef<Value> slices) {
  SmallVector<Value> parts;
  for (Value slice : slices) {
    auto type = cast<RankedTensorType>(slice.getType());
    if (type != slices[0].getType()) {
      (void)node.unsupported("iterations that give tensors of other shapes");
      return {};
    }
    SmallVector<int64_t> shape = {1};
    llvm::append_range(shape, type.getShape());
    parts.push_back(node.wrap(slice).reshape(shape));
  }
  if (parts.size() == 1)
    return parts[0];
  return node.make("concat", parts, {node.attr("dim", int64_t(0))});
}

Value onnx::sliceOf(Node &node, Value whole, int64_t i) {
  auto type = cast<RankedTensorType>(whole.getType());
  SmallVector<int64_t> starts(type.getRank(), 0), ends(type.getShape()),
      steps(type.getRank(), 1);
  starts[0] = i;
  ends[0] = i + 1;
  return node
      .wrap(SliceOp::create(node.builder(), node.loc(), whole, starts, ends,
                            steps))
      .reshape(type.getShape().drop_front());
}

Type onnx::stackType(Node &node, Type slice, int64_t length) {
  auto type = cast<RankedTensorType>(slice);
  SmallVector<int64_t> shape = {length};
  llvm::append_range(shape, type.getShape());
  if (isTensorShape(shape))
    return type.clone(shape);
  (void)node.unsupported("a stack of " + Twine(length) + " tensors");
  return {};
}
