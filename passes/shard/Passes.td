//===- Passes.td - the passes of shard: name, reason, options --------------===//
//
// What each rank of a mesh computes: at the end of optimize, and of an update. A
// part of passes/Passes.td, which includes it behind the classes of passes.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_SHARD_PASSES
#define TANDEM_PASSES_SHARD_PASSES

def AssignShardings : ModulePass<"tandem-assign-shardings"> {
  let summary = "Says which ranks have what of arguments and results";
  let description = [{
    Of each function that is of one process still: the property `sharding` of its
    roles, from the module's `tandem.parallel` and `tandem.shard`
    (ir/Sharding.h). A role that has a sharding keeps it. Without
    `tandem.mesh` there is nothing to do.
  }];
}

def Shard : ModulePass<"tandem-shard"> {
  let summary = "Turns programs of one process into those of a rank";
  let description = [{
    Between the shardings of arguments and of results, it finds those of all
    values, inserts collectives where a value has to be elsewhere, and gives
    every value the type of a rank's piece (passes/shard/Sharder.h). Afterwards
    a function says `tandem.local`. The location of a collective says what needs
    it.
  }];
  let statistics = [Statistic<"collectives", "collectives",
                              "ops that communicate">];
}

#endif
