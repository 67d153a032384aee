//===- LoopsBytes.cpp - CUDA kernels that turn bytes ----------------------===//
//
// What products by warpgroup read along k lies along the lines
// (passes/plan/TurnFactors.cpp). A block turns 64 x 64 bytes: each thread loads
// 16 neighbours, gathers 16 bytes of as many rows from shared memory, and
// stores them. The bytes are no numbers on their way.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cuda/loops/LoopEmitter.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

static constexpr int64_t kPiece = 16, kTile = 64;
static constexpr int64_t kThreads = kTile * kTile / kPiece;
/// From row to row in shared memory.
static constexpr int64_t kPitch = kTile + kPiece;

static AffineExpr positionOf(const LoopNest &nest, Value value,
                             ArrayRef<AffineExpr> index) {
  auto type = cast<RankedTensorType>(value.getType());
  return simplifyIndex(linearize(index, type.getShape(), value.getContext()),
                       nest.sizes);
}

/// The dimension whose neighbours are neighbours at `position`, where pieces of
/// any other dimensions begin at multiples of them; nothing if there is none.
static std::optional<unsigned> pieceDim(const LoopNest &nest,
                                        AffineExpr position) {
  std::optional<unsigned> dim;
  for (unsigned d = 0; d < nest.sizes.size(); ++d) {
    std::optional<int64_t> stride = coefficientOf(position, d);
    if (!stride || *stride < 0)
      return std::nullopt;
    if (*stride == 1 && !dim)
      dim = d;
    else if (*stride % kPiece != 0)
      return std::nullopt;
  }
  if (!dim || nest.sizes[*dim] % kPiece != 0)
    return std::nullopt;
  return dim;
}

bool LoopEmitter::turnsBytes() const {
  if (nest.roots.size() != 1 || nest.reads.size() != 1)
    return false;
  const LoopNest::Root &root = nest.roots.front();
  const LoopNest::Access &read = nest.reads.front();
  auto type = cast<RankedTensorType>(root.value.getType());
  Type element = type.getElementType();
  bool isByte = isNarrowFloat(element) || element.isInteger(8);
  auto permute = root.value.getDefiningOp<PermuteOp>();
  if (!isByte || !permute || permute.getX() != read.value ||
      !isa<BlockArgument>(read.value) || root.stored != type.getShape())
    return false;
  std::optional<unsigned> from = pieceDim(nest, readPosition()),
                          to = pieceDim(nest, rootPosition());
  return from && to && *from != *to;
}

AffineExpr LoopEmitter::readPosition() const {
  const LoopNest::Access &read = nest.reads.front();
  return positionOf(nest, read.value, read.place.index);
}

AffineExpr LoopEmitter::rootPosition() const {
  const LoopNest::Root &root = nest.roots.front();
  return positionOf(nest, root.value, root.index);
}

/// A buffer's bytes, whatever they are of.
static Value bytesOf(ThreadCode &code, Value memref) {
  OpBuilder::InsertionGuard guard(code.b);
  code.b.setInsertionPointAfterValue(memref);
  Value flat = lower::flatten(code.b, code.loc, memref);
  auto type = cast<MemRefType>(flat.getType());
  Type byte = code.b.getI8Type();
  if (type.getElementType() == byte)
    return flat;
  return UnrealizedConversionCastOp::create(
             code.b, code.loc, MemRefType::get(type.getShape(), byte), flat)
      .getResult(0);
}

LaunchShape LoopEmitter::emitBytes() {
  AffineExpr from = readPosition(), to = rootPosition();
  unsigned along = *pieceDim(nest, from), across = *pieceDim(nest, to);
  SmallVector<unsigned> outer;
  for (unsigned d = 0; d < nest.sizes.size(); ++d)
    if (d != along && d != across)
      outer.push_back(d);
  auto tilesOf = [&](unsigned d) {
    return (nest.sizes[d] + kTile - 1) / kTile;
  };
  auto [rest, acrossTile] = code.split(code.block(), tilesOf(across));
  auto [outerAt, alongTile] = code.split(rest, tilesOf(along));
  auto argument = cast<BlockArgument>(nest.reads.front().value);
  Value source = bytesOf(code, body.inputs[argument.getArgNumber()]),
        result = bytesOf(code, body.outputs[firstResult]);
  Value tile = code.shared({kTile * kPitch}, code.b.getI8Type());

  // The position of the piece there, and whether it is inside; pieces are whole
  // or not at all.
  auto placed = [&](AffineExpr position, Value atAlong, Value atAcross) {
    Slot &slot = addSlot();
    setIndices(slot, outer, outerAt);
    Value isInside;
    for (auto [d, at, number] : {std::tuple{along, atAlong, alongTile},
                                 std::tuple{across, atAcross, acrossTile}}) {
      slot.index[d] = code.add(code.mul(number, kTile), at);
      if (nest.sizes[d] % kTile == 0)
        continue;
      Value holds = code.less(slot.index[d], code.index(nest.sizes[d]));
      isInside = isInside ? code.both(isInside, holds) : holds;
    }
    slot.elements.enter(slot.index, nest.sizes);
    return std::pair{slot.elements.expand(code.b, position), isInside};
  };
  auto whenInside = [&](Value isInside, llvm::function_ref<void()> then) {
    if (isInside)
      code.when(isInside, then);
    else
      then();
  };

  Value row = code.div(code.thread(), kTile / kPiece),
        piece = code.mul(code.rem(code.thread(), kTile / kPiece), kPiece);
  auto [position, isInside] = placed(from, piece, row);
  whenInside(isInside, [&, position = position] {
    code.store(code.load(source, position, kPiece), tile,
               code.add(code.mul(row, kPitch), piece));
  });
  code.barrier();
  // Two neighbouring threads store 32 bytes of a row; a warp has 16 rows.
  constexpr int64_t pieces = 2, rows = warpSize / pieces;
  row = code.add(code.mul(code.rem(code.warp(), kTile / rows), rows),
                 code.div(code.lane(), pieces));
  piece =
      code.mul(code.add(code.mul(code.div(code.warp(), kTile / rows), pieces),
                        code.rem(code.lane(), pieces)),
               kPiece);
  auto [stored, isStored] = placed(to, row, piece);
  whenInside(isStored, [&, stored = stored] {
    SmallVector<Value> bytes;
    for (int64_t i = 0; i < kPiece; ++i)
      bytes.push_back(memref::LoadOp::create(
          code.b, code.loc, tile,
          code.add(code.mul(code.add(piece, i), kPitch), row)));
    auto type = VectorType::get({kPiece}, code.b.getI8Type());
    code.store(vector::FromElementsOp::create(code.b, code.loc, type, bytes),
               result, stored);
  });

  LaunchShape shape;
  shape.block[0] = kThreads;
  shape.grid[0] = tilesOf(across) * tilesOf(along) * nest.sizeOf(outer);
  return shape;
}
