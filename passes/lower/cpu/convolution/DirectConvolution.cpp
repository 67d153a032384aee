//===- DirectConvolution.cpp - convolutions without gathered windows ------===//
//
// Items: what is copied, packed, multiplied and stored, in which order.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cpu/convolution/DirectConvolution.h"
#include "passes/lower/common/Indices.h"
#include "passes/lower/cpu/KernelEmitter.h"
#include "passes/lower/cpu/convolution/WindowPack.h"
#include "passes/lower/cpu/products/PairCode.h"

#include "ir/ops/Scalar.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;
using llvm::divideCeil;

DirectConvolution::DirectConvolution(AnchorKernel &kernel,
                                     const Product &product)
    : ConvolutionSides(kernel, product), kernel(kernel), code(kernel.code),
      product(product), conv(product.conv),
      sumsPixels(product.lanes == Product::Taps),
      takesPairs(multipliesPairs(kernel.anchor) &&
                 (!sumsPixels || conv.batch > 1)), // pairs of images
      asked(ScheduleOverride::of(kernel.kernel)) {
  if (sumsPixels)
    packed = kernel.operand(product.aNumber,
                            dimensions(kernel.anchor->getContext(), 4),
                            conv.outputShape());
}

/// Not where the image has no strides, few filters would fill no vectors, or
/// windows are pixels in place. And short sums are not worth transposing what
/// comes of them, unless gathered windows would be zeros for the most part.
Fit DirectConvolution::fit() const {
  constexpr int64_t widest = 16, shortest = 96;
  if (llvm::is_contained(product.sizes, 0))
    return Fit::impossible("expected elements but got none");
  if (!image.isAffine() || image.stride(3) != 1)
    return Fit::impossible("expected images whose lines are side by side in "
                           "memory but got others");
  if (conv.window.kernel[1] > widest)
    return Fit::impossible("expected at most " + Twine(widest) +
                           " taps in a line, whose code is written out, but "
                           "got " +
                           Twine(conv.window.kernel[1]));
  if (product.isPointwise() && !takesPairs)
    return Fit::slower("expected windows of several pixels but got single "
                       "ones, which are a matrix in place");
  int64_t phases = y.phases * x.phases, lanes = kernel.target.lanes(type);
  if (2 * across * phases <= lanes)
    return Fit::slower("expected more than " + Twine(lanes / 2) +
                       " planes of the result in a group, half of a vector, "
                       "but got " +
                       Twine(across * phases));
  if (!takesPairs &&
      WindowPack(kernel, product.bNumber, conv, product.lanes).isTransposed())
    return Fit::slower("expected windows that cannot be read along lines but "
                       "got single pixels with strides");
  if (int64_t terms = planes * taps * phases; !sumsPixels && terms < shortest)
    return Fit::slower("expected sums of at least " + Twine(shortest) +
                       " terms but got " + Twine(terms));
  return Fit::good();
}

/// Of whole vectors of filters or channels; pixels of a phase see its taps
/// alone.
double DirectConvolution::seconds() const {
  double all = 1;
  for (int64_t size : product.sizes)
    all *= static_cast<double>(size);
  int64_t lanes = kernel.target.lanes(type);
  all *= static_cast<double>(llvm::alignTo(across, lanes)) /
         static_cast<double>(across * y.phases * x.phases);
  return secondsOf(kernel.kernel, kernel.anchor, takesPairs ? all / 2 : all,
                   /*narrow=*/takesPairs);
}

