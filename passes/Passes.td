//===- Passes.td - every pass: name, reason, options -----------------------===//
//
// A pass has one name in four spellings: BuildJoint.cpp, BuildJoint here,
// --tandem-build-joint, build-joint.mlir (its test).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES
#define TANDEM_PASSES

include "mlir/Pass/PassBase.td"

#endif
