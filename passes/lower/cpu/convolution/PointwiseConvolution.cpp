//===- PointwiseConvolution.cpp - convolutions of 1x1 taps ----------------===//
//
// Items: what is packed, multiplied and asked for, in which order.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cpu/convolution/PointwiseConvolution.h"
#include "passes/lower/common/Indices.h"
#include "passes/lower/cpu/KernelEmitter.h"
#include "passes/lower/cpu/convolution/StrideTwoLoad.h"
#include "passes/lower/cpu/products/Gemm.h"
#include "passes/lower/cpu/products/PairCode.h"
#include "passes/target/CpuCaches.h"

#include "ir/ops/Scalar.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;
using llvm::divideCeil;

PointwiseConvolution::PointwiseConvolution(AnchorKernel &kernel,
                                           const Product &product)
    : kernel(kernel), code(kernel.code), product(product), conv(product.conv),
      planes(product.sizes[Product::K1]), across(product.sizes[Product::M]) {
  auto result = cast<RankedTensorType>(kernel.anchor->getResult(0).getType());
  type = scalar::computeType(result.getElementType());
  SmallVector<AffineExpr> dims = dimensions(kernel.anchor->getContext(), 4);
  image = kernel.operand(product.bNumber, dims,
                         isForward() ? conv.inputShape() : conv.outputShape());
  factor = kernel.operand(product.aNumber, product.a, product.sizes);
  takesPairs = multipliesPairs(kernel.anchor);
  terms = takesPairs ? divideCeil(planes, 2) : planes;
  term = takesPairs ? kernel.code.b.getI32Type() : type;
}

Fit PointwiseConvolution::shapeFit() const {
  using Pair = Window2d::Pair;
  constexpr Pair one{1, 1}, two{2, 2}, none{0, 0};
  const Window2d &w = conv.window;
  if (product.lanes == Product::Taps)
    return Fit::impossible("expected pixels as results but got taps");
  if (w.kernel != one)
    return Fit::impossible("expected taps of 1x1 but got " + crossed(w.kernel));
  if (w.stride != one && w.stride != two)
    return Fit::impossible("expected strides of 1x1 or 2x2 but got " +
                           crossed(w.stride));
  if (w.before != none || w.after != none)
    return Fit::impossible("expected no padding but got " + crossed(w.before) +
                           " before and " + crossed(w.after) + " after");
  if (llvm::is_contained(product.sizes, 0))
    return Fit::impossible("expected elements but got none");
  // Planes without gaps.
  int64_t width = isForward() ? w.input[1] : w.output[1];
  if (!image.isAffine() || !factor.isAffine() || image.stride(3) != 1 ||
      image.stride(2) != width)
    return Fit::impossible("expected images whose planes are without gaps in "
                           "memory but got others");
  // Packing is paid back by planes of the result.
  constexpr int64_t fewestPlanes = 13;
  if (across < fewestPlanes)
    return Fit::slower("expected at least " + Twine(fewestPlanes) +
                       " planes of the result in a group but got " +
                       Twine(across));
  return Fit::good();
}

Fit PointwiseConvolution::fit() {
  Fit shape = shapeFit();
  if (!shape.isPossible())
    return shape;
  Fit cut = schedule();
  return cut.isGood() ? shape : cut;
}

/// Of whole vectors of pixels.
double PointwiseConvolution::seconds() const {
  double multiplyAdds = static_cast<double>(blocks()) * s.blockVectors() *
                        s.lanes * terms * across;
  return secondsOf(kernel.kernel, kernel.anchor, multiplyAdds,
                   /*narrow=*/takesPairs);
}

