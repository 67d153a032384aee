//===- PaddedImages.cpp - images with their padding, in scratch -----------===//
#include "passes/lower/cpu/convolution/PaddedImages.h"
#include "passes/lower/cpu/products/PairCode.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

PaddedImages::PaddedImages(AnchorKernel &kernel, const Operand &operand,
                           const WindowAxis &y, const WindowAxis &x,
                           int64_t images, int64_t planes, int64_t lines,
                           Type type, bool splits, Pairs pairs)
    : code(kernel.code), operand(operand), y(y), x(x), type(type),
      rows(y.padded(lines)), lanes(kernel.target.lanes(type)),
      apart(splits ? x.step : 1), isWhole(lines == y.neighbours()),
      pairs(pairs) {
  assert(apart <= 2 && "rows are in at most two parts");
  if (pairs != Pairs::None)
    this->type = code.b.getI32Type();
  if (pairs == Pairs::OfPlanes)
    planes = llvm::divideCeil(planes, 2);
  if (pairs == Pairs::OfImages)
    images = llvm::divideCeil(images, 2);
  rowStride = x.padded(x.neighbours());
  if (apart > 1) // parts are whole vectors
    rowStride =
        apart * llvm::alignTo(llvm::divideCeil(rowStride, apart), lanes);
  planeStride = rows * rowStride;
  if (isDense())
    planeStride = llvm::alignTo(planeStride, lanes);
  imageStride = planes * planeStride;
  // The last row's last vector reaches over its end.
  memref =
      kernel.scratch.take(code, {images * imageStride + lanes}, this->type);
}

void PaddedImages::fill(Range images, Range planes, Value line) {
  // Many vectors of a short row are one: then the loop would be most of it.
  constexpr int64_t few = 24;
  Value top = code.add(code.mul(line, y.step * y.every), y.first);
  int64_t imagesOfWord = pairs == Pairs::OfImages ? 2 : 1;
  int64_t planesOfWord = pairs == Pairs::OfPlanes ? 2 : 1;
  code.loop(images.begin, images.end, imagesOfWord, [&](Value image) {
    Value number = code.div(code.sub(image, images.begin), imagesOfWord);
    Value ofImage = code.mul(number, imageStride);
    code.loop(planes.begin, planes.end, planesOfWord, [&](Value plane) {
      Value number = code.div(code.sub(plane, planes.begin), planesOfWord);
      Value to = code.add(ofImage, code.mul(number, planeStride));
      if (isDense())
        return fillPlane(image, plane, to);
      Plane from = planeAt(images, planes, image, plane);
      auto row = [&](Value r) {
        fillRow(from, code.add(top, code.mul(r, y.every)),
                code.add(to, code.mul(r, rowStride)));
      };
      if (rows > few)
        return code.loop(code.index(0), code.index(rows), 1, row);
      for (int64_t r = 0; r < rows; ++r)
        row(code.index(r));
    });
  });
}

PaddedImages::Plane PaddedImages::planeAt(Range images, Range planes,
                                          Value image, Value plane) {
  Plane at{image, plane, image, plane, {}};
  if (pairs == Pairs::None)
    return at;
  // The other half of the last word may be missing.
  auto next = [&](Value number, Value end) {
    Value other = code.add(number, 1);
    at.hasOther = code.less(other, end);
    return code.select(at.hasOther, other, number);
  };
  if (pairs == Pairs::OfPlanes)
    at.otherNumber = next(plane, planes.end);
  else
    at.otherImage = next(image, images.end);
  return at;
}

/// The elements of a padded vector that are inside of the image follow each
/// other there, if lines do; processors with masks expand them.
bool PaddedImages::isDense() const {
  constexpr int64_t most = 128; // vectors of a plane: they are not a loop
  return isWhole && apart == 1 && rows * rowStride <= most * lanes &&
         y.every == 1 && operand.element == type &&
         operand.stride(2) == x.seen && x.first <= 0 &&
         x.first + rowStride >= x.seen &&
         lanes * type.getIntOrFloatBitWidth() == 512;
}

void PaddedImages::fillPlane(Value image, Value plane, Value to) {
  Value from = operand.at(code, {image, plane, {}, {}});
  for (int64_t at = 0; at < planeStride; at += lanes) {
    SmallVector<bool> on(lanes);
    int64_t begin = -1, count = 0;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      int64_t row = y.first + (at + lane) / rowStride;
      int64_t column = x.first + (at + lane) % rowStride;
      on[lane] = row >= 0 && row < y.seen && column >= 0 && column < x.seen;
      count += on[lane];
      if (on[lane] && begin < 0)
        begin = row * x.seen + column;
    }
    Value vector = code.zeros(type, lanes);
    if (count == lanes)
      vector = code.load(operand.memref, code.add(from, begin), lanes);
    else if (count > 0)
      vector = vector::ExpandLoadOp::create(
          code.b, code.loc, cast<VectorType>(vector.getType()), operand.memref,
          code.add(from, begin), code.lanesOn(on), vector);
    code.store(vector, memref, code.add(to, at));
  }
}

Value PaddedImages::padded(const Plane &plane, const Row &row, int64_t at) {
  int64_t low = std::clamp<int64_t>(-at, 0, lanes);
  int64_t high = std::clamp<int64_t>(x.seen - at, 0, lanes);
  if (low >= high)
    return code.zeros(type, lanes);
  Value mask;
  if (low > 0 || high < lanes) {
    SmallVector<bool> on(lanes);
    for (int64_t lane = low; lane < high; ++lane)
      on[lane] = true;
    mask = code.lanesOn(on);
  }
  auto read = [&](Value from) {
    return code.load(operand.memref, code.add(from, at), lanes, mask);
  };
  if (pairs == Pairs::None)
    return code.widen(read(row.from), type);
  Value other = read(row.other);
  other =
      code.select(plane.hasOther, other, code.zeros(operand.element, lanes));
  return pairs::of(code, read(row.from), other);
}

/// Rows are written in their order: what a vector writes after its row's end,
/// the next one overwrites.
void PaddedImages::fillRow(const Plane &plane, Value row, Value to) {
  auto inside = [&] {
    Row from{operand.at(code, {plane.image, plane.number, row, {}}), {}};
    if (pairs != Pairs::None)
      from.other =
          operand.at(code, {plane.otherImage, plane.otherNumber, row, {}});
    int64_t part = rowStride / apart;
    for (int64_t column = 0; column < part; column += lanes) {
      Value first = padded(plane, from, x.first + apart * column);
      if (apart == 1) {
        code.store(first, memref, code.add(to, column));
        continue;
      }
      Value second = padded(plane, from, x.first + apart * column + lanes);
      for (int64_t phase = 0; phase < apart; ++phase) {
        SmallVector<int64_t> taken;
        for (int64_t lane = 0; lane < lanes; ++lane)
          taken.push_back(2 * lane + phase);
        Value vector =
            vector::ShuffleOp::create(code.b, code.loc, first, second, taken);
        code.store(vector, memref, code.add(to, phase * part + column));
      }
    }
  };
  auto outside = [&] {
    Value zeros = code.zeros(type, lanes);
    for (int64_t column = 0; column < rowStride; column += lanes)
      code.store(zeros, memref, code.add(to, column));
  };
  code.when(code.below(row, y.seen), inside, outside);
}
