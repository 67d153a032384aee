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

#endif
