//===- Interfaces.td - what an op can say about itself ---------------------===//
//
// An engine (autodiff, partition, plan, lower, reference) knows interfaces and
// never op names; what an op means is in its own record.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_INTERFACES
#define TANDEM_IR_INTERFACES

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::tandem";
  let description = "An op that has a gradient.";
  let methods = [InterfaceMethod<
    [{Builds the cotangents of the operands that need one (`p.needs(i)`) from
      those of the results (`p.dy(i)`), the operands (`p.in(i)`) and the results
      (`p.out(i)`), and hands them over with `p.set(i, value)`. Accumulation
      and pruning are the engine's.}],
    "::llvm::LogicalResult", "pullback", (ins "::tandem::Pullback &":$p)>,
    InterfaceMethod<[{How many operands, from the first, gradients can flow to;
      the others are not differentiated with respect to.}],
      "unsigned", "numGradientOperands", (ins), [{}],
      [{ return $_op->getNumOperands(); }]>,
    InterfaceMethod<[{How many results, from the first, take cotangents.}],
      "unsigned", "numGradientResults", (ins), [{}],
      [{ return $_op->getNumResults(); }]>];
}

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::tandem";
  let description = "The class of an op, and what one execution costs.";
  let methods = [
    InterfaceMethod<"The class that engines decide by.",
      "::tandem::OpClass", "getOpClass">,
    InterfaceMethod<[{Floating-point operations of one execution; a multiply-add
      is two, a transcendental function one.}],
      "int64_t", "getFlops", (ins), [{}], [{
        int64_t n = 0;
        for (::mlir::Value v : $_op->getResults())
          if (auto t = ::llvm::dyn_cast<::mlir::RankedTensorType>(v.getType()))
            n += t.getNumElements();
        return n;
      }]>,
  ];
}

