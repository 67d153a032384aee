//===- DirectResults.cpp - what becomes of a direct convolution's sums ----===//
//
// Sums lie as they were made, filters side by side. They are turned in squares,
// and stored or finished along the lines of the result.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cpu/convolution/DirectConvolution.h"
#include "passes/lower/cpu/products/PairCode.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;
using llvm::divideCeil;

void DirectConvolution::store(const Pixels &pixels, Range ofPlanes,
                              Value group) {
  using enum Product::Dim;
  at[Group] = group;
  if (sumsPixels) {
    at[Image] = code.index(0);
    return storeSquares(code.index(0), code.mul(length(code, ofPlanes), taps),
                        code.mul(ofPlanes.begin, taps));
  }
  int64_t line = y.phases * x.results;
  Value first = code.mul(pixels.lines.begin, line);
  Value end = code.mul(pixels.lines.end, line);
  if (y.results % y.phases != 0)
    end = code.min(end, y.results * x.results);
  code.loop(code.index(0), length(code, pixels.images), 1, [&](Value image) {
    at[Image] = code.add(pixels.images.begin, image);
    storeSquares(code.mul(image, s.lines * line), code.sub(end, first), first);
  });
}

/// Stores `count` rows of sums from `row` on, which are the results from
/// `pixel` on.
void DirectConvolution::storeSquares(Value row, Value count, Value pixel) {
  auto square = [&](Value at, Value column) {
    Code::Values lines;
    for (int64_t i = 0; i < s.lanes; ++i)
      lines.push_back(code.load(sums, {code.add(at, i), column}, s.lanes));
    return code.transpose(lines);
  };
  auto forEachColumn = [&](llvm::function_ref<void(Value)> body) {
    code.loop(code.index(0), panel.columns, s.lanes, body);
  };
  // Few lines at one time: they are pages apart.
  if (isStored())
    return forEachColumn([&](Value column) {
      code.loop(code.index(0), count, s.lanes, [&](Value done) {
        storeSquare(square(code.add(row, done), column),
                    code.add(panel.n, column), code.add(pixel, done),
                    code.sub(count, done));
      });
    });
  forEachColumn([&](Value column) {
    Value lines = code.min(code.sub(panel.columns, column), s.lanes);
    code.loop(code.index(0), count, kSquares * s.lanes, [&](Value done) {
      Value left = code.min(code.sub(count, done), kSquares * s.lanes);
      code.loop(code.index(0), left, s.lanes, [&](Value part) {
        Value from = code.add(code.add(row, done), part);
        for (auto [i, line] : llvm::enumerate(square(from, column)))
          code.store(line, squares, {code.index(i), part});
      });
      code.loop(code.index(0), lines, 1, [&](Value line) {
        finishLine(line, code.add(code.add(panel.n, column), line),
                   code.add(pixel, done), left);
      });
    });
  });
}

/// Stores the lines of a square, the results of `n` and those after it: from
/// `pixel` on, as many of them as are left.
void DirectConvolution::storeSquare(const Code::Values &square, Value n,
                                    Value pixel, Value left) {
  auto lines = [&](Value mask) {
    for (auto [i, line] : llvm::enumerate(square)) {
      Value at = code.add(n, i);
      auto put = [&, line = line] { storeVector(at, pixel, line, mask); };
      if (across % s.lanes == 0)
        put();
      else
        code.when(code.less(at, code.index(across)), put);
    }
  };
  code.when(
      code.less(left, code.index(s.lanes)),
      [&] { lines(code.firstLanes(left, s.lanes)); }, [&] { lines({}); });
}

/// Stores or finishes sums: results of `n` from `pixel` on.
void DirectConvolution::storeVector(Value n, Value pixel, Value vector,
                                    Value mask) {
  using enum Product::Dim;
  SmallVector<Value> index(at);
  index[M] = n;
  index[N] = pixel;
  if (ends)
    return ends->emit(code, index, vector, mask);
  if (takesPairs)
    vector = pairs::narrow(code, vector);
  code.store(vector, output->memref, output->at(code, index), mask);
}

/// Finishes the first `count` sums of a line of `squares`: the results of `n`
/// from `pixel` on.
void DirectConvolution::finishLine(Value line, Value n, Value pixel,
                                   Value count) {
  using enum Product::Dim;
  bool isFlat = kernel.keepsIndices();
  code.loop(code.index(0), count, 1, [&](Value lane) {
    Value sum = memref::LoadOp::create(code.b, code.loc, squares,
                                       ValueRange{line, lane});
    Value result = code.add(pixel, lane);
    if (!isFlat)
      return kernel.finish(product.index(code, at[Image], at[Group], n,
                                         code.div(result, product.lineLength),
                                         code.rem(result, product.lineLength)),
                           sum);
    Value none = code.index(0);
    Value dims[] = {at[Image], at[Group], n, result, none, none};
    kernel.finish(product.y, dims, product.sizes, sum);
  });
}
