//===- Passes.td - the passes of lower: name, reason, options --------------===//
//
// A part of passes/Passes.td, which includes it behind the classes of passes.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_PASSES
#define TANDEM_PASSES_LOWER_PASSES

/// Of the code in `module @cpu`, a function at a time.
class CpuCodePass<string name> : Pass<name, "::mlir::func::FuncOp"> {
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

/// Of the code in `gpu.module @cuda`, or of a function there.
class CudaCodePass<string name, string op = "GPUModuleOp">
    : Pass<name, "::mlir::gpu::" # op> {
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def OutlineRegions : CodePass<"tandem-outline-regions"> {
  let summary = "Plans the regions of branches and loops as functions";
  let description = [{
    The kernel of a branch or a loop gets `tandem.regions`, a private function
    for each region, planned as programs are: the region's arguments and results
    are the function's. Equal kernels share their regions' functions.
  }];
  let statistics = [Statistic<"outlined", "outlined", "regions">];
}

def LowerHostCopies : FunctionPass<"tandem-lower-host-copies"> {
  let summary = "Puts copies to and from the host in the place of their kernels";
  let description = [{
    `to_host` and `to_device` say themselves where their result lies
    (`buffer`): they are no kernels with code.
  }];
  let statistics = [Statistic<"lowered", "lowered", "copies">];
}

def LowerCollectives : FunctionPass<"tandem-lower-collectives"> {
  let summary = "Puts collectives in the place of their kernels";
  let description = [{
    They say themselves where their result lies (`buffer`): they are no kernels with
    code. Refuses those that a target has no way to carry out.
  }];
  let statistics = [Statistic<"lowered", "lowered", "collectives">];
}

def DeduplicateKernels : ModulePass<"tandem-deduplicate-kernels"> {
  let summary = "Says which function each kernel becomes, and which share one";
  let description = [{
    `tandem.function` of a kernel is that of all kernels with equal regions and
    facts of their code; locations, names and places may differ. It is named
    after the first of them. Kernels of the regions of branches and loops are
    among them.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"",
           "the module that the functions will be in: 'cpu' or 'cuda'">,
  ];
  let statistics = [
    Statistic<"functions", "functions", "functions that kernels become">,
    Statistic<"shared", "shared", "kernels less, of those of programs">,
  ];
}

def EmitCpuKernels : CodePass<"tandem-emit-cpu-kernels"> {
  let summary = "Writes the code of each distinct kernel for a processor";
  let description = [{
    In `module @cpu`, as functions of arith, math, scf, memref, vector and
    some llvm ops: `NAME.body` for the `tandem.function` `@cpu::@NAME`, with the
    buffers, the range of items and scratch as parameters. The function says what
    the kernel is and how it can be split (`tandem.kernel`, `tandem.grain`).
    Branches and loops have no code of their own yet.
  }];
  let statistics = [Statistic<"emitted", "emitted", "functions">];
}

def LowerTransposes : CpuCodePass<"tandem-lower-transposes"> {
  let summary = "Replaces transposes of vectors by shuffles";
  let description = [{
    Canonicalization would turn a transpose into moves of elements.
  }];
}

def ExpandScalars : CpuCodePass<"tandem-expand-scalars"> {
  let summary = "Replaces functions of floats by arithmetic";
  let description = [{
    Polynomials for functions of f32, whose vectors libm has no names for, and
    integer code for bf16, and for f16 where the processor does not convert it.
    With `fast_math` of the module's target they take fewer steps.
  }];
}

def ContractFloats : CpuCodePass<"tandem-contract-floats"> {
  let summary = "Lets products and sums be rounded as one";
  let description = [{ Where the module's target says `fast_math`. }];
  let statistics = [Statistic<"contracted", "contracted", "ops">];
}

def EmitCpuWrappers : Pass<"tandem-emit-cpu-wrappers", "::mlir::ModuleOp"> {
  let dependentDialects = ["::tandem::TandemDialect", "::mlir::LLVM::LLVMDialect"];
  let summary = "Writes the functions with the kernel ABI";
  let description = [{
    `NAME` beside `NAME.body` (docs/ARCHITECTURE.md, section 3), and takes over
    what that says of the kernel. The function of a branch or a loop calls those
    of the kernels of its regions, one after the other; the regions' own
    functions go.
  }];
  let statistics = [Statistic<"wrappers", "wrappers", "functions">];
}

def EmitCudaKernels : CodePass<"tandem-emit-cuda-kernels"> {
  let summary = "Writes the code of each distinct kernel for a GPU";
  let description = [{
    In `gpu.module @cuda`, as functions with the ABI of docs/ARCHITECTURE.md,
    section 3, of what one thread does. The module's `tandem.target` names the
    architecture. A function says what the kernel is and how it is launched
    (`tandem.kernel`).
  }];
  let statistics = [Statistic<"emitted", "emitted", "functions">];
}

def ExpandCudaFunctions
    : CudaCodePass<"tandem-expand-cuda-functions", "GPUFuncOp"> {
  let summary = "Replaces functions of floats by arithmetic and instructions";
  let description = [{
    What the GPU has an instruction for is an intrinsic of LLVM: MLIR would call
    libdevice, which is not linked.
  }];
}

def DeclareSharedMemory : CudaCodePass<"tandem-declare-shared-memory"> {
  let summary = "Makes dynamic shared memory one that the launch gives";
  let description = [{
    With any linkage but an external one it would be a byte of its own. Bulk
    copies want it aligned.
  }];
  let statistics = [Statistic<"declared", "declared", "variables">];
}

def PassTensorMaps : CudaCodePass<"tandem-pass-tensor-maps"> {
  let summary = "Makes the tensor maps of kernels parameters by value";
  let description = [{
    The `tensor_maps` of `tandem.kernel` are parameters behind the buffers, 128
    bytes each, the same for all blocks.
  }];
  let statistics = [Statistic<"passed", "passed", "parameters">];
}

def LaunchKernels : ModulePass<"tandem-launch-kernels"> {
  let summary = "Replaces the kernels of programs by launches of their functions";
  let description = [{
    With the work, the grain and the grid that the functions say.
  }];
  let statistics = [Statistic<"launched", "launches", "launches">];
}

#endif
