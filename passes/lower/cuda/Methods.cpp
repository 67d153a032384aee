//===- Methods.cpp - the methods of kernels for CUDA ----------------------===//
//
// Of products the cheapest good row computes a kernel, of others the first.
// What a row takes and why is in its `fit`; here is their order.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cuda/Methods.h"
#include "passes/lower/common/LoopFit.h"
#include "passes/lower/common/MethodFamilies.h"
#include "passes/lower/cuda/attention/Attention.h"
#include "passes/lower/cuda/attention/AttentionTiles.h"
#include "passes/lower/cuda/attention/AttentionWgmma.h"
#include "passes/lower/cuda/loops/LoopEmitter.h"
#include "passes/lower/cuda/products/GemmWgmma.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

//===----------------------------------------------------------------------===//
// Products, and convolutions, which are products of gathered windows here
//===----------------------------------------------------------------------===//

static bool isHalf(const Gemm &gemm) {
  return gemm.element.isF16() || gemm.element.isBF16();
}

/// Tensor cores multiply bytes where they can; threads what these are cast to.
static const Gemm &gemmOf(const ProductKernel &product,
                          GemmSchedule::Kind kind) {
  return product.bytes && kind != GemmSchedule::Simt ? *product.bytes
                                                     : product.gemm;
}

/// The type that the factors have for tensor cores.
static std::string factorsOf(const ProductKernel &product) {
  const Gemm &gemm = gemmOf(product, GemmSchedule::Mma);
  return gemm.isOfBytes ? textOf(gemm.a->format)
         : isHalf(gemm) ? textOf(gemm.element)
                        : "tf32";
}

/// The schedule of a kind with the numbers that the kernel's says.
static std::optional<TimedSchedule> scheduleOf(ProductKernel &product,
                                               GemmSchedule::Kind kind) {
  return scheduleGemm(gemmOf(product, kind), product.code.target, kind,
                      ScheduleOverride::of(product.kernel));
}

/// The reason against a kind for whose products no tile fits the kernel.
template <GemmSchedule::Kind kind>
static Fit fitTiles(ProductKernel &product, Fit otherwise) {
  if (!scheduleOf(product, kind))
    return Fit::impossible("expected a tile that fits the " +
                           Twine(product.code.target.sharedBytes()) +
                           " bytes of shared memory but got none");
  return otherwise;
}

static Fit fitWgmma(ProductKernel &product) {
  const CudaTarget &target = product.code.target;
  Fit fit = fitOfWgmma(gemmOf(product, GemmSchedule::Wgmma), target);
  if (!fit.isPossible())
    return fit;
  if (target.products == "mma")
    return Fit::slower("expected a target that prefers it but got one that "
                       "prefers 'mma'");
  return fitTiles<GemmSchedule::Wgmma>(product, fit);
}

static Fit fitMma(ProductKernel &product) {
  const Gemm &gemm = gemmOf(product, GemmSchedule::Mma);
  const CudaTarget &target = product.code.target;
  if (!gemm.isOfBytes && !isHalf(gemm) &&
      !(gemm.isTf32 && gemm.element.isF32()))
    return Fit::impossible("expected factors of f16, bf16 or tf32 but got " +
                           textOf(gemm.element));
  Fit fit = fitTiles<GemmSchedule::Mma>(product, Fit::good());
  if (fit.isGood() && target.products == "wgmma" &&
      fitOfWgmma(gemm, target).isGood())
    return Fit::slower("expected a target that prefers it but got one that "
                       "prefers 'wgmma'");
  return fit;
}

static Fit fitSimt(ProductKernel &product) {
  const Gemm &gemm = product.gemm;
  if (product.bytes || isHalf(gemm) || (gemm.isTf32 && gemm.element.isF32()))
    return fitTiles<GemmSchedule::Simt>(
        product, Fit::slower("expected factors that tensor cores do not take "
                             "but got " +
                             factorsOf(product)));
  return Fit::good();
}

template <GemmSchedule::Kind kind>
static double secondsOfKind(ProductKernel &product) {
  auto schedule = scheduleOf(product, kind);
  return schedule ? schedule->seconds : 0;
}

template <GemmSchedule::Kind kind>
static int64_t scratchOfKind(ProductKernel &product) {
  auto schedule = scheduleOf(product, kind);
  return scratchOf(gemmOf(product, kind),
                   schedule ? schedule->cut : GemmSchedule());
}

/// Where no tile has what is asked for, those of the model, which differ.
template <GemmSchedule::Kind kind>
static ScheduleOverride cutByKind(ProductKernel &product) {
  auto schedule = scheduleOf(product, kind);
  if (!schedule)
    schedule = scheduleGemm(gemmOf(product, kind), product.code.target, kind);
  return schedule ? schedule->cut.numbers() : ScheduleOverride();
}

template <GemmSchedule::Kind kind>
static FailureOr<LaunchShape> emitKind(ProductKernel &product) {
  auto schedule = scheduleOf(product, kind);
  return emitGemm(product.code, gemmOf(product, kind),
                  schedule ? schedule->cut : GemmSchedule());
}

static constexpr Method<ProductKernel, LaunchShape> products[] = {
    {"wgmma", "tensor cores by warpgroup, from bulk copies", fitWgmma,
     emitKind<GemmSchedule::Wgmma>, secondsOfKind<GemmSchedule::Wgmma>,
     scratchOfKind<GemmSchedule::Wgmma>, cutByKind<GemmSchedule::Wgmma>},
    {"mma", "tensor cores by warp", fitMma, emitKind<GemmSchedule::Mma>,
     secondsOfKind<GemmSchedule::Mma>, scratchOfKind<GemmSchedule::Mma>,
     cutByKind<GemmSchedule::Mma>},
    {"simt", "multiply-adds of threads", fitSimt, emitKind<GemmSchedule::Simt>,
     secondsOfKind<GemmSchedule::Simt>, scratchOfKind<GemmSchedule::Simt>,
     cutByKind<GemmSchedule::Simt>}};

