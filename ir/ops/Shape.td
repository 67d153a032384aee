//===- Shape.td - constants, and ops that only move elements ---------------===//
#ifndef TANDEM_IR_OPS_SHAPE
#define TANDEM_IR_OPS_SHAPE

include "ir/OpBase.td"
include "ir/Attributes.td"

def Tandem_Numbers : ElementsAttrBase<
    CPred<"::llvm::isa<::mlir::DenseIntOrFPElementsAttr>($_self)">, "dense numbers">;

def ConstantOp : Tandem_PureOp<"constant", [ConstantLike, NotDifferentiable,
    InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<CostOpInterface>, DeclareOpInterfaceMethods<ReferenceOpInterface>]> {
  let summary = "A tensor known when compiling";
  let arguments = (ins Tandem_Numbers:$value);
  let results = (outs AnyTensor_:$y);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
  let extraClassDeclaration = [{
    /// A constant with every element `number`.
    static ConstantOp splat(::mlir::OpBuilder &b, ::mlir::Location loc, ::mlir::RankedTensorType type, double number);
    /// The one element of a splat; null otherwise.
    ::mlir::TypedAttr getSplat();
  }];
  let extraClassDefinition = [{
    ::tandem::OpClass $cppClass::getOpClass() { return ::tandem::OpClass::Constant; }
  }];
}

def IotaOp : Tandem_PureOp<"iota", [NotDifferentiable,
    DeclareOpInterfaceMethods<CostOpInterface>, DeclareOpInterfaceMethods<ReferenceOpInterface>]> {
  let summary = "Each element is its own index along one dimension";
  let arguments = (ins I64Attr:$dim);
  let results = (outs NumericTensor:$y);
  let assemblyFormat = "`dim` $dim attr-dict `:` type($y)";
  let hasVerifier = 1;
  let extraClassDefinition = [{
    ::tandem::OpClass $cppClass::getOpClass() { return ::tandem::OpClass::Constant; }
  }];
}

