//===- PixelConvolution.cpp - convolutions of few planes ------------------===//
#include "passes/lower/cpu/convolution/PixelConvolution.h"
#include "passes/lower/cpu/KernelEmitter.h"
#include "passes/lower/cpu/convolution/PaddedImages.h"
#include "passes/lower/cpu/convolution/PixelResults.h"
#include "passes/lower/cpu/convolution/PlaneConvolution.h"
#include "passes/lower/cpu/products/Gemm.h"
#include "passes/target/CpuCaches.h"

#include "ir/ops/Scalar.h"

#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;
using llvm::divideCeil;

namespace {
class PixelConvolution : PixelResults {
public:
  PixelConvolution(AnchorKernel &kernel, const Product &product)
      : PixelResults(kernel, product) {
    lanes = x.lanes(lanes);
  }
  Fit fit() const;
  double multiplyAdds() const;
  /// Chooses the schedule, and takes the scratch that it needs.
  void prepare();
  /// Chooses the schedule.
  ScheduleOverride numbers();
  Work emit();

private:
  /// Sizes are the code's, positions the item's.
  struct Tile {
    int64_t rows, vectors;
    Value row, line, vector;
    int64_t phaseY, phaseX;
    bool isLast; ///< of its line
  };

  void schedule();
  void takeScratch();
  int64_t vectorsAcross() const { return divideCeil(x.neighbours(), lanes); }
  int64_t bands() const { return divideCeil(y.neighbours(), lines); }
  int64_t planeBlocks() const { return divideCeil(planes, planesOfBlock); }
  int64_t pixelsOfItem() const { return lines * y.phases * x.results; }
  /// The taps of the one plane are in registers too.
  bool keepsTaps() const {
    return planes == 1 && taps <= 9 && kernel.target.registers >= 32;
  }
  /// Lines are shorter than half of a vector of the processor.
  bool isNarrow() const { return lanes < kernel.target.lanes(type); }
  /// Sums go from the registers to the result.
  bool isStored() const {
    return takesVectors() && x.phases == 1 && planeBlocks() == 1;
  }

  void emitItem();
  void multiplyBlock(Value firstPlane, Value endPlane, Value isFirst);
  void forEachTile(int64_t phaseY, int64_t phaseX, Value row, int64_t rows,
                   llvm::function_ref<void(const Tile &)> body);
  Code::Values multiply(const Tile &tile, Value firstPlane, Value endPlane);
  Code::Values addPlane(const Tile &tile, Value plane, Value inBlock,
                        ValueRange sums);
  void keep(const Tile &tile, Code::Values sums, Value isFirst);
  void storeTile(const Tile &tile, ValueRange sums);
  Value placeOf(Value row, Value line, int64_t phase, Value column);
  void finishBand();
  void finishLines(Value row, Value first, Value count);
  void finishLine(Value row, Value inBand, Value line);
  void forEachVector(Value from,
                     llvm::function_ref<void(Value sum, int64_t column)> body);
  /// The number of a pixel in its plane.
  Value pixelAt(Value line, Value column) {
    return code.add(code.mul(line, x.results), column);
  }

  int64_t rows, tileLines, vectors; ///< of a tile
  int64_t lines;                    ///< neighbours of an item
  int64_t planesOfBlock;
  std::optional<PaddedImages> padded;
  Value sums;   ///< [row][line of the result][phase][neighbour]
  Value joined; ///< results side by side: of a line, or of a band of short ones
  int64_t sumsOfPhase, sumsOfLine, linesOfBand;
  Value firstLine;
  Code::Values taken; ///< the taps of a tile's planes, if there is room
};
} // namespace

