//===- DirectSchedule.cpp - how direct convolutions are cut ---------------===//
#include "passes/lower/cpu/DirectConvolution.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::cpu;
using namespace tandem::lower;
using llvm::divideCeil;

bool DirectConvolution::tilesAreLines() const {
  int64_t width = conv.window.kernel[1], together = s.rows / width;
  return s.rows % width == 0 && planes % together == 0 &&
         s.planes % together == 0;
}

/// The sums, a line of the panel and an element are in registers. Rows at
/// positions of their own need integer registers too, and there are fewer.
void DirectConvolution::chooseTile() {
  bool many = kernel.target.registers >= 32;
  s.lanes = kernel.target.lanes(type);
  s.vectors = equalParts(divideCeil(across, s.lanes), many ? 4 : 2);
  int64_t most = (kernel.target.registers - 2 - s.vectors) / s.vectors;
  most = std::min<int64_t>(most, 18);
  s.planes = 1;
  s.rows = std::min<int64_t>(most, 8);
  if (sumsPixels) {
    int64_t width = conv.window.kernel[1];
    int64_t fewest = std::min<int64_t>(most, 6);
    for (int64_t together = most / width; together * width >= fewest;
         --together)
      if (planes % together == 0) {
        s.rows = together * width;
        s.planes = together;
        break;
      }
  } else if (s.vectors == 1 && most >= 16) {
    bool fits = true;
    for (int64_t phase = 0; phase < x.phases; ++phase)
      fits &= x.neighbours(phase) % 16 == 0;
    if (fits)
      s.rows = 16;
  }
}

void DirectConvolution::schedule() {
  chooseTile();
  int64_t panelsOfAll = conv.groups * panels();
  int64_t pixels = y.neighbours() * y.phases * x.results;
  if (sumsPixels) {
    // A panel of few rows would be packed for too few sums.
    constexpr int64_t fewest = 144, most = 1152, enough = 8, longest = 384;
    int64_t unit = s.planes; // of a tile
    s.planes = equalParts(planes, most / taps, unit);
    while (panelsOfAll * planeBlocks() < enough &&
           s.planes / 2 * taps >= fewest && s.planes >= 2 * unit)
      s.planes = equalParts(planes, s.planes / 2, unit);
    s.images = equalParts(conv.batch, longest / pixels);
    s.lines = equalParts(y.neighbours(), longest / x.results);
    return;
  }
  constexpr int64_t longest = 256, fewest = 256, most = 1024, enough = 16;
  s.planes = equalParts(planes, longest / taps);
  s.lines = equalParts(y.neighbours(), most / (y.phases * x.results));
  s.images = equalParts(conv.batch, most / 2 / pixels);
  while (panelsOfAll * pixelBlocks() < enough && s.images >= 2 &&
         s.images / 2 * pixels >= fewest)
    s.images = divideCeil(s.images, 2);
}