void DirectConvolution::takeScratch() {
  using enum Product::Dim;
  // The factor that is packed, whose lines are n.
  SmallVector<AffineExpr> index = product.a;
  SmallVector<int64_t> sizes = product.sizes;
  planeIsK0 = product.lanes == Product::InputPixels && taps > 1;
  if (product.lanes == Product::OutputPixels) {
    AffineExpr k = getAffineDimExpr(K1, kernel.anchor->getContext());
    sizes[K0] = 1;
    sizes[K1] = planes * taps;
    auto [height, width] = conv.window.kernel;
    index = {product.a[0], k.floorDiv(taps), k.floorDiv(width) % height,
             k % width};
  }
  std::optional<unsigned> k0;
  if (sizes[K0] > 1)
    k0 = K0;
  factor.emplace(kernel, product.aNumber, index, sizes, M, k0, K1);
  factorGemm.N = across;
  factorGemm.type = type;
  factor->bindB(factorGemm);

  // Bands of lines are parts of planes.
  if (bands() == 1) {
    ahead.emplace_back(code, image, seenShape, s.images, s.planes);
    if (sumsPixels)
      ahead.emplace_back(code, packed, conv.outputShape(), s.images,
                         std::min(s.width(), across));
  }
  using Pairs = PaddedImages::Pairs;
  padded.emplace(kernel, image, y, x, s.images, s.planes, s.lines, type,
                 /*splits=*/false,
                 !takesPairs  ? Pairs::None
                 : sumsPixels ? Pairs::OfImages
                              : Pairs::OfPlanes);
  int64_t k = sumsPixels ? s.images * s.lines * x.results : s.planes * taps;
  panel.memref = kernel.scratch.take(code, {k + s.lanes, s.width()}, type);
  panel.width = s.width();
  panel.lanes = s.lanes;
  sums = kernel.scratch.take(code, {rowsOfBlock() + s.lanes, s.width()}, type);
  manyBlocks = (sumsPixels ? pixelBlocks() : planeBlocks()) > 1;
  output = kernel.directOutput(takesPairs ? code.b.getBF16Type() : type,
                               product.y, product.sizes, Product::N);
  if (!output && !takesPairs)
    ends = VectorFinish::of(kernel, product.y, product.sizes, Product::N);
  if (!isStored())
    squares = kernel.scratch.take(code, {s.lanes, kSquares * s.lanes}, type);
}

void DirectConvolution::prepare() {
  schedule();
  takeScratch();
}

Work DirectConvolution::emit() {
  prepare();
  kernel.forEachItem([&](Value item) {
    Value block = code.rem(item, itemsOfPanel());
    Value rest = code.div(item, itemsOfPanel());
    emitItem(code.div(rest, panels()), code.rem(rest, panels()), block);
  });
  Work work;
  work.items = conv.groups * panels() * itemsOfPanel();
  double rows = rowsOfBlock(), columns = std::min(s.width(), across);
  double k = sumsPixels
                 ? static_cast<double>(conv.batch) * y.results * x.results
                 : static_cast<double>(planes * taps) /
                       static_cast<double>(y.phases * x.phases);
  double bytes =
      elementBytes(type) * (rows * k / taps + columns * k + rows * columns);
  double flops = 2 * rows * columns * k;
  work.grain = grainFor(work.items, takesPairs ? flops / 2 : flops, bytes);
  work.scratchBytes = kernel.scratch.bytes();
  return work;
}

DirectConvolution::Pixels DirectConvolution::pixelsOf(Value block) {
  Value image = code.mul(code.div(block, bands()), s.images);
  Value line = code.mul(code.rem(block, bands()), s.lines);
  auto range = [&](Value begin, int64_t count, int64_t all) -> Range {
    Value end = code.add(begin, count);
    return {begin, all % count == 0 ? end : code.min(end, all)};
  };
  return {range(image, s.images, conv.batch),
          range(line, s.lines, y.neighbours())};
}

DirectConvolution::Range DirectConvolution::planesOf(Value block) {
  Value begin = code.mul(block, s.planes), end = code.add(begin, s.planes);
  return {begin, planes % s.planes == 0 ? end : code.min(end, planes)};
}

void DirectConvolution::emitItem(Value group, Value panelNumber, Value block) {
  using enum Product::Dim;
  at.assign(Dims, Value());
  at[Group] = group;
  at[Image] = code.index(0);
  factor->enter(at);
  panel.n = code.mul(panelNumber, s.width());
  panel.columns =
      across % s.width() == 0
          ? code.index(s.width())
          : code.min(code.sub(code.index(across), panel.n), s.width());
  Value firstPlane = code.mul(group, planes);
  auto sum = [&](Pixels pixels, Range ofPlanes, Value isFirst) {
    padded->fill(pixels.images,
                 {code.add(firstPlane, ofPlanes.begin),
                  code.add(firstPlane, ofPlanes.end)},
                 pixels.lines.begin);
    pack(pixels, ofPlanes);
    if (sumsPixels)
      emitTaps(pixels, ofPlanes, isFirst);
    else
      emitPixels(pixels, ofPlanes, isFirst);
  };
  Value zero = code.index(0);
  Pixels pixels{};
  Range ofPlanes{};
  if (sumsPixels)
    ofPlanes = planesOf(block);
  else
    pixels = pixelsOf(block);
  int64_t blocks = sumsPixels ? pixelBlocks() : planeBlocks();
  code.loop(zero, code.index(blocks), 1, [&](Value k) {
    enterNext(block, k);
    sum(sumsPixels ? pixelsOf(k) : pixels, sumsPixels ? ofPlanes : planesOf(k),
        code.equal(k, zero));
  });
  store(pixels, ofPlanes, group);
}

