//===- DirectConvolution.h - convolutions without gathered windows --------===//
//
// A convolution as a product whose rows are read from padded images in place:
// an element is the sum of where its row begins and where its tap is. The
// vectors are filters (or, of conv2d_input_grad, channels), which are packed:
//   conv2d              C(pixel of y, filter)     = x(pixel, k) w(k, filter),
//                       k = (channel, tap)
//   conv2d_input_grad   C(pixel of x, channel)    = dy(pixel, k) w(k, channel),
//                       k = (filter, tap)
//   conv2d_filter_grad  C((channel, tap), filter) = x(..., k) dy(k, filter),
//                       k = (image, pixel of y)
// Where the processor multiplies pairs of bf16, elements are pairs: of two
// planes that are summed, or of two images. Sums are collected in scratch and
// transposed when they are stored. Strides cost nothing: each phase of a
// gradient's pixels has its own taps.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_CONVOLUTION_DIRECTCONVOLUTION_H
#define TANDEM_PASSES_LOWER_CPU_CONVOLUTION_DIRECTCONVOLUTION_H

#include "passes/lower/common/Method.h"
#include "passes/lower/common/ScheduleOverride.h"
#include "passes/lower/common/VectorFinish.h"
#include "passes/lower/cpu/convolution/ConvolutionSides.h"
#include "passes/lower/cpu/convolution/PaddedImages.h"
#include "passes/lower/cpu/products/GemmOperand.h"
#include "passes/lower/cpu/products/PlanePrefetch.h"

#include "llvm/Support/MathExtras.h"

#include <optional>

namespace tandem::lower::cpu {

using namespace lower;

/// How a direct convolution is cut. Of the planes that windows look at, and of
/// the pixels, one is in blocks that are items' and the other in blocks that
/// are summed over.
struct DirectSchedule {
  int64_t lanes, vectors, rows; ///< of a tile: registers across, and rows
  int64_t planes;               ///< of a block
  int64_t images, lines;        ///< of a block of pixels; lines of neighbours
  int64_t width() const { return vectors * lanes; }
};

/// How many squares are transposed before their lines are finished: lines that
/// are long enough for loops over vectors.
constexpr int64_t kSquares = 4;

/// The emission of one kernel.
class DirectConvolution : ConvolutionSides {
public:
  using Product = ConvolutionProduct;

  DirectConvolution(AnchorKernel &kernel, const Product &product);
  Fit fit() const;
  double seconds() const;
  /// Chooses the schedule, and takes the scratch that it needs.
  void prepare();
  /// Chooses the schedule.
  ScheduleOverride numbers();
  Work emit();

private:
  using Value = mlir::Value;
  using Range = PaddedImages::Range;
  /// A block of pixels: images, and neighbours along the height.
  struct Pixels {
    Range images, lines;
  };

  void schedule();
  void chooseTile();
  void cutPlanes();
  void cutPixels();
  /// Of conv2d_filter_grad: the rows of a tile are lines of the kernel.
  bool tilesAreLines() const;
  void takeScratch();
  int64_t panels() const { return llvm::divideCeil(across, s.width()); }
  int64_t planeBlocks() const { return llvm::divideCeil(planes, s.planes); }
  int64_t bands() const { return llvm::divideCeil(y.neighbours(), s.lines); }
  int64_t pixelBlocks() const {
    return llvm::divideCeil(conv.batch, s.images) * bands();
  }
  int64_t itemsOfPanel() const {
    return sumsPixels ? planeBlocks() : pixelBlocks();
  }
  int64_t rowsOfBlock() const {
    return sumsPixels ? s.planes * taps
                      : s.images * s.lines * y.phases * x.results;
  }

  void emitItem(Value group, Value panelNumber, Value block);
  void pack(const Pixels &pixels, Range ofPlanes);
  void joinPairs(Value count, Value rows);
  /// How many there are of `count` planes or images that are summed.
  int64_t terms(int64_t count) const {
    return takesPairs ? llvm::divideCeil(count, 2) : count;
  }
  Value terms(Value count) {
    return takesPairs ? code.div(code.add(count, 1), 2) : count;
  }
  void enterNext(Value block, Value number);
  Pixels pixelsOf(Value block);
  Range planesOf(Value block);
  static Value length(Code &code, Range range) {
    return code.sub(range.end, range.begin);
  }

  void emitPixels(const Pixels &pixels, Range ofPlanes, Value isFirst);
  void emitPhase(const Pixels &pixels, Range ofPlanes, int64_t phaseY,
                 int64_t phaseX, Value isFirst);
  void emitTaps(const Pixels &pixels, Range ofPlanes, Value isFirst);

  /// Rows of a tile: where they begin in the padded images, and their rows of
  /// sums.
  struct Rows {
    llvm::SmallVector<Value> begin, place;
  };
  /// The rows of a tile at distances from its first one, in the padded images
  /// and in the sums.
  Rows
  rowsFrom(Value begin, Value place,
           llvm::function_ref<std::pair<int64_t, int64_t>(int64_t)> distances);
  /// `count` tiles with the rows `rows(tile)`. A tile may have a row twice.
  /// `enter` is called when one begins.
  void emitTiles(Value count, llvm::function_ref<void(Value)> enter,
                 llvm::function_ref<Rows(Value)> rows,
                 llvm::function_ref<Code::Values(Rows &, Code::Values)> product,
                 Value isFirst);
  /// One k: padded elements `shift` after the rows' begin, row `k` of the
  /// panel.
  Code::Values multiply(const Rows &rows, Value shift, int64_t plus, Value k,
                        int64_t plusK, mlir::ValueRange sums);

  /// Sums go from the registers to the result.
  bool isStored() const { return output || ends; }
  void store(const Pixels &pixels, Range ofPlanes, Value group);
  void storeSquares(Value row, Value count, Value pixel);
  void storeSquare(const Code::Values &square, Value n, Value pixel,
                   Value left);
  void storeVector(Value n, Value pixel, Value vector, Value mask);
  void finishLine(Value line, Value n, Value pixel, Value count);

  AnchorKernel &kernel;
  Code &code;
  const Product &product;
  const Convolution2d &conv;
  bool sumsPixels; ///< the gradient of the filter
  bool takesPairs; ///< of bf16
  ScheduleOverride asked;
  DirectSchedule s;

  Operand packed; ///< of conv2d_filter_grad, dy
  std::optional<GemmOperand> factor;
  bool planeIsK0 = false; ///< of the factor; else k1 is (plane, tap)
  Gemm factorGemm;
  std::optional<PaddedImages> padded;
  llvm::SmallVector<PlanePrefetch, 2> ahead; ///< the images, and what is packed
  GemmPanel panel;
  Value sums, squares;
  std::optional<Operand> output;
  std::optional<VectorFinish> ends; ///< where results are not the sums
  llvm::SmallVector<Value> at;      ///< of the item
  bool manyBlocks = false;
};

/// The row of this method (Methods.cpp).
Fit fitDirectConvolution(AnchorKernel &kernel);
double secondsOfDirectConvolution(AnchorKernel &kernel);
int64_t scratchOfDirectConvolution(AnchorKernel &kernel);
ScheduleOverride cutDirectConvolution(AnchorKernel &kernel);
mlir::FailureOr<Work> emitDirectConvolution(AnchorKernel &kernel);

} // namespace tandem::lower::cpu

#endif
