//===- PointwiseConvolution.h - convolutions of 1x1 taps ------------------===//
//
// conv2d and conv2d_input_grad of windows of one pixel, without padding:
//   C(plane, pixel of y) = sum over k of w(plane, k) seen(k, pixel of y)
// A block of pixels is packed once, for all planes of the result: every second
// one where conv2d has strides. Then a band of planes passes over all panels of
// the block, so that the lines of a plane are stored in long runs, which the
// processor foresees, and what the next block reads is asked for meanwhile.
// Pixels of x that no window sees are zeros between those that come of it.
// Where the processor multiplies pairs of bf16 (PairCode.h), two planes that
// are summed are one row of the packed block, and one k.
//
// Vectors are pixels that follow each other in a plane of y: a block is some
// lines of an image, or several whole images. Each is a run of whole vectors;
// or, where images do not fill vectors, the pixels of the block's images follow
// each other, and a vector may have the end of one and the beginning of the
// next one.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_CONVOLUTION_POINTWISECONVOLUTION_H
#define TANDEM_PASSES_LOWER_CPU_CONVOLUTION_POINTWISECONVOLUTION_H

#include "passes/lower/common/ConvolutionProduct.h"
#include "passes/lower/common/Method.h"
#include "passes/lower/common/VectorFinish.h"
#include "passes/lower/cpu/products/PackedNumber.h"

#include <optional>

namespace tandem::lower::cpu {

using namespace lower;

/// How it is cut.
struct PointwiseSchedule {
  int64_t lanes, rows, vectors; ///< of a tile
  int64_t images;               ///< of a block: divides those that there are
  int64_t run;                  ///< pixels that a block has of an image; where
               ///< they do not divide a plane, its last has less
  int64_t runVectors; ///< of these
  bool joins;         ///< vectors go over the ends of images
  int64_t vectorsOfBlock;
  int64_t kBlock;     ///< of a short sum
  int64_t rowsOfItem; ///< planes of the result; multiple of `rows`
  int64_t band;       ///< of them, that pass the panels together
  int64_t width() const { return vectors * lanes; }
  int64_t blockVectors() const { return vectorsOfBlock; }
};

/// The emission of one kernel.
class PointwiseConvolution {
public:
  using Product = ConvolutionProduct;

  PointwiseConvolution(AnchorKernel &kernel, const Product &product);
  /// Chooses the schedule, where that is possible.
  Fit fit();
  double seconds() const;
  /// Of the schedule that `fit` has chosen.
  ScheduleOverride numbers() const;
  /// Chooses the schedule, and takes the scratch that it needs.
  void prepare();
  Work emit();

private:
  using Value = mlir::Value;

  /// Rounds of k in the innermost loop.
  static constexpr int64_t unroll = 4;

  Fit shapeFit() const;
  Fit schedule();
  int64_t mostVectors() const;
  bool cutPixels(int64_t most);
  bool cutPlane(int64_t most);
  void askPixels(int64_t pixels);
  void chooseTile();
  void cutRows(int64_t asked);
  void takeScratch();
  bool isForward() const { return product.lanes == Product::OutputPixels; }
  bool hasStride() const { return conv.window.stride[0] != 1; }
  /// The result has pixels that no window sees.
  bool expands() const { return hasStride() && !isForward(); }
  int64_t panels() const {
    return llvm::divideCeil(s.blockVectors(), s.vectors);
  }
  int64_t bands() const { return llvm::divideCeil(planePixels(), s.run); }
  int64_t blocks() const {
    return conv.groups * (conv.batch / s.images) * bands();
  }
  int64_t rowBlocks() const { return llvm::divideCeil(across, s.rowsOfItem); }
  int64_t kBlocks() const { return llvm::divideCeil(terms, s.kBlock); }
  /// The next block is packed beside the products of a block.
  bool manyBuffers() const { return rowsOfTile() > 0; }
  int64_t tilesOfItem() const {
    int64_t last = across - (rowBlocks() - 1) * s.rowsOfItem;
    return llvm::divideCeil(last, s.rows) * panels();
  }
  int64_t sumsOfRow() const { return panels() * s.width(); }
  /// A run of x, and a vector that begins with its last element.
  int64_t expandedLength() const { return (4 * s.runVectors + 1) * s.lanes; }
  /// Sums go from the registers to the result.
  bool isStored() const { return (output || ends) && !expands(); }
  bool keepsSums() const { return !isStored() || kBlocks() > 1; }