Fit PointwiseConvolution::schedule() {
  s.lanes = kernel.target.lanes(type);
  s.vectors = kernel.target.registers >= 32 ? 4 : 2;
  constexpr int64_t shortSum = 256;
  // Whole rounds, which count what is packed beside them.
  s.kBlock = equalParts(terms, shortSum, unroll);
  if (hasStride() && !readsEverySecondPixel(conv.window, s.lanes))
    return Fit::impossible("expected lines whose every second pixel fills "
                           "vectors of " +
                           Twine(s.lanes) + " but got " +
                           Twine(conv.window.input[1]) + " pixels");
  if (!cutPixels(mostVectors()))
    return Fit::impossible(
        "expected blocks of whole lines that fill vectors of " +
        Twine(s.lanes) + " but got planes of " + crossed(conv.window.output));
  // What is asked for changes the cut alone: the model has decided on the
  // method.
  using enum ScheduleKey;
  auto asked = ScheduleOverride::of(kernel.kernel);
  if (asked.has(Columns))
    askPixels(asked[Columns]);
  if (!asked.hasAll({Rows, Vectors}))
    chooseTile();
  s.vectors = asked.get(Vectors, s.vectors);
  if (asked.has(Rows))
    s.rows = std::min(asked[Rows], across);
  cutRows(asked[Block]);
  return Fit::good();
}

ScheduleOverride PointwiseConvolution::numbers() const {
  using enum ScheduleKey;
  return ScheduleOverride({{Rows, s.rows},
                           {Vectors, s.vectors},
                           {Block, s.rowsOfItem},
                           {Columns, s.blockVectors() * s.lanes}});
}

/// Blocks of about so many pixels, where these can be cut so.
void PointwiseConvolution::askPixels(int64_t pixels) {
  constexpr int64_t most = 256;
  PointwiseSchedule before = s;
  if (!cutPixels(std::min<int64_t>(divideCeil(pixels, s.lanes), most)))
    s = before;
}

/// A panel that each tile reads from the second-level cache is better read by
/// eight rows than by six; but what remains of a block should be no tile of one
/// vector.
void PointwiseConvolution::chooseTile() {
  constexpr int64_t nearBytes = caches::kFirst, mostRows = 8;
  int64_t panelBytes = s.kBlock * s.width() * type.getIntOrFloatBitWidth() / 8;
  if (s.vectors == 4 && panelBytes > nearBytes && s.blockVectors() % 3 != 1)
    s.vectors = 3;
  s.rows =
      equalParts(across, std::min(kernel.target.tileRows(s.vectors), mostRows));
}

/// Two packed blocks, and what the next ones are made of, stay in the
/// second-level cache.
int64_t PointwiseConvolution::mostVectors() const {
  constexpr int64_t cacheBytes = caches::kSecond / 2, longest = 32,
                    enoughBlocks = 4;
  int64_t bytes = type.getIntOrFloatBitWidth() / 8;
  int64_t all = conv.batch * divideCeil(planePixels(), s.lanes);
  return std::min({longest, cacheBytes / (terms * s.lanes * bytes),
                   std::max(2 * s.vectors, all / enoughBlocks)});
}

/// Where masks of lanes are cheap: of shorter vectors, and of narrow elements
/// but for those of 512 bits, each lane would be a branch. An image is at least
/// a vector, so that this has pixels of two of them at most.
bool PointwiseConvolution::canMask() const {
  int64_t bits = kernel.target.bits;
  return !hasStride() && planePixels() >= s.lanes &&
         (bits >= 512 ||
          (bits >= 256 && image.element.getIntOrFloatBitWidth() >= 32));
}

/// Finds blocks of up to `most` vectors, or of a tile's, in which a plane's run
/// is long; whether they are good.
bool PointwiseConvolution::cutPixels(int64_t most) {
  auto [height, width] = conv.window.output;
  double best = 0;
  auto consider = [&](int64_t images, int64_t lines) {
    int64_t run = divideCeil(lines * width, s.lanes), vectors = images * run;
    // The vectors that are saved have to pay for masks.
    int64_t joined = divideCeil(images * lines * width, s.lanes);
    bool joins = 20 * joined <= 19 * vectors && canMask();
    if (joins)
      vectors = joined;
    if (vectors > most && vectors > s.vectors)
      return;
    // Runs that end within a vector are masked, so they are whole images.
    if (lines * width % s.lanes != 0 && lines != height)
      return;
    double used = static_cast<double>(images * lines * width) /
                  static_cast<double>(vectors * s.lanes);
    // Of two that fill vectors equally, the longer one.
    double worth = used + 0.002 * static_cast<double>(vectors);
    if (worth > best) {
      best = worth;
      s.images = images;
      s.run = lines * width;
      s.runVectors = run;
      s.joins = joins;
      s.vectorsOfBlock = vectors;
    }
  };
  for (int64_t lines = 1; lines <= height; ++lines)
    if (height % lines == 0)
      consider(1, lines);
  for (int64_t images = 2; images <= conv.batch; ++images)
    if (conv.batch % images == 0)
      consider(images, height);
  // Lines that follow a run are not there.
  bool isCut = isForward() && hasStride() && s.run % s.lanes != 0;
  return (best > 0.6 && !isCut) || cutPlane(most);
}