def BroadcastOp : RefViewOp<"broadcast", [DeclareOpInterfaceMethods<ViewOpInterface>]> {
  let summary = "Repeats a tensor along new or stretched dimensions";
  let description = [{
    Dimension `i` of the operand is dimension `dims[i]` of the result; its size is
    that of the result, or 1. `dims` rises. Gradient: the sum over the repeated
    dimensions.
  }];
  let arguments = (ins TensorOrRef:$x, DenseI64ArrayAttr:$shape, DenseI64ArrayAttr:$dims);
  let assemblyFormat = "$x `to` $shape `along` $dims attr-dict `:` qualified(type($x)) `->` qualified(type($y))";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def ReshapeOp : RefViewOp<"reshape", [DeclareOpInterfaceMethods<ViewOpInterface, ["isFree"]>]> {
  let summary = "The same row-major elements in another shape";
  let arguments = (ins TensorOrRef:$x, DenseI64ArrayAttr:$shape);
  let assemblyFormat = "$x `to` $shape attr-dict `:` qualified(type($x)) `->` qualified(type($y))";
  let hasFolder = 1;
}

def PermuteOp : RefViewOp<"permute", [DeclareOpInterfaceMethods<ViewOpInterface>]> {
  let summary = "Dimension `i` of the result is dimension `permutation[i]` of the operand";
  let arguments = (ins TensorOrRef:$x, DenseI64ArrayAttr:$permutation);
  let assemblyFormat = "$x `by` $permutation attr-dict `:` qualified(type($x)) `->` qualified(type($y))";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def SliceOp : RefViewOp<"slice", [DeclareOpInterfaceMethods<ViewOpInterface>]> {
  let summary = "Elements starts, starts + strides, ... below limits, in each dimension";
  let arguments = (ins TensorOrRef:$x, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$limits, DenseI64ArrayAttr:$strides);
  let assemblyFormat = "$x `from` $starts `to` $limits `step` $strides attr-dict `:` qualified(type($x)) `->` qualified(type($y))";
  let hasFolder = 1;
}

def PadOp : ViewOp<"pad", AnyTensor_, [DeclareOpInterfaceMethods<ViewOpInterface, ["getIndexDomain", "getFill"]>]> {
  let summary = "Surrounds (low, high) and spreads (interior) a tensor with one value";
  let description = "In each dimension: `low` fills, the elements with `interior` fills between neighbours, `high` fills.";
  let arguments = (ins AnyTensor_:$x, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high, DenseI64ArrayAttr:$interior, TypedAttrInterface:$value);
  let assemblyFormat = "$x `low` $low `high` $high `interior` $interior `with` $value attr-dict `:` qualified(type($x)) `->` qualified(type($y))";
  let hasFolder = 1;
}

def ReverseOp : ViewOp<"reverse", AnyTensor_, [DeclareOpInterfaceMethods<ViewOpInterface>]> {
  let summary = "The elements of some dimensions in the opposite order";
  let arguments = (ins AnyTensor_:$x, DenseI64ArrayAttr:$dims);
  let assemblyFormat = "$x `along` $dims attr-dict `:` type($x) `->` type($y)";
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Views that matter for what shares storage
//===----------------------------------------------------------------------===//

def DetachOp : Tandem_PureOp<"detach", [InferTypeOpAdaptor, NotDifferentiable,
    DeclareOpInterfaceMethods<ViewOpInterface, ["isFree"]>,
    DeclareOpInterfaceMethods<RefViewOpInterface>,
    DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>,
    DeclareOpInterfaceMethods<ReferenceOpInterface>]> {
  let summary = "The same elements, through which nothing is differentiated";
  let description = [{
    Of a ref: the same storage. A write through it is hidden from the gradient:
    it changes the value, and the gradient passes as if it had not.
  }];
  let arguments = (ins TensorOrRef:$x);
  let results = (outs TensorOrRef:$y);
  let assemblyFormat = "$x attr-dict `:` qualified(type($x))";
  let extraClassDefinition = [{
    ::tandem::OpClass $cppClass::getOpClass() { return ::tandem::OpClass::View; }
    int64_t $cppClass::getFlops() { return 0; }
    ::mlir::Value $cppClass::getViewSource() { return getX(); }
    void $cppClass::evaluate(::llvm::ArrayRef<const ::tandem::reference::Array *> in, ::llvm::MutableArrayRef<::tandem::reference::Array> out) {
      ::tandem::reference::evaluateView(*this, in, out);
    }
  }];
}

def AsStridedOp : CompositeOp<"as_strided", [InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<RefViewOpInterface>]> {
  let summary = "Any elements of a tensor, by strides";
  let description = [{
    `y[i...] = x[offset + sum(i * strides)]`, where `x` is counted row-major. Its
    elements may overlap: their gradients then add up, and it cannot be written.
  }];
  let arguments = (ins TensorOrRef:$x, DenseI64ArrayAttr:$sizes, DenseI64ArrayAttr:$strides, I64Attr:$offset);
  let results = (outs TensorOrRef:$y);
  let assemblyFormat = "$x `sizes` $sizes `strides` $strides `offset` $offset attr-dict `:` qualified(type($x)) `->` qualified(type($y))";
  let extraClassDeclaration = [{
    /// The row-major positions in the operand of the result's elements.
    ::llvm::SmallVector<int64_t> positions();
  }];
  let extraClassDefinition = [{
    ::tandem::OpClass $cppClass::getOpClass() { return ::tandem::OpClass::Composite; }
    ::mlir::Value $cppClass::getViewSource() { return getX(); }
  }];
}

def BitcastOp : Tandem_PureOp<"bitcast", [RefusesGradient,
    DeclareOpInterfaceMethods<PointwiseOpInterface>,
    DeclareOpInterfaceMethods<RefViewOpInterface>,
    DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>,
    DeclareOpInterfaceMethods<ReferenceOpInterface>]> {
  let summary = "The same bytes as elements of another type of the same width";
  let arguments = (ins TensorOrRef:$x);
  let results = (outs TensorOrRef:$y);
  let assemblyFormat = "$x attr-dict `:` qualified(type($x)) `->` qualified(type($y))";
  let hasVerifier = 1;
  let extraClassDefinition = [{
    ::tandem::OpClass $cppClass::getOpClass() { return ::tandem::OpClass::Pointwise; }
    int64_t $cppClass::getFlops() { return 0; }
    ::mlir::Value $cppClass::getViewSource() { return getX(); }
    void $cppClass::evaluate(::llvm::ArrayRef<const ::tandem::reference::Array *> in, ::llvm::MutableArrayRef<::tandem::reference::Array> out) {
      ::tandem::reference::evaluatePointwise(*this, in, out);
    }
  }];
}

#endif
