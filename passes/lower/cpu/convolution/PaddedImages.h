//===- PaddedImages.h - images with their padding, in scratch -------------===//
//
// A block of planes of some images, and of each plane the rows and columns that
// a block of pixels sees, with zeros for what is outside: so that a position
// and a tap are a sum, and nothing has to be asked when windows are read.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_CONVOLUTION_PADDEDIMAGES_H
#define TANDEM_PASSES_LOWER_CPU_CONVOLUTION_PADDEDIMAGES_H

#include "passes/lower/common/Anchor.h"
#include "passes/lower/cpu/convolution/WindowAxis.h"

namespace tandem::lower::cpu {

using namespace lower;

class PaddedImages {
public:
  using Value = mlir::Value;

  /// What an element is: a number, or a word with the pair of it and the one at
  /// the same place of the next plane or the next image (PairCode.h).
  enum class Pairs { None, OfPlanes, OfImages };

  /// `operand` is [images, planes, height, width], with neighbours along the
  /// width side by side. At most `images` and `planes` are there at one time,
  /// with what `lines` neighbours along `y` and all along `x` see. If `splits`,
  /// what neighbours along `x` see at a tap is side by side, also where they
  /// are two positions apart: first the even positions of a row, then the odd
  /// ones. Pairs begin with the first of what is copied at one time; what the
  /// last one lacks is zeros.
  PaddedImages(AnchorKernel &kernel, const Operand &operand,
               const WindowAxis &y, const WindowAxis &x, int64_t images,
               int64_t planes, int64_t lines, mlir::Type type,
               bool splits = false, Pairs pairs = Pairs::None);

  struct Range {
    Value begin, end;
  };
  /// Copies the planes of the images as neighbours from `line` on see them.
  void fill(Range images, Range planes, Value line);
  /// Where in its row the padded position `offset` is.
  int64_t column(int64_t offset) const {
    return offset % apart * (rowStride / apart) + offset / apart;
  }

  Value memref; ///< rank 1, of the type of the sums, or of words of 32 bits
  int64_t rowStride, planeStride, imageStride;

private:
  /// Whether a padded vector is made of neighbours in memory.
  bool isDense() const;
  /// A plane of the tensor. Of words, it has their low halves, and the other
  /// plane the high ones, which are zeros where there is none (`hasOther`).
  struct Plane {
    Value image, number;
    Value otherImage, otherNumber, hasOther;
  };
  Plane planeAt(Range images, Range planes, Value image, Value plane);
  void fillRow(const Plane &plane, Value row, Value to);
  /// Where column 0 of a row is.
  struct Row {
    Value from, other;
  };
  /// The vector of a row of the image that begins at column `at`, with zeros
  /// outside.
  Value padded(const Plane &plane, const Row &row, int64_t at);
  void fillPlane(Value image, Value plane, Value to);

  Code &code;
  Operand operand;
  const WindowAxis &y, &x;
  mlir::Type type;
  int64_t rows, lanes;
  int64_t apart; ///< parts of a row
  bool isWhole;  ///< all lines are there at one time
  Pairs pairs;
};

} // namespace tandem::lower::cpu

#endif