Fit PixelConvolution::fit() const {
  constexpr int64_t mostTaps = 49, mostPlanes = 64, shortest = 96;
  if (product.lanes == Product::Taps)
    return Fit::impossible("expected pixels as results but got taps");
  if (llvm::is_contained(product.sizes, 0) || taps == 0 || x.seen == 0 ||
      y.seen == 0)
    return Fit::impossible("expected elements but got none");
  if (!image.isAffine() || image.stride(3) != 1 || !filter.isAffine())
    return Fit::impossible("expected images whose lines are side by side in "
                           "memory but got others");
  if (x.phases > 2 || x.step > 2)
    return Fit::impossible(
        "expected strides of at most 2 along lines but got " +
        Twine(std::max(x.phases, x.step)));
  if (taps > mostTaps)
    return Fit::impossible("expected at most " + Twine(mostTaps) +
                           " taps, whose code is written out, but got " +
                           Twine(taps));
  if (across > mostPlanes)
    return Fit::impossible("expected at most " + Twine(mostPlanes) +
                           " planes of the result in a group but got " +
                           Twine(across));
  if (product.isPointwise())
    return Fit::slower("expected several taps but got one");
  // Filters would fill half of a vector; pixels do, or more. But short sums are
  // not worth transposing what comes of them (DirectConvolution::fit).
  if (2 * across > lanes && (taps == 1 || planes * taps >= shortest))
    return Fit::slower("expected at most " + Twine(lanes / 2) +
                       " planes of the result in a group, half of a vector, "
                       "but got " +
                       Twine(across));
  if (2 * x.neighbours() <= lanes)
    return Fit::slower("expected more than " + Twine(lanes / 2) +
                       " neighbours in a line, half of a vector, but got " +
                       Twine(x.neighbours()));
  return Fit::good();
}

/// Of whole vectors of pixels; those of a phase see its taps alone.
double PixelConvolution::multiplyAdds() const {
  double neighbours = llvm::alignTo(x.neighbours(), lanes);
  return static_cast<double>(conv.batch) * conv.groups * across * planes *
         taps * y.neighbours() * neighbours;
}

/// The sums, a vector of the image and taps are in registers; what an item
/// reads of a block of planes stays in the first-level cache.
void PixelConvolution::schedule() {
  constexpr int64_t cacheBytes = caches::kFirst * 3 / 4;
  // Short vectors wait for each other's sums longer.
  const int64_t mostLines = isNarrow() ? 8 : 4;
  int64_t most = kernel.target.registers >= 32 ? 24 : 10;
  int64_t mostRows = kernel.target.registers >= 32 ? 8 : 4;
  rows = keepsTaps() ? 1 : across > 8 ? equalParts(across, mostRows) : across;
  if (keepsTaps())
    most = 16;
  vectors = equalParts(vectorsAcross(), std::max<int64_t>(1, most / rows));
  tileLines = std::clamp<int64_t>(most / (rows * vectors), 1,
                                  std::min(mostLines, y.neighbours()));

  int64_t bytes = type.getIntOrFloatBitWidth() / 8;
  int64_t rowBytes = llvm::alignTo(x.padded(x.neighbours()), lanes) * bytes;
  auto planeBytes = [&](int64_t lines) { return y.padded(lines) * rowBytes; };
  auto step = [&](int64_t lines) {
    return equalParts(y.neighbours(), lines, tileLines);
  };
  constexpr int64_t fewestLines = 8;
  int64_t together = std::min<int64_t>(planes, 4);
  int64_t parts = 1;
  lines = step(y.neighbours());
  while (lines > fewestLines && together * planeBytes(lines) > cacheBytes)
    lines = step(divideCeil(y.neighbours(), ++parts));
  planesOfBlock = equalParts(planes, cacheBytes / planeBytes(lines));
  // Sums stay what they are, in blocks of so many planes.
  constexpr int64_t mostPixels = 1 << 14;
  if (int64_t asked = ScheduleOverride::of(kernel.kernel)[ScheduleKey::Block];
      asked && asked != pixelsOfItem())
    lines = step(std::min(asked, mostPixels) / (y.phases * x.results));
}

ScheduleOverride PixelConvolution::numbers() {
  schedule();
  return ScheduleOverride({{ScheduleKey::Block, pixelsOfItem()}});
}

void PixelConvolution::takeScratch() {
  padded.emplace(kernel, image, y, x, /*images=*/1, planesOfBlock, lines, type,
                 /*splits=*/x.step == 2);
  bindResults(/*areWhole=*/x.phases == 1 && planeBlocks() == 1);
  sumsOfPhase = vectorsAcross() * lanes;
  sumsOfLine = x.phases * sumsOfPhase;
  linesOfBand = lines * y.phases;
  if (isStored())
    return;
  sums = kernel.scratch.take(code, {across * linesOfBand * sumsOfLine}, type);
  if (!output && isNarrow())
    // The last vector reaches over the end.
    joined =
        kernel.scratch.take(code, {linesOfBand * x.results + sumsOfLine}, type);
  else if (!output && x.phases == 2)
    joined = kernel.scratch.take(code, {sumsOfLine}, type);
}

