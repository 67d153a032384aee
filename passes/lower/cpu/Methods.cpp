//===- Methods.cpp - the methods of kernels for a CPU ---------------------===//
//
// The first row that is good computes a kernel. What a row takes and why is in
// its `fit`; here is their order.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cpu/Methods.h"
#include "passes/lower/common/LoopFit.h"
#include "passes/lower/common/MethodFamilies.h"
#include "passes/lower/cpu/convolution/DepthwiseFilterGrad.h"
#include "passes/lower/cpu/convolution/DirectConvolution.h"
#include "passes/lower/cpu/convolution/PixelConvolution.h"
#include "passes/lower/cpu/convolution/PointwiseConvolution.h"
#include "passes/lower/cpu/convolution/Winograd.h"
#include "passes/lower/cpu/loops/LoopEmitter.h"
#include "passes/lower/cpu/products/Dots.h"
#include "passes/lower/cpu/products/TileProduct.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

//===----------------------------------------------------------------------===//
// Kernels around one op
//===----------------------------------------------------------------------===//

static constexpr ScheduleRound ofProducts[] = {rounds::tiles,
                                               rounds::rowsAndPacking};
static constexpr ScheduleRound ofMatrixTiles[] = {rounds::matrixTiles};
static constexpr ScheduleRound ofConvolutions[] = {rounds::tiles,
                                                   rounds::blocksAndPlanes};
static constexpr ScheduleRound ofPixels[] = {rounds::blocksAndPlanes};
static constexpr ScheduleRound ofAttention[] = {rounds::ownRows};

static constexpr AnchorMethod products[] = {
    // A processor's own products of bf16, wherever the types allow it.
    {"tiles", "tiles of bf16 that the processor multiplies", fitTileProduct,
     emitTileProduct, secondsOfTileProduct, scratchOfTileProduct,
     cutTileProduct, ofMatrixTiles},
    // A few rows would not pay for packing the other factor.
    {"dots", "vectors along k, nothing packed", fitDots, emitDots,
     secondsOfDots, scratchOfDots, cutDots},
    {"gemm", "register tiles of packed panels", fitMatmul, emitMatmul,
     secondsOfMatmul, scratchOfMatmul, cutMatmul, ofProducts}};

static constexpr AnchorMethod convolutions[] = {
    // A quarter of the multiplications.
    {"winograd", "tiles of 4x4 pixels by 36 products instead of 144",
     winograd::fit, winograd::emit, winograd::seconds, winograd::scratch,
     winograd::cut, ofConvolutions},
    // Before those whose vectors would have one filter in them.
    {"depthwise", "taps of one plane as sums in registers",
     fitDepthwiseFilterGrad, emitDepthwiseFilterGrad,
     secondsOfDepthwiseFilterGrad, scratchOfDepthwiseFilterGrad},
    {"pixels", "vectors of pixels of padded images", fitPixelConvolution,
     emitPixelConvolution, secondsOfPixelConvolution, scratchOfPixelConvolution,
     cutPixelConvolution, ofPixels},
    // Before what packs for windows that overlap.
    {"pointwise", "1x1 taps: packed pixels for all planes",
     fitPointwiseConvolution, emitPointwiseConvolution,
     secondsOfPointwiseConvolution, scratchOfPointwiseConvolution,
     cutPointwiseConvolution, ofConvolutions},
    {"direct", "vectors of filters over padded images, nothing gathered",
     fitDirectConvolution, emitDirectConvolution, secondsOfDirectConvolution,
     scratchOfDirectConvolution, cutDirectConvolution, ofConvolutions},
    {"windows", "a product whose windows are gathered while they are packed",
     fitWindows, emitWindows, secondsOfWindows, scratchOfWindows, cutWindows,
     ofProducts}};

static Fit always(AnchorKernel &) { return Fit::good(); }

static constexpr AnchorMethod attention[] = {
    {"tiles", "tiles of own rows through blocks of the others", always,
     emitAttention, nullptr, scratchOfAttention, cutAttention, ofAttention}};
static constexpr AnchorMethod windows[] = {
    {"pooling", "windows of an image, lanes along lines", always, emitWindow,
     nullptr, scratchOfWindow}};
static constexpr AnchorMethod indexed[] = {{"indexed", "rows that indices name",
                                            always, emitIndexed, nullptr,
                                            scratchOfIndexed, cutIndexed}};
static constexpr AnchorMethod lines[] = {
    {"lines", "whole lines one after the other", always, emitLines, nullptr,
     scratchOfLines}};

static constexpr MethodFamily<AnchorMethods> families[] = {
    {AnchorFamily::Matmul, {"a matrix product for cpu", products}},
    {AnchorFamily::Convolution,
     {"a convolution for cpu", convolutions, false, /*isTuned=*/true}},
    {AnchorFamily::Attention, {"attention for cpu", attention}},
    {AnchorFamily::Window, {"a pooling for cpu", windows}},
    {AnchorFamily::Indexed, {"an indexed op for cpu", indexed}},
    {AnchorFamily::Lines, {"an op over lines for cpu", lines}}};

const AnchorMethods *lower::cpu::methodsOf(OperationName op) {
  return tableOf(families, familyOf(op));
}

bool lower::cpu::hasCpuLowering(OperationName op) {
  return methodsOf(op) != nullptr;
}

//===----------------------------------------------------------------------===//
// Loop kernels
//===----------------------------------------------------------------------===//

static constexpr ScheduleRound ofElements[] = {rounds::elements,
                                               rounds::vectors};
static constexpr ScheduleRound ofColumns[] = {rounds::columns};
static constexpr ScheduleRound ofRows[] = {rounds::ahead};

static Fit fitPointwise(LoopKernel &loops) {
  if (size_t count = loops.nest.reductions.size())
    return Fit::impossible("expected no reductions but got " + Twine(count));
  return Fit::good();
}

static constexpr LoopMethod rowsOfLoops[] = {
    {"pointwise", "blocks of elements", fitPointwise,
     [](LoopKernel &loops) -> FailureOr<Work> {
       return loops.emitter.emitPointwise();
     },
     nullptr, nullptr,
     [](LoopKernel &loops) { return loops.emitter.cutPointwise(); },
     ofElements},
    {"columns", "blocks of columns with a row of sums",
     [](LoopKernel &loops) { return fitReductions(loops.nest, true); },
     [](LoopKernel &loops) -> FailureOr<Work> {
       return loops.emitter.emitColumns();
     },
     nullptr, nullptr,
     [](LoopKernel &loops) { return loops.emitter.cutColumns(); }, ofColumns},
    {"rows", "a row after the other, its sums in registers",
     [](LoopKernel &loops) { return fitReductions(loops.nest, false); },
     [](LoopKernel &loops) -> FailureOr<Work> {
       return loops.emitter.emitRows();
     },
     nullptr, [](LoopKernel &loops) { return loops.emitter.scratchOfRows(); },
     [](LoopKernel &loops) { return loops.emitter.cutRows(); }, ofRows}};

static constexpr LoopMethods tableOfLoops = {"a loop kernel for cpu",
                                             rowsOfLoops};

const LoopMethods &lower::cpu::loopMethods() { return tableOfLoops; }
