//===- Passes.td - the passes of optimize: name, reason, options -----------===//
//
// Rewrites of formulas, whichever way they are computed: of the phase optimize,
// and one in front of the gradients. A part of passes/Passes.td, which includes
// it behind the classes of passes.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_OPTIMIZE_PASSES
#define TANDEM_PASSES_OPTIMIZE_PASSES

def SplitConcats : FunctionPass<"tandem-split-concats"> {
  let summary = "Sums convolutions over what is concatenated, by piece";
  let description = [{
    A convolution of f32 or f64 with one tap and one group, of a `concat` of
    planes, becomes the sum of convolutions of the pieces, through `max_pool2d`
    too, where all readers do and their sums are smaller than the concatenation.
    Before differentiation, so that gradients are not cut again. Results may
    differ in the last bits.
  }];
  let statistics = [Statistic<"splits", "splits", "concats that were replaced">];
}

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

def HoistSums : FunctionPass<"tandem-hoist-sums"> {
  let summary = "Computes sums that a loop carries in one op behind it";
  let description = [{
    A carry to which each iteration adds a product, or a sum over dimensions, and
    which nothing else reads: the gradients of a loop's constants. The factors
    become stacks, and all iterations' products one, which is a longer one.
    Carries are left alone whose factors would take more memory than the loop
    adds to them.
  }];
  let statistics = [Statistic<"hoisted", "hoisted", "carries that left a loop">];
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
  let description = [{
    `precision` of products of f32 that say nothing themselves, from
    `matmul_precision` of the module's target.
  }];
}

def ExpandPowers : FunctionPass<"tandem-expand-powers"> {
  let summary = "Makes products and roots of powers with a constant exponent";
  let description = [{
    Of the exponents 0 to 4, -1 to -3, and plus or minus 0.5 and 1.5; of integers
    0 to 4. The results may differ from a power's in the last bits.
  }];
  let statistics = [Statistic<"expandedPowers", "expanded", "powers that were replaced">];
}

def SimplifyWindows : FunctionPass<"tandem-simplify-windows"> {
  let summary = "Makes products and sums of convolutions and averages over whole images";
  let description = [{
    A convolution of one group and its gradients, without padding, whose window
    is the whole image, such as one of 1x1 taps on images of one pixel, become
    `matmul`; `avg_pool2d` over the whole image becomes a `reduce_sum`, and its
    gradient a `broadcast`. Results may differ in the last bits.
  }];
  let statistics = [Statistic<"simplified", "simplified", "ops that were replaced">];
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
  let description = [{
    Those that are no splats, in the regions of branches and loops that stay:
    where a region is compiled by itself, it has no memory for constants.
  }];
}

def MarkPasses : FunctionPass<"tandem-mark-passes"> {
  let summary = "Says of each op of a joint whether it is of forward or backward";
  let description = [{
    An op is forward exactly if an output or an update needs it.
  }];
  let statistics = [Statistic<"forward", "forward", "ops of the forward">];
}

#endif
