//===- DirectSchedule.cpp - how direct convolutions are cut ---------------===//
#include "passes/lower/cpu/convolution/DirectConvolution.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;
using llvm::divideCeil;

bool DirectConvolution::tilesAreLines() const {
  int64_t width = conv.window.kernel[1], together = s.rows / width;
  return s.rows % width == 0 && planes % together == 0 &&
         s.planes % together == 0;
}

/// What is asked for may make no larger blocks: their sums and images are in
/// scratch.
static constexpr int64_t kMostRows = 1 << 14;

/// The sums, a line of the panel and an element are in registers. Rows at
/// positions of their own need integer registers too, and there are fewer.
void DirectConvolution::chooseTile() {
  int64_t rows = asked[ScheduleKey::Rows];
  int64_t vectors = asked[ScheduleKey::Vectors];
  bool many = kernel.target.registers >= 32;
  s.lanes = kernel.target.lanes(type);
  int64_t columns = divideCeil(across, s.lanes);
  s.vectors =
      vectors ? std::min(vectors, columns) : equalParts(columns, many ? 4 : 2);
  int64_t most = kernel.target.tileRows(s.vectors);
  most = std::clamp<int64_t>(most, 1, 18);
  s.planes = 1;
  s.rows = rows ? rows : std::min<int64_t>(most, 8);
  int64_t width = conv.window.kernel[1];
  if (sumsPixels && rows) {
    if (s.rows % width == 0 && planes % (s.rows / width) == 0)
      s.planes = s.rows / width;
  } else if (sumsPixels) {
    int64_t fewest = std::min<int64_t>(most, 6);
    for (int64_t together = most / width; together * width >= fewest;
         --together)
      if (planes % together == 0) {
        s.rows = together * width;
        s.planes = together;
        break;
      }
  } else if (!rows && s.vectors == 1 && most >= 16) {
    bool fits = true;
    for (int64_t phase = 0; phase < x.phases; ++phase)
      fits &= x.neighbours(phase) % 16 == 0;
    if (fits)
      s.rows = 16;
  }
}

void DirectConvolution::schedule() {
  chooseTile();
  if (sumsPixels)
    cutPlanes();
  else
    cutPixels();
}

/// An item has some planes, and sums over blocks of pixels, which follow from
/// the shapes alone.
void DirectConvolution::cutPlanes() {
  // A panel of few rows would be packed for too few sums.
  constexpr int64_t fewest = 144, most = 1152, enough = 8, longest = 384;
  int64_t pixels = y.neighbours() * y.phases * x.results;
  int64_t together = takesPairs ? 2 : 1; // whole words
  s.images = equalParts(conv.batch, together * longest / pixels, together);
  s.lines = equalParts(y.neighbours(), longest / x.results);
  int64_t unit = s.planes; // of a tile
  if (int64_t block = asked[ScheduleKey::Block]) {
    s.planes = equalParts(planes, std::min(block, kMostRows / taps), unit);
    return;
  }
  s.planes = equalParts(planes, most / taps, unit);
  while (conv.groups * panels() * planeBlocks() < enough &&
         s.planes / 2 * taps >= fewest && s.planes >= 2 * unit)
    s.planes = equalParts(planes, s.planes / 2, unit);
}

/// An item has some pixels, and sums over blocks of planes, which follow from
/// the shapes alone.
void DirectConvolution::cutPixels() {
  constexpr int64_t longest = 256, fewest = 256, most = 1024, enough = 16;
  int64_t pixels = y.neighbours() * y.phases * x.results;
  int64_t together = takesPairs ? 2 : 1; // whole words
  s.planes = equalParts(planes, together * longest / taps, together);
  bool isAsked = asked.has(ScheduleKey::Block);
  int64_t block = std::min(asked.get(ScheduleKey::Block, most), kMostRows);
  s.lines = equalParts(y.neighbours(), block / (y.phases * x.results));
  s.images = equalParts(conv.batch, (isAsked ? block : most / 2) / pixels);
  while (!isAsked && conv.groups * panels() * pixelBlocks() < enough &&
         s.images >= 2 && s.images / 2 * pixels >= fewest)
    s.images = divideCeil(s.images, 2);
}

ScheduleOverride DirectConvolution::numbers() {
  schedule();
  return ScheduleOverride(
      {{ScheduleKey::Rows, s.rows},
       {ScheduleKey::Vectors, s.vectors},
       {ScheduleKey::Block,
        sumsPixels ? s.planes : s.images * s.lines * y.phases * x.results}});
}
