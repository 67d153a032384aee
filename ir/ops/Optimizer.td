//===- Optimizer.td - parameter updates ---===//
#ifndef TANDEM_IR_OPS_OPTIMIZER
#define TANDEM_IR_OPS_OPTIMIZER

include "ir/OpBase.td"
include "ir/Attributes.td"

#endif