static constexpr ProductMethods tableOfProducts = {
    "a product for cuda", products, /*takesCheapest=*/true};

const ProductMethods &lower::cuda::productMethods() { return tableOfProducts; }

//===----------------------------------------------------------------------===//
// Attention, windows, indices and lines
//===----------------------------------------------------------------------===//

/// A row's code by an emitter.
template <auto emit> static FailureOr<LaunchShape> by(AroundAnchor &parts) {
  return emit(parts.kernel, parts.code);
}

static Fit always(AroundAnchor &) { return Fit::good(); }

static constexpr AnchorMethods::Row attention[] = {
    {"wgmma", "tiles of rows, by warpgroup from bulk copies",
     [](AroundAnchor &parts) {
       return AttentionWgmma::fit(parts.kernel, parts.code);
     },
     by<emitAttentionWgmma>,
     [](AroundAnchor &parts) {
       return AttentionWgmma(parts.kernel, parts.code).seconds();
     },
     nullptr,
     [](AroundAnchor &parts) {
       return AttentionWgmma(parts.kernel, parts.code).numbers();
     }},
    {"tiles", "tiles of rows, multiplied by tensor cores or threads",
     [](AroundAnchor &parts) {
       return AttentionTiles::fit(AttentionIndex(parts.kernel.anchor),
                                  parts.code.target);
     },
     by<emitAttentionTiles>,
     [](AroundAnchor &parts) {
       return AttentionTiles(parts.kernel, parts.code).seconds();
     },
     nullptr,
     [](AroundAnchor &parts) {
       return AttentionTiles(parts.kernel, parts.code).numbers();
     }},
    {"rows", "a warp for each row", always, by<emitAttentionRows>}};
static constexpr AnchorMethods::Row windows[] = {
    {"pooling", "windows of an image, a thread for each result", always,
     by<emitWindow>}};
static constexpr AnchorMethods::Row indexed[] = {
    {"indexed", "rows that indices name", always, by<emitIndexed>}};
static constexpr AnchorMethods::Row lines[] = {
    {"lines", "whole lines, a block or a thread for each", always,
     by<emitLines>}};

static constexpr MethodFamily<AnchorMethods> families[] = {
    {AnchorFamily::Attention, {"attention for cuda", attention}},
    {AnchorFamily::Window, {"a pooling for cuda", windows}},
    {AnchorFamily::Indexed, {"an indexed op for cuda", indexed}},
    {AnchorFamily::Lines, {"an op over lines for cuda", lines}}};

const AnchorMethods *lower::cuda::methodsOf(AnchorFamily wanted) {
  return tableOf(families, wanted);
}

//===----------------------------------------------------------------------===//
// Loop kernels
//===----------------------------------------------------------------------===//

static Fit fitTransposed(LoopKernel &loops) {
  if (!loops.isPointwise())
    return Fit::impossible("expected no reductions but got some");
  if (loops.nests.size() != 1)
    return Fit::impossible("expected one loop nest but got " +
                           Twine(loops.nests.size()));
  return loops.first.fitTransposed();
}

static Fit fitPointwise(LoopKernel &loops) {
  if (!loops.isPointwise())
    return Fit::impossible("expected no reductions but got some");
  return Fit::good();
}

/// Every part that reduces keeps its innermost index.
static Fit fitColumns(LoopKernel &loops) {
  if (loops.isPointwise())
    return Fit::impossible("expected reductions but got none");
  for (const LoopNest &nest : loops.nests)
    if (!nest.reductions.empty())
      if (Fit fit = fitReductions(nest, /*keepsInnermost=*/true); !fit.isGood())
        return fit;
  return Fit::good();
}

/// A nest alone whose innermost index is reduced.
static Fit fitRows(LoopKernel &loops) {
  if (loops.isPointwise())
    return Fit::impossible("expected reductions but got none");
  if (loops.nests.size() != 1)
    return Fit::impossible("expected one loop nest but got " +
                           Twine(loops.nests.size()));
  return fitReductions(loops.nests.front(), /*keepsInnermost=*/false);
}

static constexpr Method<LoopKernel, LaunchShape> loopRows[] = {
    // Where neighbours of the result are far from each other in an operand.
    {"transposed", "tiles that are turned in shared memory", fitTransposed,
     [](LoopKernel &loops) -> FailureOr<LaunchShape> {
       return loops.first.emitTransposed();
     }},
    {"pointwise", "neighbouring elements of a thread", fitPointwise,
     [](LoopKernel &loops) -> FailureOr<LaunchShape> {
       return emitParts(loops);
     }},
    {"columns", "neighbouring columns of a thread", fitColumns,
     [](LoopKernel &loops) -> FailureOr<LaunchShape> {
       return emitParts(loops);
     }},
    {"rows", "a warp or a block for each row", fitRows,
     [](LoopKernel &loops) -> FailureOr<LaunchShape> {
       return loops.first.emitRows();
     }}};

static constexpr LoopMethods tableOfLoops = {"a loop kernel for cuda",
                                             loopRows};

const LoopMethods &lower::cuda::loopMethods() { return tableOfLoops; }
