//===- PointwiseResults.cpp - what becomes of a 1x1 convolution's sums ----===//
//
// Sums of one block of k go from registers to the result. Others are kept for a
// band of planes, and stored or finished along the planes' runs; with strides a
// run of x is made of one of y, with zeros between.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cpu/convolution/PointwiseConvolution.h"
#include "passes/lower/cpu/products/PairCode.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

void PointwiseConvolution::storeVector(Value row, Value image, Value pixel,
                                       Value vector, Value mask) {
  using enum Product::Dim;
  SmallVector<Value> at(Dims);
  at[Image] = image;
  at[Group] = block.group;
  at[M] = row;
  at[N] = pixel;
  if (ends)
    return ends->emit(code, at, vector, mask);
  if (takesPairs)
    vector = pairs::narrow(code, vector);
  code.store(vector, output->memref, output->at(code, at), mask);
}

/// Stores a vector of the block: sums of the planes from `row` on.
void PointwiseConvolution::storeColumn(Value row, Value vector,
                                       ValueRange sums) {
  VectorStart place = startOf(block, vector);
  auto store = [&](const VectorStart &place, Value mask) {
    for (auto [i, x] : llvm::enumerate(sums))
      storeVector(code.add(row, i), place.image, place.pixel, x, mask);
  };
  Value mask = maskOf(block, vector);
  if (!mask)
    return store(place, mask);
  Value ofFirst = lanesOf(block, vector);
  // Stores that are masked take long, also where all lanes are on.
  code.when(
      code.equal(ofFirst, code.index(s.lanes)), [&] { store(place, {}); },
      [&] {
        if (!s.joins)
          return store(place, mask);
        Value left = code.sub(code.index(s.images * planePixels()),
                              code.mul(vector, s.lanes));
        Value first = code.firstLanes(ofFirst, s.lanes);
        Value all = code.firstLanes(code.min(left, s.lanes), s.lanes);
        store(place, first);
        store(secondOf(place), without(all, first));
      });
}

/// Adds a tile's sums over [k, kEnd) to those before.
void PointwiseConvolution::storeOrAdd(Value row, int64_t rows, Value panel,
                                      int64_t vectors, Code::Values tile,
                                      Value k, Value kEnd) {
  auto forEach = [&](auto body) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t v = 0; v < vectors; ++v)
        body(i, v, tile[i * vectors + v]);
  };
  Value ofRow = code.mul(code.sub(row, bandRow), sumsOfRow());
  Value ofPanel = code.add(ofRow, code.mul(panel, s.width()));
  auto placeInSums = [&](int64_t i, int64_t v) {
    return code.add(ofPanel, i * sumsOfRow() + v * s.lanes);
  };
  auto keep = [&] {
    forEach([&](int64_t i, int64_t v, Value x) {
      code.store(x, sums, placeInSums(i, v));
    });
  };
  auto store = [&] {
    for (int64_t v = 0; v < vectors; ++v) {
      Code::Values column;
      for (int64_t i = 0; i < rows; ++i)
        column.push_back(tile[i * vectors + v]);
      storeColumn(row, code.add(code.mul(panel, s.vectors), v), column);
    }
  };
  if (kBlocks() > 1) {
    Value isFirst = code.equal(k, code.index(0));
    Value zeros = code.zeros(type, s.lanes);
    forEach([&](int64_t i, int64_t v, Value &x) {
      Value before = code.load(sums, placeInSums(i, v), s.lanes);
      before = code.select(isFirst, zeros, before);
      x = arith::AddFOp::create(code.b, code.loc, before, x);
    });
  }
  if (!isStored())
    return keep();
  code.when(code.equal(kEnd, code.index(terms)), store, keep);
}

void PointwiseConvolution::finishBand(Value row, Value end) {
  int64_t scale = expands() ? 4 : 1; // pixels of x for one of y
  code.loop(row, end, 1, [&](Value m) {
    code.loop(code.index(0), code.index(s.images), 1, [&](Value image) {
      Value inSums = code.add(
          code.mul(code.sub(m, bandRow), sumsOfRow()),
          code.mul(image, s.joins ? planePixels() : s.runVectors * s.lanes));
      Value memref = sums, from = inSums;
      if (expands()) {
        expandRun(inSums);
        memref = expanded;
        from = code.index(0);
      }
      finishRun(m, code.add(block.image, image), memref, from,
                code.mul(block.pixel, scale), code.mul(pixelsOf(block), scale));
    });
  });
}

/// Spreads a run of y from `from` on over the even pixels of even lines of x;
/// zeros are there.
void PointwiseConvolution::expandRun(Value from) {
  int64_t width = conv.window.output[1], line = std::min(s.lanes, width);
  Value zeros = code.zeros(type, s.lanes);
  // Vectors that begin with element `first` of `part`, zeros after each.
  auto spread = [&](Value part, int64_t first, int64_t count) -> Value {
    SmallVector<int64_t> lanes;
    for (int64_t lane = 0; lane < s.lanes; ++lane)
      lanes.push_back(lane % 2 == 0 && lane < 2 * count ? first + lane / 2
                                                        : s.lanes);
    return vector::ShuffleOp::create(code.b, code.loc, part, zeros, lanes);
  };
  code.loop(code.index(0), code.index(s.run), s.lanes, [&](Value done) {
    Value part = code.load(sums, code.add(from, done), s.lanes);
    // Of each line, whose pixels are twice as many, and so are the lines.
    Value inLine = code.rem(done, width);
    Value to =
        code.add(code.mul(code.sub(done, inLine), 4), code.mul(inLine, 2));
    for (int64_t first = 0; first < s.lanes; first += line) {
      Value at = code.add(to, 4 * first);
      for (int64_t half = 0; half < line; half += s.lanes / 2)
        code.store(
            spread(part, first + half, std::min(line - half, s.lanes / 2)),
            expanded, code.add(at, 2 * half));
    }
  });
}

/// Stores or finishes `count` sums from `from` on: those of a plane of the
/// result from `pixel` on.
void PointwiseConvolution::finishRun(Value row, Value image, Value memref,
                                     Value from, Value pixel, Value count) {
  if (output) {
    Value whole = code.mul(code.div(count, s.lanes), s.lanes);
    auto copy = [&](Value done, Value mask) {
      storeVector(row, image, code.add(pixel, done),
                  code.load(memref, code.add(from, done), s.lanes, mask), mask);
    };
    code.loop(code.index(0), whole, s.lanes,
              [&](Value done) { copy(done, {}); });
    Value left = code.sub(count, whole);
    if (getConstantIntValue(left) != 0)
      copy(whole, code.firstLanes(left, s.lanes));
    return;
  }
  bool isFlat = kernel.keepsIndices();
  code.loop(code.index(0), count, 1, [&](Value done) {
    Value sum = memref::LoadOp::create(code.b, code.loc, memref,
                                       ValueRange{code.add(from, done)});
    Value result = code.add(pixel, done), none = code.index(0);
    if (!isFlat)
      return kernel.finish(product.index(code, image, block.group, row,
                                         code.div(result, product.lineLength),
                                         code.rem(result, product.lineLength)),
                           sum);
    Value dims[] = {image, block.group, row, result, none, none};
    kernel.finish(product.y, dims, product.sizes, sum);
  });
}