void PixelConvolution::prepare() {
  schedule();
  takeScratch();
}

Work PixelConvolution::emit() {
  prepare();
  kernel.forEachItem([&](Value item) {
    Value ofImage = code.div(item, bands());
    firstLine = code.mul(code.rem(item, bands()), lines);
    atImage = code.div(ofImage, conv.groups);
    atGroup = code.rem(ofImage, conv.groups);
    emitItem();
  });
  Work work;
  work.items = conv.batch * conv.groups * bands();
  double results = static_cast<double>(across) * linesOfBand * x.results;
  double seen = static_cast<double>(planes) * y.padded(lines) * x.seen;
  double k = static_cast<double>(planes * taps) /
             static_cast<double>(y.phases * x.phases);
  work.grain = grainFor(work.items, 2 * results * k,
                        elementBytes(type) * (results + seen));
  work.scratchBytes = kernel.scratch.bytes();
  return work;
}

void PixelConvolution::emitItem() {
  Value first = code.mul(atGroup, planes);
  code.loop(code.index(0), code.index(planes), planesOfBlock, [&](Value plane) {
    Value end = code.add(plane, planesOfBlock);
    if (planes % planesOfBlock != 0)
      end = code.min(end, planes);
    padded->fill({atImage, code.add(atImage, 1)},
                 {code.add(first, plane), code.add(first, end)}, firstLine);
    multiplyBlock(plane, end, code.equal(plane, code.index(0)));
  });
  if (!isStored())
    finishBand();
}

void PixelConvolution::multiplyBlock(Value firstPlane, Value endPlane,
                                     Value isFirst) {
  auto ofRows = [&](Value row, int64_t count) {
    taken.clear();
    if (keepsTaps() && count == 1)
      for (int64_t t = 0; t < taps; ++t)
        taken.push_back(tap(row, firstPlane, t / conv.window.kernel[1],
                            t % conv.window.kernel[1]));
    for (int64_t phaseY = 0; phaseY < y.phases; ++phaseY)
      for (int64_t phaseX = 0; phaseX < x.phases; ++phaseX)
        forEachTile(phaseY, phaseX, row, count, [&](const Tile &tile) {
          Code::Values sums = multiply(tile, firstPlane, endPlane);
          if (isStored())
            storeTile(tile, sums);
          else
            keep(tile, sums, isFirst);
        });
  };
  int64_t whole = across / rows * rows;
  code.loop(code.index(0), code.index(whole), rows,
            [&](Value row) { ofRows(row, rows); });
  if (whole < across)
    ofRows(code.index(whole), across - whole);
}

/// The tiles of some rows and a phase: along each of their lines, the last
/// with what is left.
void PixelConvolution::forEachTile(
    int64_t phaseY, int64_t phaseX, Value row, int64_t rows,
    llvm::function_ref<void(const Tile &)> body) {
  int64_t length = divideCeil(x.neighbours(phaseX), lanes);
  if (length == 0)
    return;
  int64_t last = length % vectors ? length % vectors : vectors;
  Value end = code.min(code.sub(code.index(y.neighbours()), firstLine), lines);
  code.loop(code.index(0), end, tileLines, [&](Value line) {
    auto tile = [&](Value vector, int64_t count, bool isLast) {
      body({rows, count, row, line, vector, phaseY, phaseX, isLast});
    };
    code.loop(code.index(0), code.index(length - last), vectors,
              [&](Value vector) { tile(vector, vectors, false); });
    tile(code.index(length - last), last, true);
  });
}

/// The sums of a tile over a block of planes.
Code::Values PixelConvolution::multiply(const Tile &tile, Value firstPlane,
                                        Value endPlane) {
  Code::Values none(tile.rows * tileLines * tile.vectors,
                    code.zeros(type, lanes));
  if (y.taps[tile.phaseY].empty() || x.taps[tile.phaseX].empty())
    return none;
  if (planesOfBlock == 1)
    return addPlane(tile, firstPlane, code.index(0), none);
  return code.loop(
      firstPlane, endPlane, 1, none, [&](Value plane, ValueRange in) {
        return addPlane(tile, plane, code.sub(plane, firstPlane), in);
      });
}

