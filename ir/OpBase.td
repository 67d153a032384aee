//===- OpBase.td - the dialect, its types, and what every op shares --------===//
//
// Every family file in ir/ops includes this one. The classes here splice an
// op's `gradient`, `scalar` and `reference` expressions into the methods of
// the interfaces (ir/Interfaces.td) and into the op's documentation.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_OPBASE
#define TANDEM_IR_OPBASE

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "ir/Interfaces.td"

def Tandem_Dialect : Dialect {
  let name = "tandem";
  let cppNamespace = "::tandem";
  let summary = "Tensors, gradients, mutation and programs of training steps";
  let description = [{
    Compute ops work on immutable tensors of static shape. What a captured
    program can mutate or alias is a `!tandem.ref`. Arguments and results of
    graph functions carry roles; the module carries its phase.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let hasConstantMaterializer = 1;
  let extraClassDeclaration = [{
    // One per family; each is defined beside the family's ops.
    void addElementwiseOps();
    void addRandomOps();
    void addShapeOps();
    void addReductionOps();
    void addContractionOps();
    void addPoolingOps();
    void addIndexingOps();
    void addCompositeOps();
    void addOptimizerOps();
    void addRefOps();
    void addCustomOps();
    void addFlowOps();
    void addProgramOps();
    void addCollectiveOps();
    void addAttributesAndTypes();
  }];
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def Tandem_Ref : TypeDef<Tandem_Dialect, "Ref"> {
  let mnemonic = "ref";
  let summary = "ref to storage";
  let description = [{
    `!tandem.ref<4x8xf32>` names storage that can be read and written. Views of
    a ref are refs of the same storage. Only captured programs have refs:
    functionalize removes them all.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The tensor type of the value that a read of this ref gives.
    ::mlir::RankedTensorType getTensorType() const {
      return ::mlir::RankedTensorType::get(getShape(), getElementType());
    }
    /// The ref to a whole tensor of type `type`.
    static RefType of(::mlir::RankedTensorType type) {
      return get(type.getContext(), type.getShape(), type.getElementType());
    }
  }];
}

def Tandem_Float : AnyTypeOf<[F32, F64, F16, BF16]>;
def Tandem_Int : AnyTypeOf<[I8, I16, I32, I64, UI8, UI16, UI32, UI64]>;
def Tandem_Bool : TypeAlias<I1, "bool">;
/// Stored, moved and cast, but not computed with.
def Tandem_Narrow : AnyTypeOf<[F8E4M3FN, F8E5M2]>;
def Tandem_Element : AnyTypeOf<[Tandem_Float, Tandem_Int, Tandem_Bool, Tandem_Narrow]>;

/// A dense tensor without encoding, whose shape is static and one of
/// isTensorShape.
class Tandem_Tensor<list<Type> elements, string names>
    : ConfinedType<StaticShapeTensorOf<elements>,
        [CPred<"::tandem::isTensorType($_self)">],
        "tensor of " # names # " of static shape, at most 2^40 elements",
        "::mlir::RankedTensorType">;
def AnyTensor_ : Tandem_Tensor<[Tandem_Element], "floats, integers or bools">;
def FloatTensor : Tandem_Tensor<[Tandem_Float], "floats">;
def IntTensor : Tandem_Tensor<[Tandem_Int], "integers">;
def BoolTensor : Tandem_Tensor<[I1], "bools">;
def BitTensor : Tandem_Tensor<[AnyTypeOf<[Tandem_Int, Tandem_Bool]>], "integers or bools">;
def NumericTensor : Tandem_Tensor<[AnyTypeOf<[Tandem_Float, Tandem_Int]>], "floats or integers">;
/// A tensor, or a ref seen through a view.
def TensorOrRef : AnyTypeOf<[AnyTensor_, Tandem_Ref]>;

//===----------------------------------------------------------------------===//
// Op classes
//===----------------------------------------------------------------------===//

/// The op has no gradient: its results are piecewise constant or not numbers.
def NotDifferentiable : NativeOpTrait<"NotDifferentiable"> {
  let cppNamespace = "::tandem";
}

/// The op has no gradient, and it is an error if one has to pass it: what it
/// makes of numbers is not a function that could be differentiated.
def RefusesGradient : NativeOpTrait<"RefusesGradient"> {
  let cppNamespace = "::tandem";
}

/// What mixed precision (passes/precision) makes of an op of f32: with
/// AutocastLow it is computed in the low type, with AutocastFull in f32. Others
/// follow: they are low where all that they read is.
def AutocastLow : NativeOpTrait<"AutocastLow"> {
  let cppNamespace = "::tandem";
}
def AutocastFull : NativeOpTrait<"AutocastFull"> {
  let cppNamespace = "::tandem";
}

/// An attribute that may be left out, and what docs/ops.md says that it is then.
class Tandem_Default<Attr attr, string value, string shown = value> : DefaultValuedAttr<attr, value> {
  let summary = attr.summary # "; default: " # shown;
}
class Tandem_DefaultText<string value> : DefaultValuedStrAttr<StrAttr, value> {
  let summary = StrAttr.summary # "; default: \"" # value # "\"";
}

class Tandem_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tandem_Dialect, mnemonic, traits>;

/// An op of tensors that has no effect and whose result types follow from its
/// operands and attributes.
class Tandem_PureOp<string mnemonic, list<Trait> traits = []>
    : Tandem_Op<mnemonic, !listconcat([Pure], traits)>;

/// An op that means a sequence of simpler ones; `methods` names what it defines
/// beyond `decompose`.
class CompositeOp<string mnemonic, list<Trait> traits = [], list<string> methods = []>
    : Tandem_PureOp<mnemonic, !listconcat(traits, [
        DeclareOpInterfaceMethods<CompositeOpInterface, methods>,
        DeclareOpInterfaceMethods<CostOpInterface>,
        DeclareOpInterfaceMethods<ReferenceOpInterface>])> {
  let extraClassDefinition = [{
    ::tandem::OpClass $cppClass::getOpClass() { return ::tandem::OpClass::Composite; }
  }];
}

/// `gradients`: one expression per operand; "" for an operand that has none.
/// Becomes the body of `pullback`.
class PullbackBody<list<string> gradients> {
  defvar index = !range(!size(gradients));
  string text = "::llvm::LogicalResult $cppClass::pullback(::tandem::Pullback &p) {\n"
    # !interleave(!foreach(i, index,
        !if(!empty(gradients[i]), "",
            "  if (p.needs(" # i # ")) p.set(" # i # ", " # gradients[i] # ");")), "\n")
    # "\n  return ::llvm::success();\n}\n";
  string doc = "\n\nGradient: "
    # !interleave(!foreach(g, gradients, !if(!empty(g), "none", "`" # g # "`")), "; ") # ".\n";
}

/// A pointwise op. `scalar` is the expression for one element, built with `b`
/// and `loc` from the scalars `x[0]`, `x[1]`, ...; `reference` is the same in
/// double arithmetic on `x[i]`.
class PointwiseBody<string scalar, string reference> {
  string text = "::mlir::Value $cppClass::emitScalar(::mlir::OpBuilder &b, ::mlir::Location loc, ::mlir::ValueRange x) {\n"
    # "  return " # scalar # ";\n}\n"
    # "double $cppClass::referenceScalar(::llvm::ArrayRef<double> x) {\n"
    # "  return " # reference # ";\n}\n";
}

/// An op of which element `i` of the result follows from element `i` of each
/// operand; `costs` names what it says of its cost beyond its class.
class PointwiseOp<string mnemonic, list<Trait> traits = [], list<string> costs = []>
    : Tandem_PureOp<mnemonic, !listconcat(traits, [
        DeclareOpInterfaceMethods<PointwiseOpInterface>,
        DeclareOpInterfaceMethods<CostOpInterface, costs>,
        DeclareOpInterfaceMethods<ReferenceOpInterface>])> {
  string pointwiseMethods = [{
    ::tandem::OpClass $cppClass::getOpClass() { return ::tandem::OpClass::Pointwise; }
    void $cppClass::evaluate(::llvm::ArrayRef<const ::tandem::reference::Array *> in, ::llvm::MutableArrayRef<::tandem::reference::Array> out) {
      ::tandem::reference::evaluatePointwise(*this, in, out);
    }
  }];
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

class ViewOp<string mnemonic, TypeConstraint type, list<Trait> traits = []>
    : Tandem_PureOp<mnemonic, !listconcat(traits, [
        InferTypeOpAdaptor,
        DeclareOpInterfaceMethods<DifferentiableOpInterface>,
        DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>,
        DeclareOpInterfaceMethods<ReferenceOpInterface>])> {
  let results = (outs type:$y);
  string viewMethods = [{
    ::tandem::OpClass $cppClass::getOpClass() { return ::tandem::OpClass::View; }
    int64_t $cppClass::getFlops() { return 0; }
    void $cppClass::evaluate(::llvm::ArrayRef<const ::tandem::reference::Array *> in, ::llvm::MutableArrayRef<::tandem::reference::Array> out) {
      ::tandem::reference::evaluateView(*this, in, out);
    }
  }];
  let extraClassDefinition = viewMethods;
}

/// A view that can be taken of a ref as well.
class RefViewOp<string mnemonic, list<Trait> traits = []>
    : ViewOp<mnemonic, TensorOrRef, !listconcat(traits, [DeclareOpInterfaceMethods<RefViewOpInterface>])> {
  let extraClassDefinition = viewMethods # [{
    ::mlir::Value $cppClass::getViewSource() { return getX(); }
  }];
}

#endif
