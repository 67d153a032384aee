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

// A handle is a ref whose shape, strides or storage a program can change. The
// result of such a change is the same handle; its operand is used no more.

def TransposeHandleOp : Tandem_Op<"transpose_", [InferTypeOpAdaptor]> {
  let summary = "Exchanges two dimensions of a handle";
  let description = "Changes metadata alone: the storage and what it holds stay.";
  let arguments = (ins Arg<Tandem_Ref, "", [MemWrite<Storage>]>:$x, I64Attr:$a, I64Attr:$b);
  let results = (outs Tandem_Ref:$y);
  let assemblyFormat = "$x `dims` $a `,` $b attr-dict `:` qualified(type($x)) `->` qualified(type($y))";
}

def SetHandleOp : Tandem_Op<"set_", [InferTypeOpAdaptor]> {
  let summary = "Makes a handle show what another ref shows";
  let description = [{
    The handle `x` gets the storage, shape and strides of `y`. Views taken of `x`
    before keep the old storage.
  }];
  let arguments = (ins Arg<Tandem_Ref, "", [MemWrite<Storage>]>:$x, Tandem_Ref:$y);
  let results = (outs Tandem_Ref:$z);
  let assemblyFormat = "$x `to` $y attr-dict `:` qualified(type($x)) `,` qualified(type($y))";
}

def ResizeOp : Tandem_Op<"resize_"> {
  let summary = "Frees the storage behind a ref, or gives it back its size";
  let description = [{
    `elements` is the storage's new size: 0, or as many as the whole storage has.
    What freed storage held is lost; it must be filled before it is read.
  }];
  let arguments = (ins Arg<Tandem_Ref, "", [MemWrite<Storage>]>:$ref, I64Attr:$elements);
  let assemblyFormat = "$ref `to` $elements attr-dict `:` qualified(type($ref))";
}

#endif