/// Finds blocks of whole vectors of a plane whose lines fill none, as of 27x27;
/// its last one has lanes without a pixel.
bool PointwiseConvolution::cutPlane(int64_t most) {
  if (!canMask())
    return false;
  int64_t vectors =
      equalParts(divideCeil(planePixels(), s.lanes), std::max(most, s.vectors));
  if (vectors * s.lanes >= planePixels())
    return false;
  s.images = 1;
  s.run = vectors * s.lanes;
  s.runVectors = s.vectorsOfBlock = vectors;
  s.joins = false;
  return true;
}

/// Enough items for many threads, of rows that pay for the packing; or items of
/// `asked` rows.
void PointwiseConvolution::cutRows(int64_t asked) {
  constexpr int64_t enoughItems = 16, fewestRows = 96, bandRows = 48;
  s.rowsOfItem = equalParts(across, asked ? asked : across, s.rows);
  for (int64_t parts = 2; !asked && blocks() * rowBlocks() < enoughItems &&
                          s.rowsOfItem >= 2 * fewestRows;
       ++parts)
    s.rowsOfItem = equalParts(across, divideCeil(across, parts), s.rows);
  s.band = equalParts(s.rowsOfItem, bandRows, s.rows);
}

void PointwiseConvolution::takeScratch() {
  // The word with which scratch begins is 0 when a thread begins a launch.
  packed = PackedNumber::take(code, kernel.scratch);
  auto takePanels = [&] {
    return kernel.scratch.take(code, {panels() * terms, s.width()}, term);
  };
  panelsOf = takePanels();
  if (manyBuffers())
    panelsAhead = takePanels();
  if (packsFactor())
    ofFactor = kernel.scratch.take(
        code, {s.kBlock, int64_t(llvm::alignTo(s.band, s.lanes)) + s.lanes},
        term);
  output = kernel.directOutput(takesPairs ? code.b.getBF16Type() : type,
                               product.y, product.sizes, Product::N);
  if (!output && !takesPairs && !expands())
    ends = VectorFinish::of(kernel, product.y, product.sizes, Product::N);
  if (keepsSums())
    sums = kernel.scratch.take(code, {s.band * sumsOfRow()}, type);
  if (expands())
    expanded = kernel.scratch.take(code, {expandedLength()}, type);
}

/// Words are read in place where they are in memory.
bool PointwiseConvolution::packsFactor() const {
  if (takesPairs)
    return factor.stride(Product::K1) != 1 || planes % 2 != 0;
  // Elements that are far apart meet in few sets of the first-level cache.
  constexpr int64_t farBytes = 512;
  int64_t bytes = factor.element.getIntOrFloatBitWidth() / 8;
  return factor.stride(Product::M) == 1 &&
         factor.stride(Product::K1) * bytes > farBytes;
}

void PointwiseConvolution::prepare() {
  schedule();
  takeScratch();
}

Work PointwiseConvolution::emit() {
  prepare();
  kernel.forEachItem([&](Value item) { emitItem(item); });
  Work work;
  work.items = blocks() * rowBlocks();
  double pixels = static_cast<double>(s.images * s.run);
  double rows = std::min(s.rowsOfItem, across), k = terms;
  work.grain = grainFor(work.items, 2 * rows * pixels * k,
                        elementBytes(type) * (rows + k) * pixels);
  work.scratchBytes = kernel.scratch.bytes();
  return work;
}

PointwiseConvolution::Block PointwiseConvolution::blockAt(Value number) {
  Value pixel = code.mul(code.rem(number, bands()), s.run);
  Value ofImages = code.div(number, bands());
  int64_t parts = conv.batch / s.images;
  return {code.div(ofImages, parts),
          code.mul(code.rem(ofImages, parts), s.images), pixel};
}

