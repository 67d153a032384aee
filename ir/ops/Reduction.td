//===- Reduction.td - combining along dimensions ---------------------------===//
#ifndef TANDEM_IR_OPS_REDUCTION
#define TANDEM_IR_OPS_REDUCTION

include "ir/OpBase.td"
include "ir/Attributes.td"

class ReductionOp<string mnemonic, list<Trait> traits = []>
    : Tandem_PureOp<mnemonic, !listconcat(traits, [
        InferTypeOpAdaptor,
        DeclareOpInterfaceMethods<ReductionOpInterface>,
        DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>,
        DeclareOpInterfaceMethods<ReferenceOpInterface>])> {
  let arguments = (ins NumericTensor:$x, DenseI64ArrayAttr:$dims);
  let results = (outs NumericTensor:$y);
  let assemblyFormat = "$x `over` $dims attr-dict `:` type($x) `->` type($y)";
  let extraClassDefinition = [{
    ::tandem::OpClass $cppClass::getOpClass() { return ::tandem::OpClass::Reduction; }
    int64_t $cppClass::getFlops() { return ::llvm::cast<::mlir::RankedTensorType>(getX().getType()).getNumElements(); }
    ::llvm::ArrayRef<int64_t> $cppClass::getReducedDims() { return getDims(); }
    void $cppClass::evaluate(::llvm::ArrayRef<const ::tandem::reference::Array *> in, ::llvm::MutableArrayRef<::tandem::reference::Array> out) {
      ::tandem::reference::evaluateReduction(*this, in, out);
    }
  }];
}

def ReduceSumOp : ReductionOp<"reduce_sum", [AutocastFull, DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "The sum over some dimensions, which disappear";
  let description = "Gradient: `p.dy()` repeated along the reduced dimensions.";
}
def ReduceProdOp : ReductionOp<"reduce_prod", [AutocastFull, DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "The product over some dimensions, which disappear";
  let description = [{
    Gradient: for each element the product of the others, by multiplication alone,
    so that it is exact where elements are 0.
  }];
}
def ReduceMaxOp : ReductionOp<"reduce_max", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "The largest over some dimensions; NaN if there is one";
  let description = "Gradient: shared evenly by all elements that equal the result (PyTorch's amax).";
}
def ReduceMinOp : ReductionOp<"reduce_min", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "The smallest over some dimensions; NaN if there is one";
  let description = "Gradient: shared evenly by all elements that equal the result (PyTorch's amin).";
}

#endif
