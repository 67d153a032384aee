//===- Collective.td - what the ranks of a mesh do together ----------------===//
#ifndef TANDEM_IR_OPS_COLLECTIVE
#define TANDEM_IR_OPS_COLLECTIVE

include "ir/OpBase.td"
include "ir/Attributes.td"

/// An op over the ranks that differ in `axes` alone, their *group*. The order in
/// a group is row-major over `axes` as they are listed.
class RankOp<string mnemonic, list<Trait> traits>
    : Tandem_Op<mnemonic, !listconcat(traits, [
        DeclareOpInterfaceMethods<CollectiveOpInterface, ["getLinkBytes", "communicates"]>,
        DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>])> {
  let hasVerifier = 1;
  string rankMethods = [{
    ::tandem::OpClass $cppClass::getOpClass() { return ::tandem::OpClass::Collective; }
    int64_t $cppClass::getFlops() { return 0; }
  }];
  let extraClassDefinition = rankMethods # [{
    bool $cppClass::communicates() { return true; }
  }];
}

/// What every collective has beside its own; `buffer` and `needs` as of a launch,
/// where it stands by itself in a lowered program.
defvar rankArguments = (ins StrArrayAttr:$axes, OptionalAttr<I64Attr>:$number,
                        OptionalAttr<BufferAttr>:$buffer, OptionalAttr<ArrayAttr>:$needs);

def RanksResource : Resource<"::tandem::Ranks">;

/// That the result is new memory keeps MLIR from merging two of them; one that
/// has no user is still removed, on all ranks.
class CollectiveOp<string mnemonic, Type type = AnyTensor_>
    : RankOp<mnemonic, [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let results = (outs Res<type, "", [MemAlloc<RanksResource>]>:$y);
}

def AllReduceOp : CollectiveOp<"all_reduce", NumericTensor> {
  let summary = "The sum, maximum or minimum over the ranks of a group, on each of them";
  let description = [{
    Element i of the result, on every rank of the group, is the `sum`, `max` or
    `min` of the elements i of all ranks' operands. Sums are made in an order that
    depends on the ranks alone, those of f16 and bf16 in f32.

    Gradient of `sum`: `all_reduce sum p.dy()`, in the sense of the sum over ranks
    of <cotangent, result>. `max` and `min` have none: an error where a gradient
    has to pass.
  }];
  let arguments = !con((ins CollectiveReduceAttr:$reduce, NumericTensor:$x), rankArguments);
  let assemblyFormat = "$reduce $x `over` $axes attr-dict `:` type($x) `->` type($y)";
}

def ReduceScatterOp : CollectiveOp<"reduce_scatter", NumericTensor> {
  let summary = "Each rank's piece of the sum, maximum or minimum over a group";
  let description = [{
    Rank r of the group gets piece r, along `dim`, of what `all_reduce` would give.
    Gradient of `sum`: all_gather.
  }];
  let arguments = !con((ins CollectiveReduceAttr:$reduce, NumericTensor:$x, I64Attr:$dim), rankArguments);
  let assemblyFormat = "$reduce $x `dim` $dim `over` $axes attr-dict `:` type($x) `->` type($y)";
}

def AllGatherOp : CollectiveOp<"all_gather"> {
  let summary = "The pieces of all ranks of a group, one behind the other, on each of them";
  let description = [{
    Piece r of the result, along `dim`, is the operand of rank r of the group.
    Gradient: reduce_scatter of the sum.
  }];
  let arguments = !con((ins AnyTensor_:$x, I64Attr:$dim), rankArguments);
  let assemblyFormat = "$x `dim` $dim `over` $axes attr-dict `:` type($x) `->` type($y)";
}

def AllToAllOp : CollectiveOp<"all_to_all"> {
  let summary = "Exchanges pieces: a value cut along one dimension becomes one cut along another";
  let description = [{
    Piece r of the result, along `concat_dim`, is the piece of the operand of rank r
    that has this rank's number, along `split_dim`. Gradient: the same with the two
    dimensions exchanged.
  }];
  let arguments = !con((ins AnyTensor_:$x, I64Attr:$split_dim, I64Attr:$concat_dim), rankArguments);
  let assemblyFormat = "$x `split` $split_dim `concat` $concat_dim `over` $axes attr-dict `:` type($x) `->` type($y)";
}

def BroadcastFromOp : CollectiveOp<"broadcast_from"> {
  let summary = "The operand of one rank of a group, on each of them";
  let description = [{
    The result is the operand of rank `root` of the group, which is its place in the
    group's order. Gradient: the sum of the cotangents on `root`, zeros elsewhere.
  }];
  let arguments = !con((ins AnyTensor_:$x, I64Attr:$root), rankArguments);
  let assemblyFormat = "$x `root` $root `over` $axes attr-dict `:` type($x) `->` type($y)";
}

def RankSliceOp : RankOp<"rank_slice", [Pure, DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "This rank's piece of a value";
  let description = [{
    Rank r of the group gets piece r, along `dim`, of its own operand. No rank speaks
    to another. Gradient: zeros, but for the rank's own piece.
  }];
  let arguments = !con((ins AnyTensor_:$x, I64Attr:$dim), rankArguments);
  let results = (outs AnyTensor_:$y);
  let assemblyFormat = "$x `dim` $dim `over` $axes attr-dict `:` type($x) `->` type($y)";
  let extraClassDefinition = rankMethods # [{
    bool $cppClass::communicates() { return false; }
  }];
}

def BarrierOp : RankOp<"barrier", [NotDifferentiable, MemoryEffects<[MemWrite<RanksResource>]>]> {
  let summary = "Waits until every rank of a group is there";
  let description = [{
    In its place in the order of the group's collectives. No value follows from it.
  }];
  let arguments = rankArguments;
  let assemblyFormat = "`over` $axes attr-dict";
}

#endif
