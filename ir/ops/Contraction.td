//===- Contraction.td - matrix products and convolutions -------------------===//
#ifndef TANDEM_IR_OPS_CONTRACTION
#define TANDEM_IR_OPS_CONTRACTION

include "ir/OpBase.td"
include "ir/Attributes.td"

class ContractionOp<string mnemonic, list<Trait> traits = []>
    : Tandem_PureOp<mnemonic, !listconcat(traits, [
        InferTypeOpAdaptor, AutocastLow,
        DeclareOpInterfaceMethods<DifferentiableOpInterface>,
        DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>,
        DeclareOpInterfaceMethods<ReferenceOpInterface>])> {
  let extraClassDefinition = [{
    ::tandem::OpClass $cppClass::getOpClass() { return ::tandem::OpClass::Contraction; }
  }];
}

def MatmulOp : ContractionOp<"matmul"> {
  let summary = "A matrix product, batched over equal leading dimensions";
  let description = [{
    `y[..., m, n] = sum over k of lhs[..., m, k] * rhs[..., k, n]`; with
    `transpose_lhs` the lhs is `[..., k, m]`, with `transpose_rhs` the rhs is
    `[..., n, k]`. Leading dimensions are equal (broadcast explicitly). f16 and
    bf16 are accumulated in f32. With `precision = "tf32"` factors of f32 may be
    rounded to 10 bits of fraction, with "f32" they are not; absent, the
    compilation's option `--matmul-precision` says it. Gradients keep it.
  }];
  let arguments = (ins FloatTensor:$lhs, FloatTensor:$rhs, UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs,
                       OptionalAttr<StrAttr>:$precision);
  let results = (outs FloatTensor:$y);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($y)";
  let hasCanonicalizer = 1;
}

/// What the three convolutions share. x is [N, C, H, W], w is [O, C / groups,
/// KH, KW], y is [N, O, OH, OW].
class ConvolutionOp<string mnemonic, dag operands, dag shape, string before>
    : ContractionOp<mnemonic> {
  let arguments = !con(operands, shape,
    (ins Tandem_Default<DenseI64ArrayAttr, "{1, 1}", "[1, 1]">:$strides,
         Tandem_Default<DenseI64ArrayAttr, "{0, 0, 0, 0}", "[0, 0, 0, 0]">:$padding,
         Tandem_Default<DenseI64ArrayAttr, "{1, 1}", "[1, 1]">:$dilation,
         Tandem_Default<I64Attr, "1">:$groups, OptionalAttr<StrAttr>:$precision));
  let results = (outs FloatTensor:$y);
  let assemblyFormat = before # [{ (`strides` $strides^)? (`padding` $padding^)?
    (`dilation` $dilation^)? (`groups` $groups^)? attr-dict
    `:` type(operands) `->` type($y)}];
  let extraClassDeclaration = [{
    /// The geometry, of an op that is verified.
    ::tandem::Convolution2d getConvolution();
  }];
}

def Conv2dOp : ConvolutionOp<"conv2d", (ins FloatTensor:$x, FloatTensor:$w), (ins), "$x `,` $w"> {
  let summary = "A convolution over two dimensions";
  let description = [{
    `y[n, o, oh, ow] = sum over c, kh, kw of x[n, g * C / groups + c, oh *
    strides[0] - padding[0] + kh * dilation[0], ow * strides[1] - padding[2] +
    kw * dilation[1]] * w[o, c, kh, kw]` with `g` the group of `o`; x is 0 outside
    of itself. `padding` is `[top, bottom, left, right]`. f16 and bf16 are
    accumulated in f32. `precision` is that of matmul.
  }];
}