/// Lines of the tile look at the same rows of the image at different taps: row
/// by row, each vector is read once.
Code::Values PixelConvolution::addPlane(const Tile &tile, Value plane,
                                        Value inBlock, ValueRange in) {
  struct Use {
    int64_t line, tap;
  };
  std::map<int64_t, SmallVector<Use>> usesOfRow;
  for (int64_t line = 0; line < tileLines; ++line)
    for (const WindowAxis::Tap &tap : y.taps[tile.phaseY])
      usesOfRow[line * y.step + tap.offset].push_back({line, tap.number});
  Value from = code.mul(inBlock, padded->planeStride);
  from = code.add(from, code.mul(tile.line, y.step * padded->rowStride));
  from = code.add(from, code.mul(tile.vector, lanes));
  Code::Values sums(in);
  for (const auto &[row, uses] : usesOfRow)
    for (const WindowAxis::Tap &tapX : x.taps[tile.phaseX]) {
      Code::Values seen;
      for (int64_t v = 0; v < tile.vectors; ++v)
        seen.push_back(code.load(
            padded->memref,
            code.add(from, row * padded->rowStride +
                               padded->column(tapX.offset) + v * lanes),
            lanes));
      for (const Use &use : uses)
        for (int64_t i = 0; i < tile.rows; ++i) {
          Value factor =
              taken.empty()
                  ? tap(code.add(tile.row, i), plane, use.tap, tapX.number)
                  : taken[use.tap * conv.window.kernel[1] + tapX.number];
          for (int64_t v = 0; v < tile.vectors; ++v) {
            Value &sum = sums[(i * tileLines + use.line) * tile.vectors + v];
            sum = code.multiplyAdd(factor, seen[v], sum);
          }
        }
    }
  return sums;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Where the sum of a row, a line of the band's results and a neighbour of a
/// phase is.
Value PixelConvolution::placeOf(Value row, Value line, int64_t phase,
                                Value column) {
  Value at = code.add(code.mul(row, linesOfBand), line);
  return code.add(code.add(code.mul(at, sumsOfLine), column),
                  phase * sumsOfPhase);
}

void PixelConvolution::keep(const Tile &tile, Code::Values in, Value isFirst) {
  auto forEach = [&](auto body) {
    for (int64_t i = 0; i < tile.rows; ++i)
      for (int64_t l = 0; l < tileLines; ++l)
        for (int64_t v = 0; v < tile.vectors; ++v) {
          Value line =
              code.add(code.mul(code.add(tile.line, l), y.phases), tile.phaseY);
          body(placeOf(code.add(tile.row, i), line, tile.phaseX,
                       code.mul(code.add(tile.vector, v), lanes)),
               in[(i * tileLines + l) * tile.vectors + v]);
        }
  };
  auto write = [&] {
    forEach([&](Value place, Value sum) { code.store(sum, sums, place); });
  };
  if (planeBlocks() == 1)
    return write();
  code.when(isFirst, write, [&] {
    forEach([&](Value place, Value sum) {
      Value before = code.load(sums, place, lanes);
      code.store(arith::AddFOp::create(code.b, code.loc, before, sum), sums,
                 place);
    });
  });
}

void PixelConvolution::storeTile(const Tile &tile, ValueRange sums) {
  for (int64_t l = 0; l < tileLines; ++l) {
    Value neighbour = code.add(code.add(firstLine, tile.line), l);
    Value line = code.add(code.mul(neighbour, y.phases), tile.phaseY);
    auto store = [&] {
      for (int64_t i = 0; i < tile.rows; ++i)
        for (int64_t v = 0; v < tile.vectors; ++v) {
          Value mask;
          bool isEnd = tile.isLast && v + 1 == tile.vectors;
          if (int64_t left = x.results % lanes; isEnd && left)
            mask = code.firstLanes(code.index(left), lanes);
          storeVector(sums[(i * tileLines + l) * tile.vectors + v],
                      code.add(tile.row, i),
                      pixelAt(line, code.mul(code.add(tile.vector, v), lanes)),
                      mask);
        }
    };
    if (y.results % (tileLines * y.phases) == 0)
      store();
    else
      code.when(code.less(line, code.index(y.results)), store);
  }
}

void PixelConvolution::finishBand() {
  Value first = code.mul(firstLine, y.phases);
  Value count = code.min(code.sub(code.index(y.results), first), linesOfBand);
  code.loop(code.index(0), code.index(across), 1, [&](Value row) {
    if (!output && isNarrow())
      return finishLines(row, first, count);
    code.loop(code.index(0), count, 1, [&](Value line) {
      finishLine(row, line, code.add(first, line));
    });
  });
}

/// Calls `body` with the vectors of a line's sums from `from` on, and with the
/// column of each. Where there are two phases, their neighbours take turns.
void PixelConvolution::forEachVector(
    Value from, llvm::function_ref<void(Value sum, int64_t column)> body) {
  SmallVector<int64_t> low, high;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    (2 * lane < lanes ? low : high).append({lane, lanes + lane});
  }
  for (int64_t column = 0; column < sumsOfPhase; column += lanes) {
    Value sum = code.load(sums, code.add(from, column), lanes);
    if (x.phases == 1) {
      body(sum, column);
      continue;
    }
    Value odd = code.load(sums, code.add(from, sumsOfPhase + column), lanes);
    auto part = [&](ArrayRef<int64_t> lanesOf) {
      return vector::ShuffleOp::create(code.b, code.loc, sum, odd, lanesOf);
    };
    body(part(low), 2 * column);
    body(part(high), 2 * column + lanes);
  }
}