  /// A block of pixels: of these images, from this pixel of y's plane on.
  struct Block {
    Value group, image, pixel;
  };
  Block blockAt(Value number);
  /// A vector of the block: of which image of the tensor, and from which pixel
  /// of its plane of y on.
  struct VectorStart {
    Value image, pixel;
  };
  VectorStart startOf(const Block &block, Value vector);
  /// The lanes of a vector that are pixels of the image with which it begins,
  /// and a mask of them; null if all are.
  Value lanesOf(const Block &of, Value vector);
  /// The mask of what is on in `mask` but not in `other`.
  Value without(Value mask, Value other);
  Value maskOf(const Block &of, Value vector);
  /// The pixels that a block has of each image.
  Value pixelsOf(const Block &of);
  /// The image behind that, whose pixels the other lanes are: lane 0 would be
  /// this one. Behind the last image it is that, where only reads go.
  VectorStart secondOf(const VectorStart &start) const {
    return {code.min(code.add(start.image, 1), conv.batch - 1),
            code.add(start.pixel, -planePixels())};
  }
  /// Whether vectors can have lanes that are not on, at the end of a plane or
  /// where another image follows.
  bool canMask() const;
  int64_t planePixels() const {
    return conv.window.output[0] * conv.window.output[1];
  }

  void emitItem(Value number);
  void packBlock();
  void packPanel(Value number, int64_t vectors);
  /// The rows of a panel: of each vector where it is in plane 0, and its mask.
  /// Where images are joined, also where the lanes that are not on are.
  struct Source {
    Value row;
    llvm::SmallVector<Value> from, masks, others;
  };
  Source sourceOf(const Block &of, Value panel, int64_t vectors);
  void packRow(const Source &source, Value k, Value to);
  void fetchRow(const Source &source, Value k);
  int64_t rowsOfTile() const;
  void beginAhead(Value rowTile, Value panel);
  void packAhead(Value round);
  Value seenAt(const Block &of, const VectorStart &place);
  Value seenVector(Value from, Value mask, Value other);
  Value secondOf(Value k) const;
  Value vectorOf(Value k, llvm::function_ref<Value(Value plane)> read) const;
  void emitBand(Value row, Value end);
  void packFactor(Value row, Value end, Value k, Value kEnd);
  Value factorRow(Value position, Value mask);
  void packFactorElements(Value base, Value count, Value k, Value kEnd);
  bool packsFactor() const;
  void emitTile(Value row, int64_t rows, Value panel, int64_t vectors, Value k,
                Value kEnd);
  Value factorAt(Value row, int64_t i, Value k, int64_t u);

  void storeVector(Value row, Value image, Value pixel, Value vector,
                   Value mask);
  void storeColumn(Value row, Value vector, mlir::ValueRange sums);
  void storeOrAdd(Value row, int64_t rows, Value panel, int64_t vectors,
                  Code::Values tile, Value k, Value kEnd);
  void finishBand(Value row, Value end);
  void expandRun(Value from);
  void finishRun(Value row, Value image, Value memref, Value from, Value pixel,
                 Value count);

  AnchorKernel &kernel;
  Code &code;
  const Product &product;
  const Convolution2d &conv;
  int64_t planes, across; ///< that are summed, of the result; of a group
  mlir::Type type;        ///< of the sums
  Operand image, factor;
  bool takesPairs;
  int64_t terms;   ///< k: planes that are summed, or pairs of them
  mlir::Type term; ///< what is packed: the type of the sums, or words
  std::optional<Operand> output;
  std::optional<VectorFinish> ends; ///< where results are not the sums
  PointwiseSchedule s;

  PackedNumber packed; ///< of the block in scratch
  /// [panel, k][width] of this block, and of the next one.
  Value panelsOf, panelsAhead;
  Value packsAhead; ///< while this item runs
  Value ofFactor;   ///< [k][row of the band], where it is packed
  Value sums;       ///< [row of the band][pixel of the block], rank 1
  Value expanded;   ///< a run of x
  Block block, next, afterNext;
  Value firstRow, bandRow; ///< the first of the item, of the band
  /// Of what a tile packs and what it asks for, from these rows on.
  Source ahead, later;
  Value aheadRow, laterRow;
};

/// The row of this method (Methods.cpp).
Fit fitPointwiseConvolution(AnchorKernel &kernel);
double secondsOfPointwiseConvolution(AnchorKernel &kernel);
int64_t scratchOfPointwiseConvolution(AnchorKernel &kernel);
ScheduleOverride cutPointwiseConvolution(AnchorKernel &kernel);
mlir::FailureOr<Work> emitPointwiseConvolution(AnchorKernel &kernel);

} // namespace tandem::lower::cpu

#endif
