//===- PointwisePack.cpp - what a 1x1 convolution packs -------------------===//
//
// Blocks of pixels, at once or beside the products of the block before, and
// bands of the factor.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cpu/convolution/PointwiseConvolution.h"
#include "passes/lower/cpu/convolution/StrideTwoLoad.h"
#include "passes/lower/cpu/products/PairCode.h"

#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;
using llvm::divideCeil;

void PointwiseConvolution::packBlock() {
  int64_t whole = s.blockVectors() / s.vectors;
  code.loop(code.index(0), code.index(whole), 1,
            [&](Value panel) { packPanel(panel, s.vectors); });
  if (int64_t left = s.blockVectors() % s.vectors)
    packPanel(code.index(whole), left);
}

void PointwiseConvolution::packPanel(Value number, int64_t vectors) {
  constexpr int64_t ahead = 16;
  Source source = sourceOf(block, number, vectors);
  code.loop(code.index(0), code.index(terms), 1, [&](Value k) {
    fetchRow(source, code.add(k, ahead));
    packRow(source, k, panelsOf);
  });
}

/// Where the vectors of a panel come from, and the panel's first row.
PointwiseConvolution::Source
PointwiseConvolution::sourceOf(const Block &of, Value panel, int64_t vectors) {
  Source source;
  source.row = code.mul(panel, terms);
  for (int64_t v = 0; v < vectors; ++v) {
    Value vector = code.add(code.mul(panel, s.vectors), v);
    // The last panel may have fewer; others of it are not read.
    if (vectors == s.vectors && s.blockVectors() % s.vectors != 0)
      vector = code.min(vector, s.blockVectors() - 1);
    VectorStart place = startOf(of, vector);
    source.from.push_back(seenAt(of, place));
    source.masks.push_back(maskOf(of, vector));
    if (s.joins)
      source.others.push_back(seenAt(of, secondOf(place)));
  }
  return source;
}

/// Planes are far apart and little is read of each: the processor does not
/// foresee the later ones. Rows that do not exist are the last one.
void PointwiseConvolution::fetchRow(const Source &source, Value k) {
  Value row = code.min(k, terms - 1);
  auto fetch = [&](Value plane) {
    Value ofPlane = code.mul(plane, image.stride(1));
    for (Value from : source.from)
      code.prefetch(image.memref, code.add(from, ofPlane));
  };
  if (!takesPairs)
    return fetch(row);
  fetch(code.mul(row, 2));
  fetch(secondOf(row));
}

void PointwiseConvolution::packRow(const Source &source, Value k, Value to) {
  Value row = code.add(source.row, k);
  for (auto [v, from] : llvm::enumerate(source.from)) {
    auto plane = [&, from = from, v = v](Value number) {
      Value ofPlane = code.mul(number, image.stride(1));
      return seenVector(code.add(from, ofPlane), source.masks[v],
                        s.joins ? code.add(source.others[v], ofPlane)
                                : Value());
    };
    code.store(vectorOf(k, plane), to, {row, code.index(v * s.lanes)});
  }
}

/// Where what a vector of `of` sees of the first plane begins.
Value PointwiseConvolution::seenAt(const Block &of, const VectorStart &place) {
  Value plane = code.mul(of.group, planes);
  if (!isForward() || !hasStride())
    return code.add(image.at(code, {place.image, plane, {}, {}}), place.pixel);
  Value line = code.div(place.pixel, conv.window.output[1]);
  Value column = code.rem(place.pixel, conv.window.output[1]);
  return image.at(code,
                  {place.image, plane, code.mul(line, 2), code.mul(column, 2)});
}

/// The rows of a panel of the next block that a tile packs: as few as make all
/// panels in the tiles of an item. 0 if its rounds are too few for them.
int64_t PointwiseConvolution::rowsOfTile() const {
  int64_t rounds = terms / unroll;
  int64_t ofPanel = tilesOfItem() / panels();
  int64_t rowsOfTile = divideCeil(terms, ofPanel);
  return blocks() > 1 && rowsOfTile <= rounds ? rowsOfTile : 0;
}

/// Finds the rows of the next block that a tile packs: those of the same planes
/// as the tile before it, where it went on to another panel, so that what is
/// read of a plane is a run too. It asks for what the tile of the panel packs
/// that is a pass over the panels later, so that memory has the time of a pass.
/// The last pass asks for the first rows of the block after the next.
void PointwiseConvolution::beginAhead(Value rowTile, Value panel) {
  aheadRow = code.mul(rowTile, rowsOfTile());
  ahead = sourceOf(next, panel, s.vectors);
  laterRow = code.add(aheadRow, rowsOfTile());
  Value isLast = code.less(code.index(terms - 1), laterRow);
  laterRow = code.select(isLast, code.index(0), laterRow);
  auto either = [&](Value a, Value b) { return code.select(isLast, a, b); };
  later = sourceOf({either(afterNext.group, next.group),
                    either(afterNext.image, next.image),
                    either(afterNext.pixel, next.pixel)},
                   panel, s.vectors);
}

