//===- Indexing.td - gather and scatter by data ---===//
#ifndef TANDEM_IR_OPS_INDEXING
#define TANDEM_IR_OPS_INDEXING

include "ir/OpBase.td"
include "ir/Attributes.td"

#endif
