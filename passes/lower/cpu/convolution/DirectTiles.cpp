//===- DirectTiles.cpp - the tiles of direct convolutions -----------------===//
//
// Which rows a tile has, and its sums over a block of k.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cpu/convolution/DirectConvolution.h"
#include "passes/lower/cpu/products/PairCode.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;
using llvm::divideCeil;

Code::Values DirectConvolution::multiply(const Rows &rows, Value shift,
                                         int64_t plus, Value k, int64_t plusK,
                                         ValueRange in) {
  Code::Values tile(in), line(s.vectors);
  for (int64_t v = 0; v < s.vectors; ++v)
    line[v] = code.load(panel.memref,
                        {code.add(k, plusK), code.index(v * s.lanes)}, s.lanes);
  if (takesPairs)
    for (Value &x : line)
      x = pairs::asWords(code, x);
  for (int64_t i = 0; i < s.rows; ++i) {
    Value position = code.add(code.add(rows.begin[i], shift), plus);
    Value element =
        memref::LoadOp::create(code.b, code.loc, padded->memref, position);
    Value factor = code.splat(element, s.lanes);
    for (int64_t v = 0; v < s.vectors; ++v) {
      Value &sum = tile[i * s.vectors + v];
      sum = takesPairs ? pairs::multiplyAdd(code, factor, line[v], sum)
                       : code.multiplyAdd(factor, line[v], sum);
    }
  }
  return tile;
}

DirectConvolution::Rows DirectConvolution::rowsFrom(
    Value begin, Value place,
    llvm::function_ref<std::pair<int64_t, int64_t>(int64_t)> distances) {
  Rows rows;
  for (int64_t i = 0; i < s.rows; ++i) {
    auto [inImages, inSums] = distances(i);
    rows.begin.push_back(code.add(begin, inImages));
    rows.place.push_back(code.add(place, inSums));
  }
  return rows;
}

void DirectConvolution::emitTiles(
    Value count, llvm::function_ref<void(Value)> enter,
    llvm::function_ref<Rows(Value)> rowsOf,
    llvm::function_ref<Code::Values(Rows &, Code::Values)> product,
    Value isFirst) {
  code.loop(code.index(0), count, 1, [&](Value number) {
    enter(number);
    Rows rows = rowsOf(number);
    Code::Values tile = product(
        rows, Code::Values(s.rows * s.vectors, code.zeros(type, s.lanes)));
    auto forEach = [&](auto body) {
      for (int64_t i = 0; i < s.rows; ++i)
        for (int64_t v = 0; v < s.vectors; ++v)
          body(Code::Values{rows.place[i], code.index(v * s.lanes)},
               tile[i * s.vectors + v]);
    };
    auto write = [&] {
      forEach([&](const Code::Values &place, Value x) {
        code.store(x, sums, place);
      });
    };
    if (!manyBlocks)
      return write();
    code.when(isFirst, write, [&] {
      // All are read before one is written: rows may be there twice.
      forEach([&](const Code::Values &place, Value &x) {
        x = arith::AddFOp::create(code.b, code.loc,
                                  code.load(sums, place, s.lanes), x);
      });
      write();
    });
  });
}

void DirectConvolution::emitPixels(const Pixels &pixels, Range ofPlanes,
                                   Value isFirst) {
  for (int64_t phaseY = 0; phaseY < y.phases; ++phaseY)
    for (int64_t phaseX = 0; phaseX < x.phases; ++phaseX)
      if (x.neighbours(phaseX) > 0 && y.neighbours(phaseY) > 0)
        emitPhase(pixels, ofPlanes, phaseY, phaseX, isFirst);
}

/// The phase with the most taps.
static int64_t longestPhase(const WindowAxis &axis) {
  auto isShorter = [](const auto &a, const auto &b) {
    return a.size() < b.size();
  };
  return llvm::max_element(axis.taps, isShorter) - axis.taps.begin();
}