/// The lines of a band one after the other, so that vectors of what follows
/// from them are whole. What a line's last vector has too much, the next line
/// writes over.
void PixelConvolution::finishLines(Value row, Value first, Value count) {
  code.loop(code.index(0), count, 1, [&](Value line) {
    Value to = code.mul(line, x.results);
    forEachVector(placeOf(row, line, 0, code.index(0)),
                  [&](Value sum, int64_t column) {
                    code.store(sum, joined, code.add(to, column));
                  });
  });
  finishPixels(joined, row, code.mul(first, x.results),
               code.mul(count, x.results));
}

void PixelConvolution::finishLine(Value row, Value inBand, Value line) {
  Value memref = sums, from = placeOf(row, inBand, 0, code.index(0));
  if (output)
    return forEachVector(from, [&](Value sum, int64_t column) {
      if (int64_t left = x.results - column; left > 0)
        storeVector(sum, row, pixelAt(line, code.index(column)),
                    left < lanes ? code.firstLanes(code.index(left), lanes)
                                 : Value());
    });
  if (x.phases == 2) {
    forEachVector(from, [&](Value sum, int64_t column) {
      code.store(sum, joined, code.index(column));
    });
    memref = joined;
    from = code.index(0);
  }
  code.loop(code.index(0), code.index(x.results), 1, [&](Value column) {
    Value sum = memref::LoadOp::create(code.b, code.loc, memref,
                                       ValueRange{code.add(from, column)});
    kernel.finish(product.index(code, atImage, atGroup, row, line, column),
                  sum);
  });
}

Fit lower::cpu::fitPixelConvolution(AnchorKernel &kernel) {
  auto product = ConvolutionProduct::of(kernel.anchor);
  if (PlaneConvolution(kernel, product).fits())
    return Fit::good();
  return PixelConvolution(kernel, product).fit();
}

double lower::cpu::secondsOfPixelConvolution(AnchorKernel &kernel) {
  auto product = ConvolutionProduct::of(kernel.anchor);
  PlaneConvolution whole(kernel, product);
  return secondsOf(kernel.kernel, kernel.anchor,
                   whole.fits()
                       ? whole.multiplyAdds()
                       : PixelConvolution(kernel, product).multiplyAdds());
}

int64_t lower::cpu::scratchOfPixelConvolution(AnchorKernel &kernel) {
  auto product = ConvolutionProduct::of(kernel.anchor);
  PlaneConvolution whole(kernel, product);
  if (whole.fits())
    return kernel.countScratch([&] { whole.takeScratch(); });
  PixelConvolution convolution(kernel, product);
  return kernel.countScratch([&] { convolution.prepare(); });
}

ScheduleOverride lower::cpu::cutPixelConvolution(AnchorKernel &kernel) {
  auto product = ConvolutionProduct::of(kernel.anchor);
  PlaneConvolution whole(kernel, product);
  return whole.fits() ? whole.numbers()
                      : PixelConvolution(kernel, product).numbers();
}

FailureOr<Work> lower::cpu::emitPixelConvolution(AnchorKernel &kernel) {
  auto product = ConvolutionProduct::of(kernel.anchor);
  PlaneConvolution whole(kernel, product);
  return whole.fits() ? whole.emit() : PixelConvolution(kernel, product).emit();
}
