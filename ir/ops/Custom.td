//===- Custom.td - gradients that a program brings itself ------------------===//
#ifndef TANDEM_IR_OPS_CUSTOM
#define TANDEM_IR_OPS_CUSTOM

include "ir/OpBase.td"
include "ir/Attributes.td"

def CustomVjpOp : Tandem_Op<"custom_vjp", [IsolatedFromAbove, AttrSizedOperandSegments,
    RecursiveMemoryEffects,
    DeclareOpInterfaceMethods<DifferentiableOpInterface, ["numGradientOperands", "numGradientResults"]>,
    DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>]> {
  let summary = "A piece of a program with a backward of its own";
  let description = [{
    Captured form. The forward's arguments are `inputs`, then `refs`; it yields
    the results, then what it saves. The backward's arguments are the saved
    values, a cotangent per result (a ref where the backward writes it), then
    `refs` as they are when it runs; it yields a gradient per input,
    `tandem.undefined` where there is none. `writes` and `backward_writes` are the
    positions in `refs` that each region writes; `unchecked` the positions among
    the saved values that may be overwritten; `undefined_cotangents` asks for
    undefined cotangents instead of zeros; `first_order` refuses a second
    differentiation.

    Functional form (after functionalize). There are no refs. The first `outputs`
    results are the forward's, then come the new values of what it wrote, then
    `saved` saved values. Gradients belong to the first `differentiable` inputs. The
    backward's arguments after the cotangents are the `states`: dictionaries with
    the `name` of an argument of the graph or the position of an `input`, and the
    unit `written` where it is written. It yields the gradients, the new values of the written
    states, then those of the cotangents in `cotangent_writes`. `rejected` lists
    what a backward cannot do, for the joint to report.

    ```mlir
    %y = tandem.custom_vjp "double" (%x) refs(%s) forward {
      ^bb0(%a: tensor<4xf32>, %r: !tandem.ref<4xf32>):
        %b = tandem.add %a, %a : tensor<4xf32>
        tandem.yield %b, %a : tensor<4xf32>, tensor<4xf32>
    } backward {
      ^bb0(%a: tensor<4xf32>, %dy: tensor<4xf32>, %r: !tandem.ref<4xf32>):
        tandem.write %dy into %r : tensor<4xf32>, !tandem.ref<4xf32>
        %dx = tandem.add %dy, %dy : tensor<4xf32>
        tandem.yield %dx : tensor<4xf32>
    } {backward_writes = array<i64: 0>} : (tensor<4xf32>), (!tandem.ref<4xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyTensor_>:$inputs, Variadic<Tandem_Ref>:$refs, StrAttr:$name,
    DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$writes,
    DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$backward_writes,
    DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$unchecked,
    UnitAttr:$undefined_cotangents, UnitAttr:$first_order,
    OptionalAttr<I64Attr>:$outputs, OptionalAttr<I64Attr>:$saved, OptionalAttr<I64Attr>:$differentiable,
    OptionalAttr<ArrayAttr>:$states,
    DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$cotangent_writes,
    OptionalAttr<ArrayAttr>:$rejected);
  let results = (outs Variadic<AnyTensor_>:$results);
  let regions = (region SizedRegion<1>:$forward, SizedRegion<1>:$backward);
  let assemblyFormat = [{
    $name `(` $inputs `)` (`refs` `(` $refs^ `)`)? `forward` $forward `backward` $backward
    attr-dict `:` custom<OperandTypes>(type($inputs)) `,` custom<OperandTypes>(type($refs))
    `->` custom<ResultTypes>(type($results))
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// True after functionalize.
    bool isFunctional() { return getOutputs().has_value(); }
    /// The results that gradients flow into.
    unsigned numOutputs() { return isFunctional() ? *getOutputs() : getNumResults(); }
    /// The inputs that the backward gives gradients for.
    unsigned numDifferentiable() {
      return isFunctional() ? *getDifferentiable() : getInputs().size();
    }
    unsigned numSaved() {
      return isFunctional() ? *getSaved()
                            : getForward().front().getTerminator()->getNumOperands() - getNumResults();
    }
    /// 'custom_vjp "name"', for messages.
    std::string str();
  }];
  let extraClassDefinition = [{
    ::tandem::OpClass $cppClass::getOpClass() { return ::tandem::OpClass::Composite; }
    int64_t $cppClass::getFlops() { return 0; }
    unsigned $cppClass::numGradientOperands() { return numDifferentiable(); }
    unsigned $cppClass::numGradientResults() { return numOutputs(); }
  }];
}

def UndefinedOp : Tandem_PureOp<"undefined", [NotDifferentiable]> {
  let summary = "No gradient: what a custom backward gives where there is none";
  let results = (outs AnyTensor_:$y);
  let assemblyFormat = "attr-dict `:` type($y)";
}

def GradOp : Tandem_PureOp<"grad", []> {
  let summary = "The gradient of a sum of elements, taken inside of a program";
  let description = [{
    The gradient of the sum of `e` with respect to each value of `wrt`, all made
    earlier in the same program. The result is differentiable in its turn.
  }];
  let arguments = (ins FloatTensor:$e, Variadic<FloatTensor>:$wrt);
  let results = (outs Variadic<FloatTensor>:$results);
  let assemblyFormat = "$e `wrt` `(` $wrt `)` attr-dict `:` type($e) `,` type($wrt) `->` type($results)";
  let hasVerifier = 1;
}

#endif
