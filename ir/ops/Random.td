//===- Random.td - random numbers and dropout ------------------------------===//
//
// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011): a number is a function of where it stands, so
// every device makes the same one in any order, and making it again costs less
// than keeping it. `philox` is the one primitive; the others mean it.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_OPS_RANDOM
#define TANDEM_IR_OPS_RANDOM

include "ir/OpBase.td"
include "ir/Attributes.td"

def Tandem_Random : Tandem_Tensor<[AnyTypeOf<[I32, Tandem_Float]>], "32-bit integers or floats">;
def Tandem_Words : Tandem_Tensor<[I64], "64-bit integers">;
/// A seed and an offset.
def Tandem_RandomState : ConfinedType<Tandem_Words,
    [CPred<"::llvm::cast<::mlir::RankedTensorType>($_self).getShape() == ::llvm::ArrayRef<int64_t>{2}">],
    "tensor<2xi64>: a seed and an offset", "::mlir::RankedTensorType">,
  BuildableType<"::mlir::RankedTensorType::get({2}, $_builder.getIntegerType(64))">;

/// The operand is i64 in the shape of the result.
class WordsLikeResult<string operand>
    : TypesMatchWith<operand # " has the shape of y, and i64 elements", "y", operand,
        "::mlir::RankedTensorType::get(::llvm::cast<::mlir::ShapedType>($_self).getShape(), "
        "::mlir::IntegerType::get($_self.getContext(), 64))">;

def PhiloxOp : PointwiseOp<"philox", [NotDifferentiable,
    WordsLikeResult<"seed">, WordsLikeResult<"offset">, WordsLikeResult<"position">,
    WordsLikeResult<"draw">], ["getFlops"]> {
  let summary = "The random number at a position";
  let description = [{
    The words of Philox4x32-10 under the key `seed` for the counter (low word
    first) of `position / 4` in 40 bits, `draw` in 24 and `offset` in 64. An i32
    is word `position % 4`; a float is uniform in [0, 1), a multiple of 2^-24
    (f16: 2^-11, bf16: 2^-8) from the leading bits of that word. An f64 is a
    multiple of 2^-53 from words `2 (position % 2)` (leading) and the next, of the
    counter of `position / 2`.

    Draws of one seed and offset that differ in `draw` are independent. It is an
    operand so that kernels that differ in it alone can be one.
  }];
  let arguments = (ins Tandem_Words:$seed, Tandem_Words:$offset, Tandem_Words:$position, Tandem_Words:$draw);
  let results = (outs Tandem_Random:$y);
  let assemblyFormat = "$seed `,` $offset `,` $position `draw` $draw attr-dict `:` type($y)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The number of the draw, where it is a constant.
    std::optional<int64_t> getDrawNumber();
  }];
  let extraClassDefinition = pointwiseMethods;
}

/// A composite of philox under a state, one number at each row-major position.
class RandomOp<string mnemonic, TypeConstraint type, dag attributes = (ins)>
    : CompositeOp<mnemonic, [NotDifferentiable]> {
  let arguments = !con((ins Tandem_RandomState:$state, I64Attr:$draw), attributes);
  let results = (outs type:$y);
  let hasVerifier = 1;
}

def RandomBitsOp : RandomOp<"random_bits", Tandem_Tensor<[I32], "32-bit integers">> {
  let summary = "32 random bits in each element";
  let assemblyFormat = "$state `draw` $draw attr-dict `:` type($y)";
}

def RandomUniformOp : RandomOp<"random_uniform", FloatTensor> {
  let summary = "Numbers uniform in [0, 1), of the resolution that philox says";
  let assemblyFormat = "$state `draw` $draw attr-dict `:` type($y)";
}

def RandomNormalOp : RandomOp<"random_normal", FloatTensor> {
  let summary = "Numbers of mean 0 and variance 1, normally distributed";
  let description = [{
    `sqrt(-2 log(1 - u)) cos(2 pi v)` (Box and Muller, 1958) for u and v uniform,
    of the draws `draw` and `draw + 2^23`; in f32, or f64 for an f64 result.
  }];
  let assemblyFormat = "$state `draw` $draw attr-dict `:` type($y)";
}

def BernoulliOp : RandomOp<"bernoulli", BoolTensor, (ins F64Attr:$p)> {
  let summary = "True with probability `p`, to 2^-24";
  let description = "`u < p` for u uniform in f32; never true for 0, always for 1.";
  let assemblyFormat = "$state `draw` $draw `p` $p attr-dict `:` type($y)";
}

def DropoutOp : CompositeOp<"dropout", [AllTypesMatch<["x", "y"]>], ["setInference"]> {
  let summary = "Zeros with probability `p`, and the rest scaled by 1 / (1 - p)";
  let description = [{
    With `training`, element i is 0 where bernoulli of this state and draw is true,
    and `x / (1 - p)` elsewhere; without it, x. The gradient makes the same
    choice again from the state.
  }];
  let arguments = (ins FloatTensor:$x, Tandem_RandomState:$state, I64Attr:$draw, F64Attr:$p, UnitAttr:$training);
  let results = (outs FloatTensor:$y);
  let assemblyFormat = "$x `,` $state `draw` $draw `p` $p attr-dict `:` type($y)";
  let hasVerifier = 1;
}

#endif