PointwiseConvolution::VectorStart
PointwiseConvolution::startOf(const Block &block, Value vector) {
  if (s.joins) {
    Value pixel = code.mul(vector, s.lanes);
    return {code.add(block.image, code.div(pixel, planePixels())),
            code.rem(pixel, planePixels())};
  }
  return {
      code.add(block.image, code.div(vector, s.runVectors)),
      code.add(block.pixel, code.mul(code.rem(vector, s.runVectors), s.lanes))};
}

Value PointwiseConvolution::pixelsOf(const Block &of) {
  if (planePixels() % s.run == 0)
    return code.index(s.run);
  return code.min(code.sub(code.index(planePixels()), of.pixel), s.run);
}

Value PointwiseConvolution::lanesOf(const Block &of, Value vector) {
  Value done = s.joins ? code.rem(code.mul(vector, s.lanes), planePixels())
                       : code.mul(code.rem(vector, s.runVectors), s.lanes);
  return code.min(code.sub(pixelsOf(of), done), s.lanes);
}

Value PointwiseConvolution::maskOf(const Block &of, Value vector) {
  if (s.run % s.lanes == 0 && planePixels() % s.run == 0)
    return {};
  return code.firstLanes(lanesOf(of, vector), s.lanes);
}

Value PointwiseConvolution::without(Value mask, Value other) {
  Value on = code.like(other, 1);
  return code.both(mask,
                   code.b.createOrFold<arith::XOrIOp>(code.loc, other, on));
}

