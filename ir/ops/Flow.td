//===- Flow.td - branches and loops that data decides ----------------------===//
#ifndef TANDEM_IR_OPS_FLOW
#define TANDEM_IR_OPS_FLOW

include "ir/OpBase.td"
include "ir/Attributes.td"

/// One bool, or one index: what a branch or a loop is decided by. Their types
/// are known, so that ops do not write them.
def BoolScalar : Type<And<[BoolTensor.predicate, CPred<"::llvm::cast<::mlir::RankedTensorType>($_self).getRank() == 0">]>,
    "one bool", "::mlir::RankedTensorType">,
  BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getI1Type())">;
def IndexScalar : Type<And<[AnyTensor_.predicate, CPred<"::llvm::cast<::mlir::RankedTensorType>($_self).getRank() == 0">,
      CPred<"::llvm::cast<::mlir::RankedTensorType>($_self).getElementType().isSignlessInteger(64)">]>,
    "one i64", "::mlir::RankedTensorType">,
  BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getI64Type())">;

/// An op that runs regions. They see their arguments alone: what they use of
/// the program around them is an operand.
class FlowOp<string mnemonic, list<Trait> traits = []>
    : Tandem_Op<mnemonic, !listconcat([IsolatedFromAbove, RecursiveMemoryEffects,
        DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>], traits)> {
  let results = (outs Variadic<AnyTensor_>:$results);
  let hasVerifier = 1;
  let extraClassDefinition = [{
    ::tandem::OpClass $cppClass::getOpClass() { return ::tandem::OpClass::Flow; }
  }];
}

def IfOp : FlowOp<"if", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "One of two regions, as a bool says";
  let description = [{
    Both regions take the inputs and yield the results. What the other region
    would have made has no influence on results and gradients, not even where it
    is no number.

    ```mlir
    %y = tandem.if %c (%x) then {
      ^bb0(%a: tensor<4xf32>):
        %s = tandem.sqrt %a : tensor<4xf32>
        tandem.yield %s : tensor<4xf32>
    } else {
      ^bb0(%a: tensor<4xf32>):
        tandem.yield %a : tensor<4xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    ```

    Gradient: the branch that was taken, differentiated.
  }];
  let arguments = (ins BoolScalar:$condition, Variadic<AnyTensor_>:$inputs);
  let regions = (region SizedRegion<1>:$then, SizedRegion<1>:$otherwise);
  let assemblyFormat = [{
    $condition `(` $inputs `)` `then` $then `else` $otherwise attr-dict
    `:` functional-type($inputs, $results)
  }];
}

def ScanOp : FlowOp<"scan", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "A loop over the first dimension of tensors, with carries";
  let description = [{
    The body takes the carries, slice `t` of each input (of which dimension 0 has
    `length` slices) and the constants. It yields the new carries, then slice `t`
    of each stacked result. The results are the last carries, then the stacks.
    `t` goes from 0 up to `length`, with `reverse` down to 0.

    With `trips`, data, only iterations with `t < trips` take place: in the others
    the carries stay as they are, and the slices of the stacks are zeros. Trips
    below 0 are none; `length` is the most.

    ```mlir
    %h, %hs = tandem.scan 10 trips %n carries(%h0) inputs(%xs) constants(%w) {
      ^bb0(%a: tensor<4xf32>, %x: tensor<4xf32>, %b: tensor<4xf32>):
        %m = tandem.mul %a, %b : tensor<4xf32>
        %s = tandem.add %m, %x : tensor<4xf32>
        tandem.yield %s, %s : tensor<4xf32>, tensor<4xf32>
    } : (tensor<i64>, tensor<4xf32>, tensor<10x4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<10x4xf32>)
    ```

    Gradient: a scan in the other direction, of which the carries are the
    cotangents of the carries and the gradients of the constants. An iteration of
    it makes the body again from the carries that it had, which the forward
    stacks.
  }];
  let arguments = (ins I64Attr:$length, Optional<IndexScalar>:$trips, UnitAttr:$reverse,
    Variadic<AnyTensor_>:$carries, Variadic<AnyTensor_>:$inputs, Variadic<AnyTensor_>:$constants);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $length (`reverse` $reverse^)? (`trips` $trips^)? `carries` `(` $carries `)`
    `inputs` `(` $inputs `)` `constants` `(` $constants `)` $body attr-dict
    `:` functional-type(operands, $results)
  }];
  let extraClassDeclaration = [{
    /// The results that are stacks of slices.
    ::mlir::ResultRange stacks() { return getResults().drop_front(getCarries().size()); }
  }];
}

def WhileOp : FlowOp<"while", [AttrSizedOperandSegments, RefusesGradient]> {
  let summary = "A loop that goes on while a bool says so";
  let description = [{
    Both regions take the carries and the constants. The condition yields one
    bool; the body, which runs while that is true, yields the new carries. The
    results are the last carries. How often it runs is not known before it has,
    so nothing can be kept for a backward: it has no gradient (a `tandem.scan`
    with `trips` has one).

    ```mlir
    %y = tandem.while carries(%x) constants(%limit) condition {
      ^bb0(%a: tensor<f32>, %l: tensor<f32>):
        %c = tandem.compare lt %a, %l : tensor<f32>
        tandem.yield %c : tensor<i1>
    } body {
      ^bb0(%a: tensor<f32>, %l: tensor<f32>):
        %b = tandem.add %a, %a : tensor<f32>
        tandem.yield %b : tensor<f32>
    } : (tensor<f32>, tensor<f32>) -> tensor<f32>
    ```
  }];
  let arguments = (ins Variadic<AnyTensor_>:$carries, Variadic<AnyTensor_>:$constants);
  let regions = (region SizedRegion<1>:$condition, SizedRegion<1>:$body);
  let assemblyFormat = [{
    `carries` `(` $carries `)` `constants` `(` $constants `)`
    `condition` $condition `body` $body attr-dict
    `:` functional-type(operands, $results)
  }];
}

#endif
