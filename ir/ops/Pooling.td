//===- Pooling.td - pooling over windows ---===//
#ifndef TANDEM_IR_OPS_POOLING
#define TANDEM_IR_OPS_POOLING

include "ir/OpBase.td"
include "ir/Attributes.td"

#endif
