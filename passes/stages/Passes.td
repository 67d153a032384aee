//===- Passes.td - the passes of stages: name, reason, options -------------===//
//
// A model in stages: at the end of functionalize, and at the beginning of joint.
// A part of passes/Passes.td, which includes it behind the classes of passes.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_STAGES_PASSES
#define TANDEM_PASSES_STAGES_PASSES

def AssignStages : CostPass<"tandem-assign-stages"> {
  let summary = "Says of each op which stage of the pipeline it is of";
  let description = [{
    Of a module with `tandem.pipeline` (ir/Pipeline.h) that is no stage yet: stages
    are pieces of the graph in its order. Where ops say `tandem.stage`, a stage begins at
    the first op that does. Else it cuts so that the slowest stage, with what it
    sends and receives, takes the least time, by the costs of ops. What a state
    is read and written by stays in one stage.
  }];
}

def TakeStage : ModulePass<"tandem-take-stage"> {
  let summary = "Makes @graph the graph of one stage of the pipeline";
  let description = [{
    Of a module whose `tandem.pipeline` has a `stage`. What the stage needs of earlier ones
    becomes inputs that require grad, if there are gradients, and what later ones need becomes
    outputs, both called `pipe.N`. A value goes through each stage between. A param
    that several stages use is of the first one, and goes to the others
    as a value. What follows from inputs and states alone, and
    is light, is computed in each stage that needs it: indices, masks, random bits.
  }];
}

#endif