def Conv2dInputGradOp : ConvolutionOp<"conv2d_input_grad", (ins FloatTensor:$dy, FloatTensor:$w),
    (ins DenseI64ArrayAttr:$shape), "$dy `,` $w `to` $shape"> {
  let summary = "The gradient of conv2d for its input";
  let description = [{
    `shape` is that of the input; the other attributes are conv2d's. The op is
    linear in each operand, and its gradients are conv2d and
    conv2d_filter_grad.
  }];
}

def Conv2dFilterGradOp : ConvolutionOp<"conv2d_filter_grad", (ins FloatTensor:$x, FloatTensor:$dy),
    (ins DenseI64ArrayAttr:$shape), "$x `,` $dy `to` $shape"> {
  let summary = "The gradient of conv2d for its filter";
  let description = [{
    `shape` is that of the filter; the other attributes are conv2d's. The op is
    linear in each operand, and its gradients are conv2d_input_grad and conv2d.
    With `precision = "sums"`, of operands of f16 or bf16, the result is of f32:
    sums over parts of the images are not rounded before they are added.
  }];
}

//===----------------------------------------------------------------------===//
// Attention at once
//===----------------------------------------------------------------------===//

/// What attention and its gradients share. q is [..., T, D], k [..., S, D], v
/// [..., S, E], with equal leading dimensions.
class AttentionPart<string mnemonic, dag more, dag made, list<Trait> traits>
    : Tandem_PureOp<mnemonic, !listconcat(traits, [
        InferTypeOpAdaptor,
        DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>,
        DeclareOpInterfaceMethods<ReferenceOpInterface>])> {
  let arguments = !con((ins FloatTensor:$q, FloatTensor:$k, FloatTensor:$v), more,
                       (ins UnitAttr:$causal, F64Attr:$scale));
  let results = made;
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The sizes, of an op that is verified.
    ::tandem::AttentionSizes getSizes();
  }];
  let extraClassDefinition = [{
    ::tandem::OpClass $cppClass::getOpClass() { return ::tandem::OpClass::Contraction; }
    ::tandem::AttentionSizes $cppClass::getSizes() {
      return ::tandem::AttentionSizes::of(getQ().getType(), getK().getType(), getV().getType());
    }
  }];
}

def AttentionForwardOp : AttentionPart<"attention_forward", (ins),
    (outs FloatTensor:$y, FloatTensor:$lse),
    [DeclareOpInterfaceMethods<DifferentiableOpInterface, ["numGradientResults"]>]> {
  let summary = "Scaled dot-product attention that keeps no scores";
  let description = [{
    `y = softmax(q k^T * scale) v`; q is [..., T, D], k [..., S, D], v [..., S, E],
    with equal leading dimensions. With `causal`, position t sees the positions
    up to t. `lse` [..., T] is the logarithm of the sum of `exp(scores)` of each
    row, in f32 (f64 for f64). f16 and bf16 are accumulated in f32.

    Gradient: attention_query_grad and attention_key_grad, which compute the
    scores again; lse takes no cotangent.
  }];
}

def AttentionQueryGradOp : AttentionPart<"attention_query_grad",
    (ins FloatTensor:$dy, FloatTensor:$lse, FloatTensor:$delta), (outs FloatTensor:$dq),
    [RefusesGradient]> {
  let summary = "The gradient of attention_forward for its queries";
  let description = [{
    With `p = exp(q k^T * scale - lse)` where a position is seen and else 0, and
    `ds = p * (dy v^T - delta)`: `dq = scale * ds k`. `delta` [..., T], of lse's
    type, is the sum of `dy * y` over the last dimension.
  }];
}

def AttentionKeyGradOp : AttentionPart<"attention_key_grad",
    (ins FloatTensor:$dy, FloatTensor:$lse, FloatTensor:$delta),
    (outs FloatTensor:$dk, FloatTensor:$dv), [RefusesGradient]> {
  let summary = "The gradients of attention_forward for its keys and values";
  let description = [{
    With p and ds as in attention_query_grad: `dk = scale * ds^T q` and `dv = p^T
    dy`.
  }];
}

#endif
