//===- Indexing.td - gather and scatter by data ----------------------------===//
#ifndef TANDEM_IR_OPS_INDEXING
#define TANDEM_IR_OPS_INDEXING

include "ir/OpBase.td"
include "ir/Attributes.td"

class IndexedOp<string mnemonic, list<Trait> traits = []>
    : Tandem_PureOp<mnemonic, !listconcat(traits, [
        InferTypeOpAdaptor,
        DeclareOpInterfaceMethods<DifferentiableOpInterface>,
        DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>,
        DeclareOpInterfaceMethods<ReferenceOpInterface>])> {
  let extraClassDefinition = [{
    ::tandem::OpClass $cppClass::getOpClass() { return ::tandem::OpClass::Indexed; }
  }];
}

def TakeOp : IndexedOp<"take"> {
  let summary = "Rows of a table, by index";
  let description = [{
    `y[i..., r...] = table[indices[i...], r...]`. An index that is negative or at
    least the number of rows gives a row of NaN (of 0 in a table of integers or
    bools). Gradient for the table: take_grad.
  }];
  let arguments = (ins AnyTensor_:$table, IntTensor:$indices);
  let results = (outs AnyTensor_:$y);
  let assemblyFormat = "$table `,` $indices attr-dict `:` type($table) `,` type($indices) `->` type($y)";
}

def TakeGradOp : IndexedOp<"take_grad"> {
  let summary = "Adds rows into a table of zeros, by index";
  let description = [{
    The adjoint of take: `dtable[indices[i...], r...] += dy[i..., r...]`, for each
    row of the table in row-major order of the indices. `shape` is that of the
    table. An index outside of the table is ignored. Gradient for dy: take, with
    0 for indices outside.
  }];
  let arguments = (ins FloatTensor:$dy, IntTensor:$indices, DenseI64ArrayAttr:$shape);
  let results = (outs FloatTensor:$y);
  let assemblyFormat = "$dy `,` $indices `to` $shape attr-dict `:` type($dy) `,` type($indices) `->` type($y)";
}

#endif
