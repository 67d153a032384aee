//===- Program.td - kernels and launches -----------------------------------===//
#ifndef TANDEM_IR_OPS_PROGRAM
#define TANDEM_IR_OPS_PROGRAM

include "ir/OpBase.td"
include "ir/Attributes.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def KernelOp : Tandem_Op<"kernel", [IsolatedFromAbove, RecursiveMemoryEffects,
    SingleBlock, NotDifferentiable,
    DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>]> {
  let summary = "A group of ops that runs as one kernel";
  let description = [{
    The region's arguments are the inputs, its yield the results. `buffers` holds
    one place per result, once planned. `stream` is the stream of the launch.
    `needs` and `choices` as in the artifact's manifest: which cotangents must be
    defined for the kernel to run, and what runs instead of it where some are not.
    `in_place`: the results that overwrite inputs. `parts`: of a kernel with several
    loop nests, how many results each has, in order. `non_temporal`: the numbers of
    the results that are stored past the caches, rising. `schedule`: how the kernel
    is computed and cut. `scratch_bytes`: the memory that its code takes beside the
    buffers, of each thread, or for CUDA of a launch. `library`: the call of a
    vendor's library that may run instead.

    ```mlir
    %y = tandem.kernel "fused_add_relu" (%a, %b) {
      ^bb0(%x0: tensor<4xf32>, %x1: tensor<4xf32>):
        %s = tandem.add %x0, %x1 : tensor<4xf32>
        %r = tandem.relu %s : tensor<4xf32>
        tandem.yield %r : tensor<4xf32>
    } {buffers = [#tandem.buffer<arena 0>], stream = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyTensor_>:$inputs, StrAttr:$name,
                       OptionalAttr<ArrayAttr>:$buffers, DefaultValuedAttr<I64Attr, "0">:$stream,
                       OptionalAttr<ArrayAttr>:$needs, OptionalAttr<ArrayAttr>:$choices,
                       OptionalAttr<InPlaceAttr>:$in_place, OptionalAttr<DenseI64ArrayAttr>:$parts,
                       OptionalAttr<DenseI64ArrayAttr>:$non_temporal,
                       OptionalAttr<ScheduleAttr>:$schedule,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$scratch_bytes,
                       OptionalAttr<LibraryCallAttr>:$library);
  // A kernel before it is planned: all of its attributes but these come later.
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$results, "::mlir::ValueRange":$inputs,
                                 "::llvm::StringRef":$name, "int64_t":$stream,
                                 "::mlir::ArrayAttr":$needs)>];
  let results = (outs Variadic<AnyTensor_>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$name `(` $inputs `)` $body attr-dict `:` functional-type($inputs, $results)";
  let hasVerifier = 1;
  let extraClassDefinition = [{
    ::tandem::OpClass $cppClass::getOpClass() { return ::tandem::OpClass::Program; }
  }];
}

def YieldOp : Tandem_Op<"yield", [Pure, Terminator, ReturnLike, ParentOneOf<["KernelOp", "CustomVjpOp", "IfOp", "ScanOp", "WhileOp"]>]> {
  let summary = "Hands a region's values to its op";
  let arguments = (ins Variadic<AnyTensor_>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def LaunchOp : Tandem_Op<"launch", [Pure, NotDifferentiable]> {
  let summary = "Runs a lowered kernel";
  let description = [{
    `kernel` names an LLVM function with the kernel ABI (docs/ARCHITECTURE.md,
    section 3) in the module of the target, e.g. `@cpu::@fused_add_relu`. Its
    buffers are the inputs, then the results, in order; `buffers` has one place
    per result. `work`, `grain` as in the ABI. For `cuda`, `grid` has the blocks
    of the launch, `work` in all, and `grain` is 1. `library` as of kernels.
  }];
  let arguments = (ins SymbolRefAttr:$kernel, Variadic<AnyTensor_>:$inputs,
                       ArrayAttr:$buffers, I64Attr:$work, I64Attr:$grain,
                       DefaultValuedAttr<I64Attr, "0">:$stream,
                       OptionalAttr<ArrayAttr>:$needs, OptionalAttr<ArrayAttr>:$choices,
                       OptionalAttr<DenseI64ArrayAttr>:$grid,
                       OptionalAttr<LibraryCallAttr>:$library);
  let results = (outs Variadic<AnyTensor_>:$results);
  let assemblyFormat = "$kernel `(` $inputs `)` attr-dict `:` functional-type($inputs, $results)";
  let hasVerifier = 1;
}

#endif