void PointwiseConvolution::emitItem(Value item) {
  Value number = code.div(item, rowBlocks());
  Value row = code.mul(code.rem(item, rowBlocks()), s.rowsOfItem);
  Value end = code.min(code.add(row, s.rowsOfItem), across);
  block = blockAt(number);
  next = blockAt(code.min(code.add(number, 1), blocks() - 1));
  afterNext = blockAt(code.min(code.add(number, 2), blocks() - 1));
  firstRow = row;
  // In the last item of the block.
  packsAhead =
      code.equal(code.rem(item, rowBlocks()), code.index(rowBlocks() - 1));
  if (manyBuffers()) {
    Value isOdd = code.equal(code.rem(number, 2), code.index(1));
    Value even = panelsOf, odd = panelsAhead;
    panelsOf = code.select(isOdd, odd, even);
    panelsAhead = code.select(isOdd, even, odd);
  }
  packed.packUnlessThere(code, number, [&] { packBlock(); });
  if (expands()) {
    Value zeros = code.zeros(type, s.lanes);
    code.loop(code.index(0), code.index(expandedLength()), s.lanes,
              [&](Value at) { code.store(zeros, expanded, at); });
  }
  code.loop(row, end, s.band, [&](Value first) {
    emitBand(first, code.min(code.add(first, s.band), end));
  });
  if (manyBuffers())
    code.when(
        code.both(packsAhead, code.less(number, code.index(blocks() - 1))),
        [&] { packed.note(code, code.add(number, 1)); });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Multiplies a band of planes of the result with all panels.
void PointwiseConvolution::emitBand(Value row, Value end) {
  bandRow = row;
  code.loop(code.index(0), code.index(terms), s.kBlock, [&](Value k) {
    Value kEnd = code.add(k, s.kBlock);
    if (terms % s.kBlock != 0)
      kEnd = code.min(kEnd, terms);
    if (ofFactor)
      packFactor(row, end, k, kEnd);
    // Rows by rows over all panels: runs of several planes at one time, or
    // short ones, are up to twice as slow where the result is not in a cache.
    auto ofRows = [&](Value m, int64_t rows) {
      Value rowTile = code.div(code.sub(m, firstRow), s.rows);
      auto tile = [&](Value panel, int64_t vectors) {
        if (manyBuffers())
          beginAhead(rowTile, panel);
        emitTile(m, rows, panel, vectors, k, kEnd);
      };
      int64_t whole = s.blockVectors() / s.vectors;
      code.loop(code.index(0), code.index(whole), 1,
                [&](Value panel) { tile(panel, s.vectors); });
      if (int64_t left = s.blockVectors() % s.vectors)
        tile(code.index(whole), left);
    };
    code.loop(row, end, s.rows, [&](Value m) {
      if (across % s.rows == 0)
        return ofRows(m, s.rows);
      code.when(
          code.less(m, code.index(across - s.rows + 1)),
          [&] { ofRows(m, s.rows); }, [&] { ofRows(m, across % s.rows); });
    });
  });
  if (!isStored())
    finishBand(row, end);
}

Value PointwiseConvolution::factorAt(Value row, int64_t i, Value k, int64_t u) {
  using enum Product::Dim;
  if (ofFactor)
    return memref::LoadOp::create(
        code.b, code.loc, ofFactor,
        ValueRange{code.add(k, u), code.add(code.sub(row, bandRow), i)});
  SmallVector<Value> at(Dims);
  at[Group] = block.group;
  at[M] = row;
  at[K1] = takesPairs ? code.mul(k, 2) : k;
  int64_t ofTerm = factor.stride(K1) * (takesPairs ? 2 : 1);
  Value position =
      code.add(factor.at(code, at), i * factor.stride(M) + u * ofTerm);
  if (takesPairs)
    return pairs::word(code, factor.memref, position);
  return code.widen(
      memref::LoadOp::create(code.b, code.loc, factor.memref, position), type);
}

void PointwiseConvolution::emitTile(Value row, int64_t rows, Value panel,
                                    int64_t vectors, Value k, Value kEnd) {
  Code::Values none(rows * vectors, code.zeros(type, s.lanes));
  Value panelRow = code.mul(panel, terms);
  auto round = [&](Value at, int64_t count, ValueRange in) {
    Code::Values tile(in), seen(vectors);
    // Where the factor is packed, it begins with the short sum.
    Value atFactor = ofFactor ? code.sub(at, k) : at;
    for (int64_t u = 0; u < count; ++u) {
      for (int64_t v = 0; v < vectors; ++v)
        seen[v] = code.load(
            panelsOf,
            {code.add(code.add(panelRow, at), u), code.index(v * s.lanes)},
            s.lanes);
      for (int64_t i = 0; i < rows; ++i) {
        Value x = code.splat(factorAt(row, i, atFactor, u), s.lanes);
        for (int64_t v = 0; v < vectors; ++v) {
          Value &sum = tile[i * vectors + v];
          sum = takesPairs ? pairs::multiplyAdd(code, x, seen[v], sum)
                           : code.multiplyAdd(x, seen[v], sum);
        }
      }
    }
    return tile;
  };
  bool isEven = terms % unroll == 0 && s.kBlock % unroll == 0;
  Value whole =
      isEven
          ? kEnd
          : code.add(k, code.mul(code.div(code.sub(kEnd, k), unroll), unroll));
  Code::Values tile =
      code.loop(k, whole, unroll, none, [&](Value at, ValueRange in) {
        if (manyBuffers())
          packAhead(code.div(at, unroll));
        return round(at, unroll, in);
      });
  if (!isEven)
    tile = code.loop(whole, kEnd, 1, tile,
                     [&](Value at, ValueRange in) { return round(at, 1, in); });
  storeOrAdd(row, rows, panel, vectors, tile, k, kEnd);
}

Fit lower::cpu::fitPointwiseConvolution(AnchorKernel &kernel) {
  auto product = ConvolutionProduct::of(kernel.anchor);
  return PointwiseConvolution(kernel, product).fit();
}

double lower::cpu::secondsOfPointwiseConvolution(AnchorKernel &kernel) {
  auto product = ConvolutionProduct::of(kernel.anchor);
  PointwiseConvolution convolution(kernel, product);
  convolution.fit();
  return convolution.seconds();
}

int64_t lower::cpu::scratchOfPointwiseConvolution(AnchorKernel &kernel) {
  auto product = ConvolutionProduct::of(kernel.anchor);
  PointwiseConvolution convolution(kernel, product);
  return kernel.countScratch([&] { convolution.prepare(); });
}

ScheduleOverride lower::cpu::cutPointwiseConvolution(AnchorKernel &kernel) {
  auto product = ConvolutionProduct::of(kernel.anchor);
  PointwiseConvolution convolution(kernel, product);
  convolution.fit();
  return convolution.numbers();
}

FailureOr<Work> lower::cpu::emitPointwiseConvolution(AnchorKernel &kernel) {
  auto product = ConvolutionProduct::of(kernel.anchor);
  return PointwiseConvolution(kernel, product).emit();
}
