//===- Composite.td - ops that mean a sequence of simpler ones -------------===//
//
// Each decomposes into primitive ops, whose gradients make its gradient, and
// has a reference of its own, written from the formula, which the tests hold
// against the decomposition. f16 and bf16 are computed in f32 throughout the
// op and rounded once.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_OPS_COMPOSITE
#define TANDEM_IR_OPS_COMPOSITE

include "ir/OpBase.td"
include "ir/Attributes.td"

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

def GeluOp : CompositeOp<"gelu", [SameOperandsAndResultType]> {
  let summary = "The Gaussian error linear unit";
  let description = [{
    `y = x * P(X <= x)` for a normal X: with `approximate = "none"` by erf, with
    `"tanh"` as `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`.
  }];
  let arguments = (ins FloatTensor:$x, Tandem_DefaultText<"none">:$approximate);
  let results = (outs FloatTensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($y)";
  let hasVerifier = 1;
}

def SiluOp : CompositeOp<"silu", [SameOperandsAndResultType]> {
  let summary = "`x * sigmoid(x)`";
  let arguments = (ins FloatTensor:$x);
  let results = (outs FloatTensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($y)";
}

class SoftmaxLikeOp<string mnemonic> : CompositeOp<mnemonic, [SameOperandsAndResultType, AutocastFull]> {
  let arguments = (ins FloatTensor:$x, I64Attr:$dim);
  let results = (outs FloatTensor:$y);
  let assemblyFormat = "$x `dim` $dim attr-dict `:` type($y)";
  let hasVerifier = 1;
}
def SoftmaxOp : SoftmaxLikeOp<"softmax"> {
  let summary = "`exp(x - max x) / sum of exp(x - max x)` along one dimension";
}
def LogSoftmaxOp : SoftmaxLikeOp<"log_softmax"> {
  let summary = "The logarithm of softmax, without computing softmax";
}

//===----------------------------------------------------------------------===//
// Normalization
//===----------------------------------------------------------------------===//

def LayerNormOp : CompositeOp<"layer_norm", [InferTypeOpAdaptor, AutocastFull]> {
  let summary = "Normalizes over the trailing dimensions, then scales and shifts";
  let description = [{
    `y = (x - mean) / sqrt(variance + epsilon) * scale + bias`, mean and (biased)
    variance over the dimensions from `axis` on, which are the shape of scale and
    bias.
  }];
  let arguments = (ins FloatTensor:$x, FloatTensor:$scale, FloatTensor:$bias, I64Attr:$axis,
                       Tandem_Default<F64Attr, "1e-5">:$epsilon);
  let results = (outs FloatTensor:$y);
  let assemblyFormat = "$x `,` $scale `,` $bias `axis` $axis attr-dict `:` type(operands) `->` type($y)";
  let hasVerifier = 1;
}

def BatchNormOp : CompositeOp<"batch_norm", [InferTypeOpAdaptor, AutocastFull], ["setInference"]> {
  let summary = "Normalizes each channel over the batch, then scales and shifts";
  let description = [{
    x is [N, C, ...]; the others are [C]. With `training` the statistics are the
    batch's, without it `mean` and `variance`. The second and third result are
    the statistics that were used; the batch's variance is the biased one.
  }];
  let arguments = (ins FloatTensor:$x, FloatTensor:$scale, FloatTensor:$bias, FloatTensor:$mean, FloatTensor:$variance,
                       Tandem_Default<F64Attr, "1e-5">:$epsilon, UnitAttr:$training);
  let results = (outs FloatTensor:$y, FloatTensor:$batch_mean, FloatTensor:$batch_variance);
  let assemblyFormat = "$x `,` $scale `,` $bias `,` $mean `,` $variance attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

def CrossEntropyOp : CompositeOp<"cross_entropy", [InferTypeOpAdaptor, AutocastFull]> {
  let summary = "The negative log-likelihood of labels under softmax of logits";
  let description = [{
    logits are [..., C], labels [...]. Each row gives `log(sum of exp(logits)) -
    logits[label]`; `reduction` is `"mean"` over rows, `"sum"`, or `"none"`. Rows
    whose label is `ignore_index` give 0 and do not count in the mean. A label
    outside of [0, C) gives NaN.
  }];
  let arguments = (ins FloatTensor:$logits, IntTensor:$labels, Tandem_DefaultText<"mean">:$reduction,
                       OptionalAttr<I64Attr>:$ignore_index);
  let results = (outs FloatTensor:$loss);
  let assemblyFormat = "$logits `,` $labels attr-dict `:` type(operands) `->` type($loss)";
  let hasVerifier = 1;
}

def MseLossOp : CompositeOp<"mse_loss", [InferTypeOpAdaptor, AutocastFull]> {
  let summary = "The squared difference; its mean, sum, or each";
  let description = "`reduction` is `\"mean\"`, `\"sum\"` or `\"none\"`.";
  let arguments = (ins FloatTensor:$x, FloatTensor:$target, Tandem_DefaultText<"mean">:$reduction);
  let results = (outs FloatTensor:$loss);
  let assemblyFormat = "$x `,` $target attr-dict `:` type(operands) `->` type($loss)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

def LinearOp : CompositeOp<"linear", [InferTypeOpAdaptor, AutocastLow]> {
  let summary = "`y = x w^T + bias` along the last dimension";
  let description = "x is [..., in], w is [out, in], bias is [out] or absent, y is [..., out]. "
                    "`precision` is that of matmul.";
  let arguments = (ins FloatTensor:$x, FloatTensor:$w, Optional<FloatTensor>:$bias,
                       OptionalAttr<StrAttr>:$precision);
  let results = (outs FloatTensor:$y);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def AttentionOp : CompositeOp<"attention", [InferTypeOpAdaptor, AutocastLow], ["fuse"]> {
  let summary = "Scaled dot-product attention";
  let description = [{
    `y = softmax(q k^T * scale + mask) v`; q is [..., T, D], k [..., S, D], v
    [..., S, E], with equal leading dimensions. With `causal`, position t sees the
    positions up to t. `scale` is 1 / sqrt(D) if absent. The mask, if there is
    one, is [..., T, S]: of floats, which are added to the scores, or of bools, true
    where a position is seen. With a mask, a row that sees nothing gives 0.

    For targets with kernels for it, and D and E of at most 256, it becomes
    attention_forward, unless it is differentiated twice. So does one with a mask
    that is known when compiling to hide nothing, or all that comes later.
  }];
  let arguments = (ins FloatTensor:$q, FloatTensor:$k, FloatTensor:$v, Optional<AnyTensor_>:$mask, UnitAttr:$causal,
                       OptionalAttr<F64Attr>:$scale);
  let results = (outs FloatTensor:$y);
  let assemblyFormat = "operands attr-dict `:` type(operands) `->` type($y)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Along dimensions
//===----------------------------------------------------------------------===//

def ReduceMeanOp : CompositeOp<"reduce_mean", [InferTypeOpAdaptor, AutocastFull]> {
  let summary = "The mean over some dimensions, which disappear";
  let arguments = (ins FloatTensor:$x, DenseI64ArrayAttr:$dims);
  let results = (outs FloatTensor:$y);
  let assemblyFormat = "$x `over` $dims attr-dict `:` type($x) `->` type($y)";
}

def ArgmaxOp : CompositeOp<"argmax", [InferTypeOpAdaptor, NotDifferentiable]> {
  let summary = "The index of the largest along one dimension, which disappears";
  let description = "The first of equal ones; the first NaN if there is one.";
  let arguments = (ins NumericTensor:$x, I64Attr:$dim);
  let results = (outs Tandem_Tensor<[I64], "64-bit integers">:$index);
  let assemblyFormat = "$x `dim` $dim attr-dict `:` type($x) `->` type($index)";
}

def ConcatOp : CompositeOp<"concat", [InferTypeOpAdaptor]> {
  let summary = "Tensors one after the other along one dimension";
  let arguments = (ins Variadic<AnyTensor_>:$parts, I64Attr:$dim);
  let results = (outs AnyTensor_:$y);
  let assemblyFormat = "$parts `dim` $dim attr-dict `:` type($parts) `->` type($y)";
}

#endif
