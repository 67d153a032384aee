//===- Ref.td - storage that a captured program can write ------------------===//
#ifndef TANDEM_IR_OPS_REF
#define TANDEM_IR_OPS_REF

include "ir/OpBase.td"
include "ir/Attributes.td"

def Storage : Resource<"::tandem::Storage">;

def MakeRefOp : Tandem_Op<"make_ref", [InferTypeOpAdaptor]> {
  let summary = "New storage that holds a value";
  let arguments = (ins AnyTensor_:$value);
  let results = (outs Res<Tandem_Ref, "", [MemAlloc<Storage>, MemWrite<Storage>]>:$ref);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def ReadOp : Tandem_Op<"read", [InferTypeOpAdaptor]> {
  let summary = "The value that storage holds, seen through a ref";
  let arguments = (ins Arg<Tandem_Ref, "", [MemRead<Storage>]>:$ref);
  let results = (outs AnyTensor_:$value);
  let assemblyFormat = "$ref attr-dict `:` qualified(type($ref))";
}

def WriteOp : Tandem_Op<"write"> {
  let summary = "Overwrites what a ref shows of its storage";
  let arguments = (ins AnyTensor_:$value, Arg<Tandem_Ref, "", [MemWrite<Storage>]>:$ref);
  let assemblyFormat = "$value `into` $ref attr-dict `:` type($value) `,` qualified(type($ref))";
  let hasVerifier = 1;
}

#endif
