//===- Composite.td - ops that mean a sequence of simpler ones ---===//
#ifndef TANDEM_IR_OPS_COMPOSITE
#define TANDEM_IR_OPS_COMPOSITE

include "ir/OpBase.td"
include "ir/Attributes.td"

#endif
