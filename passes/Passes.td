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

class FunctionPass<string name> : Pass<name, "::mlir::func::FuncOp"> {
  let dependentDialects = [
    "::tandem::TandemDialect", "::mlir::func::FuncDialect",
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

//===----------------------------------------------------------------------===//
// Of every phase
//===----------------------------------------------------------------------===//

def EnterPhase : ModulePass<"tandem-enter-phase"> {
  let summary = "Refuses a module that is not where the phase begins";
  let description = [{
    Checks the stamp `tandem.phase`, and what the phase before promises of a
    module (docs/ARCHITECTURE.md, section 2), which an edit may have broken.
  }];
  let options = [
    Option<"after", "after", "std::string", "", "the phase before">,
  ];
}

def LeavePhase : ModulePass<"tandem-leave-phase"> {
  let summary = "Stamps the module with the phase, and checks what it promises";
  let options = [
    Option<"phase", "phase", "std::string", "", "the phase that ends">,
  ];
}

def EraseDeadOps : FunctionPass<"tandem-erase-dead-ops"> {
  let summary = "Erases the ops whose results nothing uses";
  let statistics = [Statistic<"erased", "erased", "ops that were erased">];
}

def FoldEmptyTensors : FunctionPass<"tandem-fold-empty-tensors"> {
  let summary = "Makes constants of tensors without elements, and of sums of none";
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

def BuildEvaluate : ModulePass<"tandem-build-evaluate"> {
  let summary = "Copies the graph as @evaluate, its form for inference";
  let description = [{
    Its ops follow inference, it gives the outputs alone, and nothing is written.
    For inference alone it takes the place of `@graph`, without the loss and
    what only the loss reads.
  }];
  let options = [
    Option<"loss", "loss", "std::string", "", "the output that is the loss; by "
      "default the one that the module's 'tandem.loss' names, else the one named "
      "'loss'">,
    Option<"inference", "inference", "bool", "false", "keep only '@evaluate'">,
  ];
}

def FuseComposites : FunctionPass<"tandem-fuse-composites"> {
  let summary = "Replaces composites by ops that do what they mean at once";
  let description = [{
    Where the module is compiled for a target, all of which have kernels for
    these, and the function is differentiated at most once.
  }];
  let options = [
    Option<"order", "order", "int64_t", "1", "how often '@graph' is "
           "differentiated">,
  ];
  let statistics = [Statistic<"fused", "fused", "composites that were replaced">];
}

def DecomposeComposites : FunctionPass<"tandem-decompose-composites"> {
  let summary = "Replaces composites by simpler ops, until none is left";
  let statistics = [
    Statistic<"decomposed", "decomposed", "composites that were replaced">,
  ];
}

def ExpandGrads : FunctionPass<"tandem-expand-grads"> {
  let summary = "Replaces gradients inside of a program by the ops that compute them";
  let statistics = [Statistic<"expanded", "expanded", "gradients">];
}

def Differentiate : ModulePass<"tandem-differentiate"> {
  let summary = "Makes @joint, the graph and its backward, of @graph";
  let description = [{
    `@joint` is the graph with one more argument, the cotangent, for each
    differentiable output, and one more result, the gradient, for each argument
    that requires grad; its ops are tagged forward or backward. The module's
    `tandem.loss` names the loss where one output alone has a cotangent. Ops with
    a custom backward keep it, for who differentiates again.
  }];
  let options = [
    Option<"loss", "loss", "std::string", "", "the output to differentiate; "
      "by default the one that the module's 'tandem.loss' names, else the one "
      "named 'loss', else every one that depends on an argument that requires "
      "grad">,
    Option<"order", "order", "int64_t", "1", "how often the programs can be "
      "differentiated; 2 adds '@grad_joint', the joint of the joint">,
  ];
}

def InlineCustomVjps : FunctionPass<"tandem-inline-custom-vjps"> {
  let summary = "Puts in what ops with a custom backward compute";
}

def SealMutations : ModulePass<"tandem-seal-mutations"> {
  let summary = "Lists the arguments that require grad and the backward writes";
  let description = [{
    What custom backwards write of arguments are updates of the pass backward.
    The module's `tandem.mutated_in_backward` is made here and never changed
    again; the runtime checks calls against it.
  }];
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

def ExpandFlow : FunctionPass<"tandem-expand-flow"> {
  let summary = "Replaces branches and loops by ops that compute all of them";
  let description = [{
    And select. Where the target runs them, large loops stay, and those whose end
    is not known.
  }];
  let statistics = [Statistic<"expanded", "expanded", "ops that were replaced">];
}

def SetPrecision : FunctionPass<"tandem-set-precision"> {
  let summary = "Says at each product what the compilation asks of its precision";
}

def Simplify : FunctionPass<"tandem-simplify"> {
  let summary = "Folds, canonicalizes, and merges equal ops of forward and backward";
  let description = [{
    Only rewrites that keep every bit are made. What ops say about saving holds
    for what is left of them (passes/optimize/CarryTags.h), and a gradient that
    folds to a constant is undefined where it was before.
  }];
  let statistics = [
    Statistic<"merged", "merged", "ops that were equal to one before">,
    Statistic<"erased", "erased", "ops less, all in all">,
  ];
}

def HoistConstants : FunctionPass<"tandem-hoist-constants"> {
  let summary = "Makes the constants that regions keep in memory operands of their ops";
}

def MarkPasses : FunctionPass<"tandem-mark-passes"> {
  let summary = "Says of each op of a joint whether it is of forward or backward";
  let description = [{
    An op is forward exactly if an output or an update needs it.
  }];
  let statistics = [Statistic<"forward", "forward", "ops of the forward">];
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

def SplitReductions : FunctionPass<"tandem-split-reductions"> {
  let summary = "Replaces reductions that lower badly by others that mean the same";
  let description = [{
    Over dimensions of size 1 by reshapes; of very many elements into few results
    by two steps, the first of which has enough results to run in parallel. The
    lengths of partial sums decide bits, so they follow from shapes alone
    (docs/rationale/same-bits-in-every-plan.md).
  }];
  let statistics = [Statistic<"split", "split", "reductions in two steps">];
}

def SplitFilterGrads : FunctionPass<"tandem-split-filter-grads"> {
  let summary = "Cuts gradients of convolutions' filters into parts of the images";
  let description = [{
    For processors, where there are too few blocks of results for many threads.
  }];
  let statistics = [Statistic<"splits", "split", "gradients in parts">];
}

def FormKernels : FunctionPass<"tandem-form-kernels"> {
  let summary = "Groups the ops of a program into kernels";
  let description = [{
    A kernel is a loop nest of pointwise ops, views and reductions, or one anchor
    (contraction, window, indexed) with pointwise ops after it
    (docs/ARCHITECTURE.md, section 6).
  }];
  let statistics = [Statistic<"formed", "kernels", "kernels that were formed">];
}

def JoinAttention : FunctionPass<"tandem-join-attention"> {
  let summary = "Makes one kernel of an attention's gradients for queries and keys";
  let description = [{ For processors, where that is worthwhile. }];
  let statistics = [Statistic<"joined", "joined", "pairs of kernels">];
}

def ChooseLibraries : FunctionPass<"tandem-choose-libraries"> {
  let summary = "Says which kernels a vendor's library may run instead";
  let description = [{
    For CUDA: `library` of a kernel is the call, with the workspace that it
    needs. The module's target says whether all, none, or those that the table
    of passes/plan/LibraryTable.cpp takes to be faster.
  }];
  let statistics = [Statistic<"chosen", "chosen", "kernels with a call">];
}

def OrderKernels : FunctionPass<"tandem-order-kernels"> {
  let summary = "Puts kernels in an order that needs less memory, where there is one";
  let statistics = [Statistic<"moved", "moved", "programs in another order">];
}

def JoinPointwise : FunctionPass<"tandem-join-pointwise"> {
  let summary = "Makes one kernel with several parts of small pointwise ones";
  let description = [{
    For CUDA: of those whose results are only returned, as an optimizer's are.
    They run as late as the memory that they hold on to allows.
  }];
  let statistics = [Statistic<"joined", "joined", "kernels that became parts">];
}

def PlaceHostCopies : FunctionPass<"tandem-place-host-copies"> {
  let summary = "Moves copies to and from the host to where they hide behind kernels";
}

def PlanMemory : FunctionPass<"tandem-plan-memory"> {
  let summary = "Gives every value its place, and says which inputs are overwritten";
  let description = [{
    Sets `buffers` and `in_place` of the kernels and `tandem.plan` of the
    function.
  }];
}

def ChooseNonTemporalStores : FunctionPass<"tandem-choose-non-temporal-stores"> {
  let summary = "Says which results are stored past the caches";
  let description = [{
    For processors: those that a cache cannot keep until they are read
    (passes/plan/PastCaches.h).
  }];
  let statistics = [Statistic<"chosen", "chosen", "results past the caches">];
}

def CheckPlan : FunctionPass<"tandem-check-plan"> {
  let summary = "Refuses a plan in which values that live at once overlap";
}

def PlaceConstants : ModulePass<"tandem-place-constants"> {
  let summary = "Gives equal constants of all programs one place";
}

def ReportPlan : ModulePass<"tandem-report-plan"> {
  let summary = "Says what memory a step takes";
  let description = [{
    In the module's `tandem.step_memory`, which follows from the programs.
  }];
  let options = [
    Option<"remarks", "remarks", "bool", "false",
           "say how many kernels and bytes each program has">,
  ];
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
