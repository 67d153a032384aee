//===- Indexing.td - gather and scatter by data, and along a dimension -----===//
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

def ScatterOp : IndexedOp<"scatter"> {
  let summary = "Combines rows into a table, by index";
  let description = [{
    `y = table; y[indices[i...], r...] = combine(y[indices[i...], r...], updates[i..., r...])`,
    for each row of the table in row-major order of the indices: of several rows
    that are `set` at one index the last stays. An index outside of the table is
    ignored. Bools can only be `set`.

    Gradients, as PyTorch's scatter and scatter_reduce: `set` cuts off what was
    overwritten, also by a later row; `min` and `max` share evenly between the
    element and the rows that equal the result; `mul` is exact where factors are 0
    (its second derivative where at most one row for an element is 0).
  }];
  let arguments = (ins CombineAttr:$combine, AnyTensor_:$table, IntTensor:$indices, AnyTensor_:$updates);
  let results = (outs AnyTensor_:$y);
  let assemblyFormat = "$combine $table `,` $indices `,` $updates attr-dict `:` type($table) `,` type($indices) `,` type($updates) `->` type($y)";
}

//===----------------------------------------------------------------------===//
// Along a dimension
//===----------------------------------------------------------------------===//

def CumsumOp : IndexedOp<"cumsum", [AutocastFull]> {
  let summary = "Sums of the elements up to each, along a dimension";
  let description = [{
    `y[.., i, ..]` is the sum of `x[.., j, ..]` over `j <= i`; with `exclusive` over
    `j < i`, with `reverse` over `j >= i` (or `j > i`). Gradient: cumsum the other
    way.
  }];
  let arguments = (ins NumericTensor:$x, I64Attr:$dim, UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs NumericTensor:$y);
  let assemblyFormat = "$x `dim` $dim (`exclusive` $exclusive^)? (`reverse` $reverse^)? attr-dict `:` type($x) `->` type($y)";
}

def SortOp : Tandem_PureOp<"sort", [InferTypeOpAdaptor,
    DeclareOpInterfaceMethods<DifferentiableOpInterface, ["numGradientResults"]>,
    DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>,
    DeclareOpInterfaceMethods<ReferenceOpInterface>]> {
  let summary = "The elements in rising order along a dimension, and where they were";
  let description = [{
    `values[.., i, ..] = x[.., indices[.., i, ..], ..]`. Equal elements stay in their
    order, with `descending` too. NaN is above all numbers: last, or first with
    `descending`. Gradient: each value's goes to where it was.
  }];
  let arguments = (ins AnyTensor_:$x, I64Attr:$dim, UnitAttr:$descending);
  let results = (outs AnyTensor_:$values, IntTensor:$indices);
  let assemblyFormat = "$x `dim` $dim (`descending` $descending^)? attr-dict `:` type($x) `->` type($values) `,` type($indices)";
  let extraClassDefinition = [{
    ::tandem::OpClass $cppClass::getOpClass() { return ::tandem::OpClass::Indexed; }
    unsigned $cppClass::numGradientResults() { return 1; }
  }];
}

#endif
