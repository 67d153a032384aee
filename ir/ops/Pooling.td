//===- Pooling.td - pooling over windows -----------------------------------===//
//
// Over the last two dimensions of [N, C, H, W]. Maximum pooling remembers where
// its maxima were, so that its gradients only move numbers.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_OPS_POOLING
#define TANDEM_IR_OPS_POOLING

include "ir/OpBase.td"
include "ir/Attributes.td"

class WindowOp<string mnemonic, list<Trait> traits = []>
    : Tandem_PureOp<mnemonic, !listconcat(traits, [
        InferTypeOpAdaptor,
        DeclareOpInterfaceMethods<DifferentiableOpInterface>,
        DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>,
        DeclareOpInterfaceMethods<ReferenceOpInterface>])> {
  let extraClassDefinition = [{
    ::tandem::OpClass $cppClass::getOpClass() { return ::tandem::OpClass::Window; }
  }];
  string windowMethod = [{
    /// The windows, of an op that is verified.
    ::tandem::Window2d getWindow();
  }];
}

def MaxPool2dOp : WindowOp<"max_pool2d"> {
  let summary = "The maximum of each window, and where it was";
  let description = [{
    `index[n, c, oh, ow]` is the position `h * W + w` of the maximum in the plane
    of the input: the first of equal ones in row-major order; the first NaN if
    there is one. Padding takes no part: a window that sees only padding gives
    -inf and index -1. `padding` is `[top, bottom, left, right]`, at most half of
    the dilated kernel.

    Gradient: max_pool2d_grad; none through `index`.
  }];
  let arguments = (ins FloatTensor:$x, DenseI64ArrayAttr:$kernel,
    Tandem_Default<DenseI64ArrayAttr, "{1, 1}", "[1, 1]">:$strides,
    Tandem_Default<DenseI64ArrayAttr, "{0, 0, 0, 0}", "[0, 0, 0, 0]">:$padding,
    Tandem_Default<DenseI64ArrayAttr, "{1, 1}", "[1, 1]">:$dilation);
  let results = (outs FloatTensor:$y, Tandem_Tensor<[I32], "32-bit integers">:$index);
  let assemblyFormat = [{$x `kernel` $kernel (`strides` $strides^)? (`padding` $padding^)?
    (`dilation` $dilation^)? attr-dict `:` type($x) `->` type($y) `,` type($index)}];
  let extraClassDeclaration = windowMethod;
}

def MaxPool2dGradOp : WindowOp<"max_pool2d_grad"> {
  let summary = "Adds each element to the input element that its index names";
  let description = [{
    The adjoint of max_pool2d_take: `dx[n, c, index[n, c, oh, ow]] += dy[n, c, oh,
    ow]`, in row-major order of dy. `shape` is `[N, C, H, W]`. An index outside of
    the plane is ignored. Gradient for dy: max_pool2d_take.
  }];
  let arguments = (ins FloatTensor:$dy, Tandem_Tensor<[I32], "32-bit integers">:$index, DenseI64ArrayAttr:$shape);
  let results = (outs FloatTensor:$dx);
  let assemblyFormat = "$dy `,` $index `to` $shape attr-dict `:` type($dy) `,` type($index) `->` type($dx)";
}

def MaxPool2dTakeOp : WindowOp<"max_pool2d_take"> {
  let summary = "Takes from each plane the elements that an index names";
  let description = [{
    `y[n, c, oh, ow] = x[n, c, index[n, c, oh, ow]]`; 0 where the index is outside
    of the plane. Gradient for x: max_pool2d_grad.
  }];
  let arguments = (ins FloatTensor:$x, Tandem_Tensor<[I32], "32-bit integers">:$index);
  let results = (outs FloatTensor:$y);
  let assemblyFormat = "$x `,` $index attr-dict `:` type($x) `,` type($index) `->` type($y)";
}

/// What avg_pool2d and its gradient share.
class AvgPoolOp<string mnemonic, dag operands, string before> : WindowOp<mnemonic> {
  let arguments = !con(operands,
    (ins DenseI64ArrayAttr:$kernel,
         Tandem_Default<DenseI64ArrayAttr, "{1, 1}", "[1, 1]">:$strides,
         Tandem_Default<DenseI64ArrayAttr, "{0, 0, 0, 0}", "[0, 0, 0, 0]">:$padding,
         Tandem_Default<BoolAttr, "true">:$count_include_pad));
  let results = (outs FloatTensor:$y);
  let assemblyFormat = before # [{ `kernel` $kernel (`strides` $strides^)?
    (`padding` $padding^)? attr-dict `:` type(operands) `->` type($y)}];
  let extraClassDeclaration = windowMethod # [{
    /// What the sum of window (oh, ow) is divided by.
    double getDivisor(int64_t oh, int64_t ow);
  }];
}

def AvgPool2dOp : AvgPoolOp<"avg_pool2d", (ins FloatTensor:$x), "$x"> {
  let summary = "The mean of each window";
  let description = [{
    Padding counts as zeros; with `count_include_pad = false` the sum is divided
    by the number of elements inside of the input instead of the window's.
    `padding` is `[top, bottom, left, right]`, at most half of the kernel.
    Gradient: avg_pool2d_grad.
  }];
}

def AvgPool2dGradOp : AvgPoolOp<"avg_pool2d_grad", (ins FloatTensor:$dy, DenseI64ArrayAttr:$shape), "$dy `to` $shape"> {
  let summary = "The gradient of avg_pool2d";
  let description = [{
    The adjoint of avg_pool2d, whose input has `shape`: each element of dy,
    divided as there, is added to all elements of its window. Gradient:
    avg_pool2d.
  }];
}

#endif