void DirectConvolution::emitPhase(const Pixels &pixels, Range ofPlanes,
                                  int64_t phaseY, int64_t phaseX,
                                  Value isFirst) {
  ArrayRef<WindowAxis::Tap> tapsY = y.taps[phaseY], tapsX = x.taps[phaseX];
  bool isWhole = s.lines == y.neighbours(); // all lines of an image
  int64_t right = x.neighbours(phaseX), down = y.neighbours(phaseY);
  Value lines =
      isWhole ? code.index(down)
              : code.sub(code.min(pixels.lines.end, down), pixels.lines.begin);
  Value count = code.mul(code.mul(length(code, pixels.images), lines), right);
  auto row = [&](Value m) -> std::pair<Value, Value> {
    Value column = code.rem(m, right), line = code.div(m, right);
    Value image = code.index(0);
    if (s.images > 1) {
      image = code.div(line, down);
      line = code.rem(line, down);
    }
    Value begin = code.add(code.mul(image, padded->imageStride),
                           code.add(code.mul(line, y.step * padded->rowStride),
                                    code.mul(column, x.step)));
    Value result = code.add(code.mul(image, s.lines * y.phases),
                            code.add(code.mul(line, y.phases), phaseY));
    Value place = code.add(code.mul(result, x.results),
                           code.add(code.mul(column, x.phases), phaseX));
    return {begin, place};
  };
  int64_t inPhase = tapsY.size() * tapsX.size();
  constexpr int64_t most = 16; // multiply-adds of a vector without a loop
  int64_t unroll = 1;
  while (unroll < 4 && 2 * unroll * inPhase <= 6 &&
         terms(planes) % (2 * unroll) == 0 &&
         terms(s.planes) % (2 * unroll) == 0)
    unroll *= 2;
  // The tiles of the longest phase leave time.
  bool fetches = phaseY == longestPhase(y) && phaseX == longestPhase(x);
  auto enter = [&](Value tile) {
    int64_t parts =
        divideCeil(s.images * std::min(s.lines, down) * right, s.rows);
    if (fetches)
      for (PlanePrefetch &next : ahead)
        next.beginPart(tile, parts, divideCeil(terms(s.planes), unroll));
  };
  auto product = [&](Rows &rows, Code::Values zero) {
    if (inPhase == 0)
      return zero;
    // A line of the kernel, of a plane that begins at `shift` and `k`.
    auto line = [&](Value shift, int64_t plus, Value k, int64_t plusK,
                    Code::Values in) {
      for (const WindowAxis::Tap &tap : tapsX)
        in =
            multiply(rows, shift, plus + tap.offset, k, plusK + tap.number, in);
      return in;
    };
    int64_t width = conv.window.kernel[1];
    return code.loop(
        code.index(0), terms(length(code, ofPlanes)), unroll, zero,
        [&](Value plane, ValueRange carried) {
          if (fetches)
            for (const PlanePrefetch &next : ahead)
              next.emitRound(unroll == 1 ? plane : code.div(plane, unroll));
          Value shift = code.mul(plane, padded->planeStride);
          Value k = code.mul(plane, taps);
          Code::Values in(carried);
          if (inPhase > most) {
            int64_t offset = tapsY[0].offset, number = tapsY[0].number;
            int64_t offsets = tapsY[1].offset - offset;
            int64_t numbers = tapsY[1].number - number;
            return code.loop(
                code.index(0), code.index(tapsY.size()), 1, in,
                [&](Value tap, ValueRange carried) {
                  return line(
                      code.add(shift,
                               code.mul(tap, offsets * padded->rowStride)),
                      offset * padded->rowStride,
                      code.add(k, code.mul(tap, numbers * width)),
                      number * width, Code::Values(carried));
                });
          }
          for (int64_t u = 0; u < unroll; ++u)
            for (const WindowAxis::Tap &tap : tapsY)
              in =
                  line(shift,
                       u * padded->planeStride + tap.offset * padded->rowStride,
                       k, u * taps + tap.number * width, in);
          return in;
        });
  };
  // Tiles within a line of pixels need one position.
  bool inLine = right % s.rows == 0;
  auto rows = [&](Value tile) {
    Value first = code.mul(tile, s.rows);
    if (inLine) {
      auto [begin, place] = row(first);
      return rowsFrom(begin, place,
                      [&](int64_t i) -> std::pair<int64_t, int64_t> {
                        return {i * x.step, i * x.phases};
                      });
    }
    Rows rows;
    Value last = code.add(count, -1);
    for (int64_t i = 0; i < s.rows; ++i) {
      auto [begin, place] = row(code.min(code.add(first, i), last));
      rows.begin.push_back(begin);
      rows.place.push_back(place);
    }
    return rows;
  };
  emitTiles(code.div(code.add(count, s.rows - 1), s.rows), enter, rows, product,
            isFirst);
}