def PointwiseOpInterface : OpInterface<"PointwiseOpInterface"> {
  let cppNamespace = "::tandem";
  let description = [{
    One result; element `i` of the result follows from element `i` of every
    operand. Operands and result have one shape.
  }];
  let methods = [
    InterfaceMethod<[{The result's element from the operands' elements `x`
      (scalars of the operands' element types), in ops of arith and math.}],
      "::mlir::Value", "emitScalar",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc, "::mlir::ValueRange":$x)>,
    InterfaceMethod<"The same in double arithmetic; booleans are 0 and 1.",
      "double", "referenceScalar", (ins "::llvm::ArrayRef<double>":$x)>,
  ];
}

def ViewOpInterface : OpInterface<"ViewOpInterface"> {
  let cppNamespace = "::tandem";
  let description = [{
    One operand, one result; each element of the result is an element of the
    operand, or a fill value. Nothing is computed.
  }];
  let methods = [
    InterfaceMethod<"Maps an index of the result to the index of the operand.",
      "::mlir::AffineMap", "getIndexMap">,
    InterfaceMethod<[{The indices of the result that read the operand; null if
      all do. Outside of it the result is the fill value.}],
      "::mlir::IntegerSet", "getIndexDomain", (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<"The fill value; null if every element reads the operand.",
      "::mlir::TypedAttr", "getFill", (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<[{True if the result's row-major elements are the operand's
      row-major elements in the same order: the result can share the operand's
      buffer.}],
      "bool", "isFree", (ins), [{}], [{ return false; }]>,
  ];
}

def ReductionOpInterface : OpInterface<"ReductionOpInterface"> {
  let cppNamespace = "::tandem";
  let description = [{
    One operand, one result, which lacks the reduced dimensions. The combiner
    is associative and commutative; elements are combined in any order that
    is fixed when compiling.
  }];
  let methods = [
    InterfaceMethod<"The reduced dimensions, rising.",
      "::llvm::ArrayRef<int64_t>", "getReducedDims">,
    InterfaceMethod<"The value that combining leaves unchanged.",
      "::mlir::TypedAttr", "getNeutral">,
    InterfaceMethod<"Combines two elements.", "::mlir::Value", "emitCombine",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc,
           "::mlir::Value":$lhs, "::mlir::Value":$rhs)>,
    InterfaceMethod<"The same in double arithmetic.", "double", "referenceCombine",
      (ins "double":$lhs, "double":$rhs)>,
  ];
}

def CompositeOpInterface : OpInterface<"CompositeOpInterface"> {
  let cppNamespace = "::tandem";
  let description = [{
    An op that means a sequence of simpler ones. It is decomposed before it is
    differentiated, so it needs neither gradient nor lowering of its own.
  }];
  let methods = [
    InterfaceMethod<[{Builds the simpler ops at `b` and returns one value per
      result.}],
      "::llvm::SmallVector<::mlir::Value>", "decompose",
      (ins "::mlir::OpBuilder &":$b)>,
    InterfaceMethod<[{Builds ops at `b` that do the same at once, for targets
      with kernels for them, and returns one value per result; none if there are
      no such ops. They have a gradient, but need not have a second one.}],
      "::llvm::SmallVector<::mlir::Value>", "fuse",
      (ins "::mlir::OpBuilder &":$b), [{}], [{ return {}; }]>,
    InterfaceMethod<[{Turns the op into its form for inference, if that differs
      from training.}],
      "void", "setInference", (ins), [{}], [{ return; }]>,
  ];
}

def ReferenceOpInterface : OpInterface<"ReferenceOpInterface"> {
  let cppNamespace = "::tandem";
  let description = "An op with a readable, slow evaluation in double.";
  let methods = [InterfaceMethod<
    [{Evaluates the op: `in` holds the operands, `out` the results, allocated
      with their shapes and zero.}],
    "void", "evaluate",
    (ins "::llvm::ArrayRef<const ::tandem::reference::Array *>":$in,
         "::llvm::MutableArrayRef<::tandem::reference::Array>":$out)>];
}

def CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::tandem";
  let description = [{
    An op over the ranks of a mesh that differ in some axes alone, its group.
    Those that communicate keep their order within a group, and are neither
    merged nor computed again.
  }];
  let methods = [
    InterfaceMethod<"The axes, by name; the group's order is row-major over them.",
      "::mlir::ArrayAttr", "axes", (ins), [{}], [{ return $_op.getAxesAttr(); }]>,
    InterfaceMethod<[{Which number it has among the collectives of its group: those
      with lower numbers start first where dependencies allow.}],
      "std::optional<int64_t>", "orderNumber", (ins), [{}], [{ return $_op.getNumber(); }]>,
    InterfaceMethod<"False where a rank needs nothing of another.",
      "bool", "communicates", (ins), [{}], [{ return true; }]>,
    InterfaceMethod<[{The bytes that a rank sends where the group is a ring.}],
      "int64_t", "getLinkBytes", (ins), [{}], [{ return 0; }]>,
    InterfaceMethod<[{Evaluates the op for a whole group: one operand and one result
      per rank, in the group's order. Results are allocated with their shapes.}],
      "void", "evaluateGroup",
      (ins "::llvm::ArrayRef<const ::tandem::reference::Array *>":$in,
           "::llvm::MutableArrayRef<::tandem::reference::Array>":$out)>];
}

def RefViewOpInterface : OpInterface<"RefViewOpInterface"> {
  let cppNamespace = "::tandem";
  let description = [{
    A view that can also be taken of a ref: its result then aliases the
    operand's storage.
  }];
  let methods = [
    InterfaceMethod<"The value that is viewed.", "::mlir::Value", "getViewSource">,
    InterfaceMethod<[{Given the new elements of the view (`update`) and the old
      elements of the source (`base`), builds the source's new elements.}],
      "::mlir::Value", "scatterInto",
      (ins "::mlir::OpBuilder &":$b, "::mlir::Location":$loc,
           "::mlir::Value":$base, "::mlir::Value":$update)>,
  ];
}

#endif
