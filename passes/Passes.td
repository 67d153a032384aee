//===- Passes.td - every pass: name, reason, options -----------------------===//
//
// A pass has one name in four spellings: BuildJoint.cpp, BuildJoint here,
// --tandem-build-joint, build-joint.mlir (its test).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES
#define TANDEM_PASSES

include "mlir/Pass/PassBase.td"

class ModulePass<string name> : Pass<name, "::mlir::ModuleOp"> {
  let dependentDialects = ["::tandem::TandemDialect", "::mlir::func::FuncDialect"];
}

//===----------------------------------------------------------------------===//
// functionalize
//===----------------------------------------------------------------------===//

def FunctionalizeRefs : ModulePass<"tandem-functionalize-refs"> {
  let summary = "Turns storage into values, and mutations into results";
  let description = [{
    After it no op of `@graph` has a memory effect. A read is the value that the
    storage holds; a write through a view is a scatter into the base; what was
    written to an argument is a result with the role `update of` it. Results
    are the outputs, then the updates in the order of the arguments.
  }];
}

//===----------------------------------------------------------------------===//
// joint
//===----------------------------------------------------------------------===//

def CheckRandom : ModulePass<"tandem-check-random"> {
  let summary = "Refuses random numbers that would repeat";
  let description = [{
    Errors are: a state that ops of `@graph` draw from and that is not advanced,
    two draws of one number from one state, and a draw whose state is the same in
    every iteration of a loop. Warnings are: a state that does not follow the
    seed of the run, and a `dropout` that drops nothing. A program of inference
    alone draws as it likes.
  }];
}

def RecordRanges : ModulePass<"tandem-record-ranges"> {
  let summary = "Says which labels and indices the ops that read them take";
  let description = [{
    The role of an integer input gets `high`, the classes of a cross_entropy or
    the rows of a table that it is an index of (the smaller one, if it says
    `high` already), and `ignored`, the one value beside them that its ops leave
    out. Training and predicting check data against it.
  }];
}

def BuildJoint : ModulePass<"tandem-build-joint"> {
  let summary = "Differentiates the graph, and makes its form for inference";
  let description = [{
    Composite ops are decomposed first. `@joint` is the graph with one more
    argument, the cotangent, for each differentiable output, and one more
    result, the gradient, for each argument that requires grad; its ops are
    tagged forward or backward. `@evaluate` is the graph in inference mode,
    without updates. The module's `tandem.loss` names the loss where one output
    alone has a cotangent. What custom backwards write of arguments are updates
    of the pass backward; `tandem.mutated_in_backward` lists the arguments among
    them that require grad.
  }];
  let options = [
    Option<"loss", "loss", "std::string", "", "the output to differentiate; "
      "by default the one that the module's 'tandem.loss' names, else the one "
      "named 'loss', else every one that depends on an argument that requires "
      "grad">,
    Option<"inference", "inference", "bool", "false", "keep only '@evaluate'">,
    Option<"order", "order", "int64_t", "1", "how often the programs can be "
      "differentiated; 2 adds '@grad_joint', the joint of the joint">,
  ];
}

//===----------------------------------------------------------------------===//
// optimize
//===----------------------------------------------------------------------===//

def RecordRows : ModulePass<"tandem-record-rows"> {
  let summary = "Says what the outputs of @evaluate follow from, and how over rows";
  let description = [{
    The batch is the first dimension of the inputs. The role of an output gets
    `inputs`, those that it follows from, and `rows`: `"each"` where row i of it
    follows from row i of the inputs alone, `"mean"` where it is a mean over rows;
    `counted` names the input whose `ignored` elements do not count in it. An op
    that the pass does not know leaves `rows` out.
  }];
}

def OptimizeJoint : ModulePass<"tandem-optimize-joint"> {
  let summary = "Simplifies, merges equal ops of forward and backward, and tags anew";
  let description = [{
    Afterwards an op of `@joint` is forward exactly if an output or an update
    needs it. Only rewrites that keep every bit are made.
  }];
}

//===----------------------------------------------------------------------===//
// partition
//===----------------------------------------------------------------------===//

def PartitionJoint : ModulePass<"tandem-partition-joint"> {
  let summary = "Divides the joint into forward, backward, update and step";
  let description = [{
    `@forward` gives the outputs, the updates and the saved values; `@backward`
    takes what it needs of the arguments, the saved values and the cotangents,
    and gives the gradients. Where the module names an optimizer
    (`tandem.optimizer`, a spec such as `adamw:lr=1e-3`), `@update` gives the
    new parameters and `@step` is one whole training step.

    Where the module says `tandem.prepare`, for inference alone, `@prepare`
    gives what `@evaluate` would compute of parameters and states alone in every
    call, and `@evaluate` takes it (docs/rationale/frozen-parameters.md).

    With a memory budget partitions that save less are planned as well, from the
    least peak to the fastest step, and the fastest within the budget is taken.
    What there was to choose from stands in the module's `tandem.partition`.
  }];
  let dependentDialects = [
    "::tandem::TandemDialect", "::mlir::func::FuncDialect",
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let options = [
    Option<"memoryBudget", "memory-budget", "std::string", "",
      "the most memory that a step may take: a number from 0, the least that is "
      "possible, to 1, the fastest plan's, or bytes such as '6GiB'">,
    Option<"kind", "kind", "std::string", "\"min-cut\"", "what is saved: "
      "'default' (all that the backward uses) or 'min-cut' (the fewest bytes)">,
    Option<"remarks", "remarks", "bool", "false",
      "say what is saved and what is computed again">,
  ];
}

//===----------------------------------------------------------------------===//
// plan
//===----------------------------------------------------------------------===//

def PlanPrograms : ModulePass<"tandem-plan-programs"> {
  let summary = "Groups ops into kernels and gives every value its place";
  let description = [{
    Fuses the ops of every program into kernels (docs/ARCHITECTURE.md, section
    6), in the order of the program, and gives each kernel's result an offset in
    the arena, a result or an argument.
  }];
  let options = [
    Option<"remarks", "remarks", "bool", "false",
           "say how many kernels and bytes each program has">,
  ];
  let dependentDialects = [
    "::tandem::TandemDialect", "::mlir::func::FuncDialect",
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

//===----------------------------------------------------------------------===//
// lower
//===----------------------------------------------------------------------===//

def LowerToCpu : Pass<"tandem-lower-to-cpu", "::mlir::ModuleOp"> {
  let summary = "Makes an LLVM function of each distinct kernel, and launches";
  let description = [{
    The functions stand in `module @cpu` and have the ABI of
    docs/ARCHITECTURE.md, section 3.
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::func::FuncDialect",
    "::mlir::index::IndexDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::ub::UBDialect",
    "::mlir::vector::VectorDialect"];
}

def LowerToCuda : Pass<"tandem-lower-to-cuda", "::mlir::ModuleOp"> {
  let summary = "Makes a CUDA kernel of each distinct kernel, and launches";
  let description = [{
    The kernels stand in `gpu.module @cuda`, in the LLVM and NVVM dialects, and
    have the ABI of docs/ARCHITECTURE.md, section 3. The module's
    `tandem.target` names the architecture.
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::func::FuncDialect",
    "::mlir::gpu::GPUDialect", "::mlir::index::IndexDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::nvgpu::NVGPUDialect", "::mlir::scf::SCFDialect",
    "::mlir::ub::UBDialect", "::mlir::vector::VectorDialect"];
}

#endif