void DirectConvolution::emitTaps(const Pixels &pixels, Range ofPlanes,
                                 Value isFirst) {
  int64_t width = conv.window.kernel[1];
  // Of taps that are neighbours: those of one phase.
  auto distance = [](const WindowAxis &axis) {
    return axis.taps[0].size() > 1 ? axis.taps[0][1].offset : 0;
  };
  int64_t down = distance(y) * padded->rowStride, right = distance(x);
  Value count = code.mul(length(code, ofPlanes), taps);
  auto beginOf = [&](Value plane, Value tap) {
    Value begin = code.mul(plane, padded->planeStride);
    begin = code.add(begin, code.mul(code.div(tap, width), down));
    return code.add(begin, code.mul(code.rem(tap, width), right));
  };
  // A tile is a line of the kernel, of some planes, and needs one position.
  int64_t lines = conv.window.kernel[0], together = s.rows / width;
  auto rowsOfLine = [&](Value tile) {
    Value plane = code.mul(code.div(tile, lines), together);
    Value tap = code.mul(code.rem(tile, lines), width);
    return rowsFrom(beginOf(plane, tap), code.add(code.mul(plane, taps), tap),
                    [&](int64_t i) -> std::pair<int64_t, int64_t> {
                      int64_t plane = i / width, tap = i % width;
                      return {plane * padded->planeStride + tap * right,
                              plane * taps + tap};
                    });
  };
  auto rowsOfAll = [&](Value tile) {
    Rows rows;
    Value first = code.mul(tile, s.rows), last = code.add(count, -1);
    for (int64_t i = 0; i < s.rows; ++i) {
      Value m = code.min(code.add(first, i), last);
      rows.begin.push_back(beginOf(code.div(m, taps), code.rem(m, taps)));
      rows.place.push_back(m);
    }
    return rows;
  };
  constexpr int64_t unroll = 4;
  auto product = [&](Rows &rows, Code::Values zero) {
    return code.loop(
        code.index(0), terms(length(code, pixels.images)), 1, zero,
        [&](Value image, ValueRange carried) {
          Value ofImage = code.mul(image, padded->imageStride);
          Value lines = length(code, pixels.lines);
          return code.loop(
              code.index(0), lines, 1, carried,
              [&](Value line, ValueRange carried) {
                Value atLine = code.add(code.mul(image, lines), line);
                for (const PlanePrefetch &next : ahead)
                  next.emitRound(atLine);
                Value shift = code.add(
                    ofImage, code.mul(line, y.step * padded->rowStride));
                Value k = code.mul(atLine, x.results);
                int64_t whole = x.results / unroll * unroll;
                Code::Values in = code.loop(
                    code.index(0), code.index(whole), unroll, carried,
                    [&](Value column, ValueRange carried) {
                      Code::Values in(carried);
                      Value at = code.add(shift, code.mul(column, x.step));
                      Value atK = code.add(k, column);
                      for (int64_t u = 0; u < unroll; ++u)
                        in = multiply(rows, at, u * x.step, atK, u, in);
                      return in;
                    });
                for (int64_t column = whole; column < x.results; ++column)
                  in = multiply(rows, shift, column * x.step, k, column, in);
                return in;
              });
        });
  };
  auto enter = [&](Value tile) {
    for (PlanePrefetch &next : ahead)
      next.beginPart(tile, divideCeil(s.planes * taps, s.rows),
                     terms(s.images) * s.lines);
  };
  if (tilesAreLines())
    emitTiles(code.div(count, s.rows), enter, rowsOfLine, product, isFirst);
  else
    emitTiles(code.div(code.add(count, s.rows - 1), s.rows), enter, rowsOfAll,
              product, isFirst);
}
