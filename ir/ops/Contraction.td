//===- Contraction.td - matrix products and convolutions -------------------===//
#ifndef TANDEM_IR_OPS_CONTRACTION
#define TANDEM_IR_OPS_CONTRACTION

include "ir/OpBase.td"
include "ir/Attributes.td"

class ContractionOp<string mnemonic, list<Trait> traits = []>
    : Tandem_PureOp<mnemonic, !listconcat(traits, [
        InferTypeOpAdaptor,
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
    bf16 are accumulated in f32.
  }];
  let arguments = (ins FloatTensor:$lhs, FloatTensor:$rhs, UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let results = (outs FloatTensor:$y);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($y)";
}

#endif
