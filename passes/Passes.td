//===- Passes.td - every pass: name, reason, options -----------------------===//
//
// A pass has one name in four spellings: SetPrecision.cpp, SetPrecision here,
// --tandem-set-precision, set-precision.mlir (its test).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES
#define TANDEM_PASSES

include "mlir/Pass/PassBase.td"

class ModulePass<string name> : Pass<name, "::mlir::ModuleOp"> {
  let dependentDialects = ["::tandem::TandemDialect", "::mlir::func::FuncDialect"];
}

/// What asks for costs, or for ops that repeat exactly, needs the scalar code of
/// ops.
class CostPass<string name> : ModulePass<name> {
  let dependentDialects = [
    "::tandem::TandemDialect", "::mlir::func::FuncDialect",
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

class FunctionPass<string name> : Pass<name, "::mlir::func::FuncOp"> {
  let dependentDialects = [
    "::tandem::TandemDialect", "::mlir::func::FuncDialect",
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

/// What chooses or writes the code of kernels makes ops of these.
class CodePass<string name, string on = "::mlir::ModuleOp"> : Pass<name, on> {
  let dependentDialects = [
    "::tandem::TandemDialect", "::mlir::func::FuncDialect",
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::gpu::GPUDialect",
    "::mlir::index::IndexDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::nvgpu::NVGPUDialect",
    "::mlir::scf::SCFDialect", "::mlir::ub::UBDialect",
    "::mlir::vector::VectorDialect"];
}

//===----------------------------------------------------------------------===//
// Of every phase
//===----------------------------------------------------------------------===//

def EnterPhase : ModulePass<"tandem-enter-phase"> {
  let summary = "Refuses a module that is not where the phase begins";
  let description = [{
    Checks the stamp `tandem.phase`, and what the phase before promises of a
    module (passes/verify/PhaseVerifiers.h), which an edit may have broken.
  }];
  let options = [
    Option<"after", "after", "std::string", "", "the phase before">,
  ];
}

def LeavePhase : ModulePass<"tandem-leave-phase"> {
  let summary = "Stamps the module with the phase, and checks what it promises";
  let description = [{
    Sets `tandem.phase` and runs the verifier of the phase
    (passes/verify/PhaseVerifiers.h), which also runs on every module that is read back
    at it.
  }];
  let options = [
    Option<"phase", "phase", "std::string", "", "the phase that ends">,
  ];
}

def EraseDeadOps : FunctionPass<"tandem-erase-dead-ops"> {
  let summary = "Erases the ops whose results nothing uses";
  let description = [{
    Those without an effect, and what only they used: in one walk from the end.
  }];
  let statistics = [Statistic<"erased", "erased", "ops that were erased">];
}

def FoldEmptyTensors : FunctionPass<"tandem-fold-empty-tensors"> {
  let summary = "Makes constants of tensors without elements, and of sums of none";
  let description = [{
    Other passes take it that there are elements.
  }];
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
    out. Training and predicting check data against it. `ranges` says the same of
    slices that are read as other indices than the rest, or alone.
  }];
}

def AddAdapters : ModulePass<"tandem-add-adapters"> {
  let summary = "Trains low-rank adapters beside frozen weights";
  let description = [{
    Of the weights that the module's `tandem.lora` names, the right factors of
    products: each product gets `scale * (x a^T) b^T` added to it. The factors
    are parameters behind the others, named as PEFT names them
    (runtime/artifact/Adapters.h), and no other parameter requires grad any more,
    but those that `modules_to_save` names.
  }];
}

def QuantizeProducts : ModulePass<"tandem-quantize-products"> {
  let summary = "Multiplies weights in f8, scaled by what earlier calls saw";
  let description = [{
    Of the weights that the module's `tandem.fp8` names, the right factors of
    products: each product becomes a `tandem.custom_vjp` whose factors are
    rounded to f8E4M3FN, and the gradient of its result to f8E5M2, behind a scale
    that follows from a history of largest magnitudes. The histories are states
    behind the other arguments, `fp8.x:W` and `fp8.w:W`, which the forward writes,
    and `fp8.grad:W`, which the backward writes; of the second product of one
    weight they are called `fp8.x.1:W` and so on.
  }];
}

def ApplyAutocast : ModulePass<"tandem-apply-autocast"> {
  let summary = "Writes mixed precision out, as casts and ops of the low type";
  let description = [{
    Of the module's `tandem.amp`, and of what ops say: `tandem.autocast` of the
    region that they were recorded in, and `tandem.compute_type`, which counts
    more than the rest. Of ops of f32, contractions become low; softmax,
    normalizations, losses, sums and powers stay in f32; others follow, and are
    low where all that they read is (docs/ops.md says it of each op). Arguments,
    results and what a `tandem.custom_vjp` computes keep their types.
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

def SplitBatchNorms : ModulePass<"tandem-split-batch-norms"> {
  let summary = "Gives each rank statistics of its own rows, where the module asks for it";
  let description = [{
    Of `tandem.batch_norm = "per-rank"`: each `batch_norm` in training normalizes
    as many groups of rows as the mesh has ranks along `data`, each by its own
    statistics. The new running statistics are the mean of the groups', in which
    ranks agree.
  }];
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
  let description = [{
    By those that the op itself says (`CompositeOpInterface`): composites are
    differentiated and compiled as what they are made of.
  }];
  let statistics = [
    Statistic<"decomposed", "decomposed", "composites that were replaced">,
  ];
}

def ExpandGrads : FunctionPass<"tandem-expand-grads"> {
  let summary = "Replaces gradients inside of a program by the ops that compute them";
  let description = [{
    A `tandem.grad` differentiates its region where it stands.
  }];
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
  let description = [{
    The forward regions of `tandem.custom_vjp`, once nobody differentiates any
    more.
  }];
}

def SetBackwardType : ModulePass<"tandem-set-backward-type"> {
  let summary = "Computes the backward in another type than the forward";
  let description = [{
    In `tandem.backward_type` of the module. Without it an op of the backward has
    the types that follow from its forward op. With f32 every op of the backward
    that has f16 or bf16 is computed in f32; with a low type those are low that
    `tandem-apply-autocast` would make low. Gradients keep their types.
  }];
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
// partition
//===----------------------------------------------------------------------===//

def DropAliasOutputs : FunctionPass<"tandem-drop-alias-outputs"> {
  let summary = "Takes outputs that are views out of the results of a program";
  let description = [{
    Whoever calls the program makes them: `tandem.aliases` of the function says
    of which argument or other output they are views. Joints keep theirs until
    they are divided, since what is given out counts in the choice of what is
    saved.
  }];
  let statistics = [Statistic<"dropped", "dropped", "outputs that are views">];
}

def ClearTags : FunctionPass<"tandem-clear-tags"> {
  let summary = "Takes off what ops say of themselves and nobody reads any more";
  let description = [{
    `tandem.no_grad` of all ops, and what the ops of a program that is no joint
    say about saving.
  }];
  let statistics = [Statistic<"cleared", "cleared", "ops that said something">];
}

def FoldNorms : ModulePass<"tandem-fold-norms"> {
  let summary = "Multiplies filters by the scales behind their convolutions, once";
  let description = [{
    Where the module says `tandem.prepare`. What follows a convolution of f32 or
    f64 and has a number of params and states for each plane (sums, differences
    and products, as of a batch norm that infers) becomes one filter, `w * scale`,
    and one `shift` that is added; both say `tandem.prepared`. In real numbers
    that is the same, in rounded ones not (docs/rationale/frozen-parameters.md).
  }];
  let statistics = [Statistic<"folded", "folded", "convolutions whose filters are multiplied">];
}

def PackWeights : ModulePass<"tandem-pack-weights"> {
  let summary = "Gives products panels of their weights, where they gain by it";
  let description = [{
    Where the module says `tandem.prepare`. The panels (passes/common/PackedWeights.h) are
    views of the weights, which say `tandem.prepared`: they are to be computed
    once.
  }];
  let statistics = [Statistic<"packed", "packed", "products that read panels">];
}

def SplitFrozen : CostPass<"tandem-split-frozen"> {
  let summary = "Makes @prepare of what is the same in every call of @evaluate";
  let description = [{
    Where the module says `tandem.prepare`, for inference alone, `@prepare`
    gives what `@evaluate` would compute of params, states and constants alone
    in every call, and `@evaluate` takes it behind its other arguments, which all
    stay (docs/rationale/frozen-parameters.md). A value is prepared if computing
    it takes longer than reading it, or if its op says `tandem.prepared = "NAME"`.
  }];
  let statistics = [Statistic<"split", "prepared", "values that are prepared">];
}

def DropHostOffload : ModulePass<"tandem-drop-host-offload"> {
  let summary = "Takes `tandem.offload` off where programs run in the host's memory";
  let description = [{ A remark says so. }];
  let statistics = [Statistic<"dropped", "dropped", "ops that said it">];
}

def CheckSaveTags : CostPass<"tandem-check-save-tags"> {
  let summary = "Refuses tags that leave no way to divide the joint";
  let description = [{
    What ops say about saving (`tandem.save`, `tandem.offload`,
    `tandem.recompute`, `tandem.checkpoint`) is obeyed, whatever it costs. Errors
    are: a value that the backward needs and that may neither be saved nor be
    computed again, with the way by which it is needed, and a tag on an op that
    the backward alone has.
  }];
}

def ChooseRegions : CostPass<"tandem-choose-regions"> {
  let summary = "Takes the marks off regions that cost more memory than they save";
  let description = [{
    What a region keeps can be more than what it need not save. Copies of the
    module are divided and planned with and without `tandem.checkpoint`; a region
    goes where the planned peak of a step would be above that without it, and a
    remark says so. Where what is saved has been chosen, regions stay.
  }];
  let options = [
    Option<"kind", "kind", "std::string", "\"min-cut\"",
           "how the copies choose what is saved, as of tandem-choose-saved">,
  ];
  let statistics = [Statistic<"dropped", "dropped", "regions">];
}

def ChooseSaved : CostPass<"tandem-choose-saved"> {
  let summary = "Marks the values that the forward saves for the backward";
  let description = [{
    Ops and arguments of `@joint` and `@grad_joint` whose results or values are
    saved get `tandem.saved` with the reason (ir/PartitionMarks.h), the joints
    `tandem.saved_by` with the kind. A joint that says the latter stays as it
    is, so that a module that was printed behind this pass, and edited, can be
    compiled on. Constants, and arguments that keep their value until the
    backward has run, need no saving.
  }];
  let options = [
    Option<"kind", "kind", "std::string", "\"min-cut\"", "what is saved: "
      "'default' (all that the backward uses) or 'min-cut' (what costs the "
      "least to save, or to compute again)">,
  ];
  let statistics = [Statistic<"saved", "saved", "values that are marked">];
}

def FitMemoryBudget : CostPass<"tandem-fit-memory-budget"> {
  let summary = "Marks what the fastest step within a memory budget saves";
  let description = [{
    Begins with what is marked, for the fastest step of all. Copies of the module
    with other marks are divided and planned, from the least peak to the fastest
    step (docs/rationale/memory-budget.md), and the fastest within the budget is
    taken. What there was to choose from stands in the module's
    `tandem.partition`.
  }];
  let options = [
    Option<"memoryBudget", "budget", "std::string", "",
      "the most memory that a step may take: a number from 0, the least that is "
      "possible, to 1, the fastest plan's, or bytes such as '6GiB'">,
  ];
  let statistics = [
    Statistic<"points", "points", "partitions that a budget can choose from">,
  ];
}

def ReportPartition : CostPass<"tandem-report-partition"> {
  let summary = "Says what is saved, what is computed again, and why";
  let description = [{
    In the module's `tandem.partition`, which decides nothing (ir/Report.h), and
    on request in remarks. What is to be offloaded and stays on the device is
    said in any case.
  }];
  let statistics = [
    Statistic<"repeated", "repeated", "ops that the backward runs again">,
  ];
  let options = [
    Option<"remarks", "remarks", "bool", "false",
      "say what is saved and what is computed again">,
  ];
}

def SplitJoint : CostPass<"tandem-split-joint"> {
  let summary = "Divides the joint into forward and backward along what is marked";
  let description = [{
    `@forward` gives the outputs, the updates and the values that say
    `tandem.saved`; `@backward` takes what it needs of the arguments, the saved
    values and the cotangents, and gives the gradients. What is neither an
    argument nor saved is computed again, just before its first use. `@grad_joint`
    becomes `@grad_forward`, which does what `@backward` does and keeps what its
    own backward needs, and `@grad_backward`.

    Errors are: a joint whose saved values nobody has chosen, a mark on what both
    programs have or the backward alone has, and a value without a mark that the
    backward needs and cannot make.
  }];
  let statistics = [Statistic<"saved", "saved", "values that @forward saves">];
}

def RecordReaders : ModulePass<"tandem-record-readers"> {
  let summary = "Says which op of a backward first reads what the forward leaves";
  let description = [{
    In `where` of the role, for the message of a value that was overwritten in
    between. What a forward saves says the same as the backward that takes it.
  }];
  let statistics = [Statistic<"recorded", "recorded", "arguments with a reader">];
}

def InsertHostCopies : FunctionPass<"tandem-insert-host-copies"> {
  let summary = "Copies what is saved in the host's memory there and back";
  let description = [{
    A program that gives or takes a saved value that says `host` gets the op
    `to_host` or `to_device`.
  }];
  let statistics = [Statistic<"inserted", "inserted", "copies">];
}

def BuildUpdate : ModulePass<"tandem-build-update"> {
  let summary = "Makes @update, the optimizer that the module names";
  let description = [{
    Where the module says `tandem.optimizer` (a spec such as `adamw:lr=1e-3`) and
    trains. `@update` takes the params that have a gradient, their gradients and
    the optimizer's states, and gives the new params and states. The states are
    OPT.lr, and per param those that the optimizer's row of the table has, such
    as OPT.m:PARAM, and OPT.step:PARAM where it counts, with their initial values
    in the role. A param is of the first of `tandem.groups`
    (`.*bias:weight_decay=0`) that matches its name; group N with a rate has
    OPT.groupN.lr. With `tandem.lr_schedule` (`cosine:total=1000`) the rate
    follows from OPT.lr and OPT.updates, and was OPT.rate in the last update.
    With `tandem.ema` and `tandem.swa` averages of a param are ema:PARAM and
    swa:PARAM, of ema_count:PARAM and swa_count:PARAM updates. With `tandem.clip` (`norm:1.0`, `value:0.5`) gradients are clipped
    before they are used; by norm also OPT.grad_norm, the norm before clipping,
    and OPT.skipped, how many updates were left out because it was not finite.
    Behind that, `tandem.gradient_noise` (`0.01,gamma=0.55`) adds normal numbers
    that follow from OPT.noise, a seed and the number of updates, and
    `tandem.centralize` takes the mean of each row of a gradient from it.
    With `tandem.loss_scale` (`1024`, `dynamic`) the loss was multiplied by
    OPT.scale, and gradients are divided by it; OPT.grad_norm and OPT.skipped are
    there, and of a dynamic scale OPT.good, its updates in a row.
    With `tandem.accumulate` it uses the mean of the gradient and of those that
    were added up in OPT.sum:PARAM, whose number is OPT.summed:PARAM, and makes
    both 0; `@accumulation` adds a gradient to them. In a stage of a pipeline
    `@norm` sets OPT.grad_norm to the norm of the stage's gradients, and `@update`
    takes that of all stages from there.
  }];
  let statistics = [Statistic<"params", "params", "params that are updated">];
}

def BuildStep : ModulePass<"tandem-build-step"> {
  let summary = "Makes @step, one whole training step, of the other programs";
  let description = [{
    Forward, backward with a cotangent of 1 (with `tandem.loss_scale` of OPT.scale)
    for the module's `tandem.loss` and no other, update of the params that then have a gradient, one after the other.
    Its ops say of which pass they are: what the backward computes again must not
    be made beside the first time. Of `@accumulation`, which is removed, the same
    way: `@accumulate`.
  }];
  let statistics = [Statistic<"ops", "ops", "ops of the step">];
}

def KeepCasts : ModulePass<"tandem-keep-casts"> {
  let summary = "Keeps copies of params in a narrower type from step to step";
  let description = [{
    Where products and the like in `@step` or `@accumulate` read a param through
    a cast to a narrower float: `@prepare` gives the copy, the programs take it,
    and give a new one where they update the param
    (docs/rationale/mixed-precision.md). A cast behind a permutation, a reshape
    or what ranks gather moves in front of it.
  }];
  let statistics = [Statistic<"kept", "kept", "copies that are kept">];
}

include "passes/optimize/Passes.td"
include "passes/stages/Passes.td"
include "passes/shard/Passes.td"
include "passes/plan/Passes.td"
include "passes/lower/Passes.td"

#endif
