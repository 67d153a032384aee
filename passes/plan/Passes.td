//===- Passes.td - the passes of plan: name, reason, options ---------------===//
//
// A part of passes/Passes.td, which includes it behind the classes of passes.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PLAN_PASSES
#define TANDEM_PASSES_PLAN_PASSES

def SplitReductions : FunctionPass<"tandem-split-reductions"> {
  let summary = "Replaces reductions that lower badly by others that mean the same";
  let description = [{
    Over dimensions of size 1 by reshapes; of very many elements into few results
    by two steps, the first of which has enough results to run in parallel. The
    lengths of partial sums decide bits, so they follow from shapes and the kind of
    target alone (docs/rationale/same-bits-in-every-plan.md).
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

def ShareDraws : FunctionPass<"tandem-share-draws"> {
  let summary = "Reads the numbers of draws from memory";
  let description = [{
    Where a program has several, so that the kernels of equal layers, which differ
    in them alone, share their code.
  }];
  let statistics = [Statistic<"shared", "shared", "draws whose number is in memory">];
}

def LeadCollectives : FunctionPass<"tandem-lead-collectives"> {
  let summary = "Cuts the operands and results of collectives along dimension 0 alone";
  let description = [{
    So that each piece is contiguous. Other dimensions are permuted to the front and
    back.
  }];
  let statistics = [Statistic<"moved", "moved", "collectives over another dimension">];
}

def OrderCollectives : FunctionPass<"tandem-order-collectives"> {
  let summary = "Puts collectives in the order of their numbers";
  let description = [{
    As far as the data flow allows; those without a number behind those with one, in
    the order in which their operands are made. No later pass changes it.
  }];
  let statistics = [Statistic<"moved", "moved", "programs in another order">];
}

def TurnFactors : FunctionPass<"tandem-turn-factors"> {
  let summary = "Gives products by warpgroup factors of 8 bits along k";
  let description = [{
    For CUDA's sm_90a: where such a product reads bytes along its lines, a
    permutation turns them first, unless that takes more time than the product
    gains. Products that read the same bytes so share it.
  }];
  let statistics = [Statistic<"turned", "turned", "factors of 8 bits that are turned">];
}

def ThinImages : FunctionPass<"tandem-thin-images"> {
  let summary = "Gives 1x1 convolutions with strides the pixels that they see";
  let description = [{
    For a CPU: where lines of such pixels fill no vectors, and the convolution
    is worth it, a slice of the image makes planes without gaps of them first.
  }];
  let statistics = [Statistic<"thinned", "thinned", "convolutions that read a slice of their image">];
}

def ReorderResults : FunctionPass<"tandem-reorder-results"> {
  let summary = "Lets attention store its results in the order of their readers";
  let description = [{
    For CUDA: where a permutation that keeps rows whole reads a result, and the
    others that do are loops, these read the permutation's result by the inverse
    one. Then nobody reads the result itself, and the kernel of attention stores
    the permuted one.
  }];
  let statistics = [Statistic<"reordered", "reordered", "results in another order">];
}

def RemakeValues : FunctionPass<"tandem-remake-values"> {
  let summary = "Lets kernels make again what is larger than what it is made of";
  let description = [{
    For CUDA: a value that a kernel would write for others, and that each of them
    can make element by element of fewer bytes, mostly of what it reads anyway.
    The ops that make it are copied for each reader. Only if the program's kernels
    then move fewer bytes.
  }];
  let statistics = [Statistic<"remade", "remade", "values that readers make again">];
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
  let description = [{
    Among those that the data flow allows. A program keeps its order unless the
    other one needs less.
  }];
  let statistics = [Statistic<"moved", "moved", "programs in another order">];
}

def OverlapCollectives : FunctionPass<"tandem-overlap-collectives"> {
  let summary = "Puts kernels behind collectives that they do not need";
  let description = [{
    A collective starts as soon as its operand is there, or, where that is long
    before, as late as its first reader does not wait for it. Kernels that read
    its result run after others that can run while it is under way, for as long
    as the target's rates say that it is. Small sums of one group that start
    near each other stand side by side, and go in one exchange. Collectives keep
    their order. An order that needs more than `window` bytes beyond that of
    the program is not taken; 0 keeps the program's order.
  }];
  let options = [
    Option<"window", "window", "int64_t", "int64_t(25) << 20",
           "Bytes of memory that the order may take">];
  let statistics = [Statistic<"moved", "moved", "programs in another order">];
}

def JoinPointwise : FunctionPass<"tandem-join-pointwise"> {
  let summary = "Makes one kernel with several parts of small ones";
  let description = [{
    For CUDA: of pointwise ones, and of those that sum columns, whose results are
    only returned, as an optimizer's are. They run as late as the memory that they
    hold on to allows.
  }];
  let statistics = [Statistic<"joined", "joined", "kernels that became parts">];
}

def ChooseMethods : CodePass<"tandem-choose-methods", "::mlir::func::FuncOp"> {
  let summary = "Says how each kernel is computed and cut, and what scratch it takes";
  let description = [{
    `schedule` of a kernel gets the `method`, the row of the target's table
    (docs/ADDING_A_METHOD.md) that is good for it, and all numbers of that row,
    unless it says them; what the tables chose stands in `chosen(...)`.
    `scratch_bytes` is the memory beside buffers that the code of this method takes
    with this schedule: of each thread, or for CUDA of a launch. `lower` emits what
    stands there.
  }];
  let statistics = [Statistic<"chosen", "chosen", "kernels with a method">];
}

def PlaceHostCopies : FunctionPass<"tandem-place-host-copies"> {
  let summary = "Moves copies to and from the host to where they hide behind kernels";
  let description = [{
    A copy to the host begins as soon as its value is made; one from the host so
    early that it has ended where its value is read, by the target's rates.
  }];
}

def PadRows : FunctionPass<"tandem-pad-rows"> {
  let summary = "Lets products find rows at multiples of 16 bytes";
  let description = [{
    For CUDA: what one kernel hands to a product on tensor cores, and has rows of
    another length, is stored with zeros at the ends of rows; those that read it
    take a slice. Results and arguments keep their shapes. So does what would
    overwrite one of its kernel's inputs that keeps its own.
  }];
  let statistics = [Statistic<"lengthened", "lengthened", "values with longer rows">];
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
    (passes/plan/ChooseNonTemporalStores.h).
  }];
  let statistics = [Statistic<"chosen", "chosen", "results past the caches">];
}

def NarrowInputs : FunctionPass<"tandem-narrow-inputs"> {
  let summary = "Hands kernels the parts of values that they read";
  let description = [{
    A kernel that reads one contiguous part of a value in the arena gets a
    `tandem.slice` in front of it instead, which costs nothing: its buffer begins
    where the part does. Kernels that differ in the part alone, as those of a
    loop's iterations do, are then equal.
  }];
  let statistics = [Statistic<"narrowed", "narrowed", "inputs that became parts">];
}

def CheckPlan : FunctionPass<"tandem-check-plan"> {
  let summary = "Refuses a plan in which values that live at once overlap";
  let description = [{
    Lifetimes are derived anew from the order of kernels and their operands
    (docs/DUMPS.md lists what must hold).
  }];
}

def PlaceConstants : ModulePass<"tandem-place-constants"> {
  let summary = "Gives equal constants of all programs one place";
  let description = [{
    `tandem.buffer` of a constant says where it lies among those of the artifact.
  }];
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

#endif