/// What is read after block `number` of those that are summed for `block`.
void DirectConvolution::enterNext(Value block, Value number) {
  if (ahead.empty())
    return;
  Value group = at[Product::Group], next = code.add(number, 1);
  if (sumsPixels) {
    Value first = code.mul(next, s.images);
    ahead[0].enter(
        first, code.add(code.mul(group, planes), code.mul(block, s.planes)));
    ahead[1].enter(first, code.add(code.mul(group, across), panel.n));
    return;
  }
  Value isLast = code.equal(next, code.index(planeBlocks()));
  Value first = code.select(isLast, code.add(block, 1), block);
  Value plane = code.select(isLast, code.index(0), code.mul(next, s.planes));
  ahead[0].enter(code.mul(first, s.images),
                 code.add(code.mul(group, planes), plane));
}

void DirectConvolution::pack(const Pixels &pixels, Range ofPlanes) {
  panel.k0 = code.index(0);
  panel.k0End = code.index(1);
  if (sumsPixels) {
    panel.k0 = pixels.images.begin;
    panel.k0End = pixels.images.end;
    panel.k1 = code.mul(pixels.lines.begin, x.results);
    panel.k1End = code.mul(pixels.lines.end, x.results);
  } else if (planeIsK0) {
    panel.k0 = ofPlanes.begin;
    panel.k0End = ofPlanes.end;
    panel.k1 = code.index(0);
    panel.k1End = code.index(taps);
  } else {
    panel.k1 = code.mul(ofPlanes.begin, taps);
    panel.k1End = code.mul(ofPlanes.end, taps);
  }
  factorGemm.pack(code, panel);
  if (!takesPairs)
    return;
  if (sumsPixels)
    joinPairs(length(code, pixels.images),
              code.mul(length(code, pixels.lines), x.results));
  else
    joinPairs(length(code, ofPlanes), code.index(taps));
}

/// Of `count` planes or images with `rows` rows each in the panel, the rows of
/// two become those of a pair: no row is written before it is read.
void DirectConvolution::joinPairs(Value count, Value rows) {
  code.loop(code.index(0), terms(count), 1, [&](Value pair) {
    Value first = code.mul(pair, 2), second = code.add(first, 1);
    Value hasSecond = code.less(second, count);
    code.loop(code.index(0), rows, 1, [&](Value row) {
      auto of = [&](Value number) {
        return code.add(code.mul(number, rows), row);
      };
      for (int64_t column = 0; column < s.width(); column += s.lanes) {
        auto read = [&](Value number) {
          return code.load(panel.memref, {of(number), code.index(column)},
                           s.lanes);
        };
        Value high =
            code.select(hasSecond, read(second), code.zeros(type, s.lanes));
        Value words = pairs::ofWide(code, read(first), high);
        code.store(pairs::asFloats(code, words), panel.memref,
                   {of(pair), code.index(column)});
      }
    });
  });
}

Fit lower::cpu::fitDirectConvolution(AnchorKernel &kernel) {
  auto product = ConvolutionProduct::of(kernel.anchor);
  return DirectConvolution(kernel, product).fit();
}

double lower::cpu::secondsOfDirectConvolution(AnchorKernel &kernel) {
  auto product = ConvolutionProduct::of(kernel.anchor);
  return DirectConvolution(kernel, product).seconds();
}

int64_t lower::cpu::scratchOfDirectConvolution(AnchorKernel &kernel) {
  auto product = ConvolutionProduct::of(kernel.anchor);
  DirectConvolution convolution(kernel, product);
  return kernel.countScratch([&] { convolution.prepare(); });
}

ScheduleOverride lower::cpu::cutDirectConvolution(AnchorKernel &kernel) {
  auto product = ConvolutionProduct::of(kernel.anchor);
  return DirectConvolution(kernel, product).numbers();
}

FailureOr<Work> lower::cpu::emitDirectConvolution(AnchorKernel &kernel) {
  auto product = ConvolutionProduct::of(kernel.anchor);
  return DirectConvolution(kernel, product).emit();
}