void PointwiseConvolution::packAhead(Value round) {
  int64_t every = llvm::bit_floor<uint64_t>(terms / unroll / rowsOfTile());
  Value packs = packsAhead;
  if (every > 1)
    packs = code.both(packs, code.equal(code.rem(round, every), code.index(0)));
  Value number = code.div(round, every);
  packs = code.both(packs, code.less(number, code.index(rowsOfTile())));
  code.when(packs, [&] {
    fetchRow(later, code.add(laterRow, number));
    packRow(ahead, code.min(code.add(aheadRow, number), terms - 1),
            panelsAhead);
  });
}

/// The second plane of pair `k`; the last plane where the pair has one alone.
Value PointwiseConvolution::secondOf(Value k) const {
  Value second = code.add(code.mul(k, 2), 1);
  return planes % 2 == 0 ? second : code.min(second, planes - 1);
}

/// What is packed of `k`: the numbers that `read` gives of a plane, or words,
/// with zeros where a pair has no second plane.
Value PointwiseConvolution::vectorOf(
    Value k, llvm::function_ref<Value(Value plane)> read) const {
  if (!takesPairs)
    return code.widen(read(k), type);
  Value high = read(secondOf(k));
  if (planes % 2 != 0)
    high = code.select(code.less(k, code.index(terms - 1)), high,
                       code.zeros(image.element, s.lanes));
  return pairs::of(code, read(code.mul(k, 2)), high);
}

/// What a vector of pixels sees of a plane: numbers of the sums' type, or those
/// of memory, of which words are made. Lanes that are not on in `mask` are at
/// `other`, if it is given.
Value PointwiseConvolution::seenVector(Value from, Value mask, Value other) {
  Type type = takesPairs ? image.element : this->type;
  if (isForward() && hasStride())
    return loadStrideTwo(code, image, from, conv.window.output[1], s.lanes,
                         type);
  Value seen = code.load(image.memref, from, s.lanes, mask);
  if (other)
    seen = vector::MaskedLoadOp::create(
        code.b, code.loc, seen.getType(), image.memref, other,
        without(code.lanesOn(SmallVector<bool>(s.lanes, true)), mask), seen);
  return code.widen(seen, type);
}

/// Rows of the factor that are neighbours, for each k of a short sum.
void PointwiseConvolution::packFactor(Value row, Value end, Value k,
                                      Value kEnd) {
  using enum Product::Dim;
  SmallVector<Value> at(Dims);
  at[Group] = block.group;
  at[M] = row;
  Value base = factor.at(code, at), count = code.sub(end, row);
  if (factor.stride(M) != 1)
    return packFactorElements(base, count, k, kEnd);
  code.loop(k, kEnd, 1, [&](Value atK) {
    code.loop(code.index(0), count, s.lanes, [&](Value column) {
      Value left = code.min(code.sub(count, column), s.lanes);
      Value mask = code.firstLanes(left, s.lanes);
      auto plane = [&](Value number) {
        Value from = code.add(base, code.mul(number, factor.stride(K1)));
        return code.load(factor.memref, code.add(from, column), s.lanes, mask);
      };
      code.store(vectorOf(atK, plane), ofFactor, {code.sub(atK, k), column});
    });
  });
}

/// Words of a factor whose pairs are not in memory.
void PointwiseConvolution::packFactorElements(Value base, Value count, Value k,
                                              Value kEnd) {
  using enum Product::Dim;
  code.loop(code.index(0), count, 1, [&](Value row) {
    Value ofRow = code.add(base, code.mul(row, factor.stride(M)));
    code.loop(k, kEnd, 1, [&](Value atK) {
      auto bits = [&](Value plane) -> Value {
        Value at = code.add(ofRow, code.mul(plane, factor.stride(K1)));
        Value x = memref::LoadOp::create(code.b, code.loc, factor.memref, at);
        x = arith::BitcastOp::create(code.b, code.loc, code.b.getI16Type(), x);
        return arith::ExtUIOp::create(code.b, code.loc, term, x);
      };
      Value high = bits(secondOf(atK));
      if (planes % 2 != 0)
        high = code.select(code.less(atK, code.index(terms - 1)), high,
                           code.like(high, 0));
      high = arith::ShLIOp::create(code.b, code.loc, high, code.like(high, 16));
      Value word =
          arith::OrIOp::create(code.b, code.loc, bits(code.mul(atK, 2)), high);
      memref::StoreOp::create(code.b, code.loc, word, ofFactor,
                              ValueRange{code.sub(atK, k), row});
    });
  });
}
