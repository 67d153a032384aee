//===- GpuKernels.cpp - what a kernel takes on a GPU ----------------------===//
#include "tools/simulate/GpuKernels.h"

#include "passes/target/AttentionTime.h"
#include "passes/target/CudaModel.h"
#include "tools/simulate/KernelSummary.h"
#include "tools/simulate/Machine.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

namespace tandem::simulate {

using artifact::DType;
using artifact::Kernel;
using artifact::Launch;

namespace {

// From the end of a kernel to the first instruction of the next one in a graph,
// and until blocks have filled the machine and drained from it. Assumed, about
// what is reported of graphs of short kernels on A100 and H100.
constexpr double fromKernelToKernel = 1.2e-6, fillAndDrain = 1.5e-6;

// Until a block's first tiles have come: some round trips to memory. Assumed,
// as that of bulk copies (AttentionTime.h).
constexpr double firstTiles = 1e-6;

// Of mma.sync's rate the kernels are assumed to reach 0.85, and 0.4 where a
// factor comes by elements of two bytes.
constexpr double ofMma = 0.85, ofGathers = 0.4;

// Products of f8 values by wgmma, whose sums f32 adds every 128 terms, reach so
// much of what those of other types do (assumed).
constexpr double ofFloat8 = 0.9;

// Multiply-adds of threads reach so much of their rate (assumed).
constexpr double ofThreads = 0.8;

// Bytes that a thread of a loop has on their way, and how long they are, in
// seconds: four loads of 8 bytes, and about the latency of a busy memory.
constexpr double bytesOnTheirWay = 32, memoryLatency = 700e-9;

constexpr int64_t registersOfProcessor = 65536, threadsOfProcessor = 2048;

} // namespace

TimeParts &TimeParts::operator+=(const TimeParts &other) {
  products += other.products;
  elements += other.elements;
  memory += other.memory;
  waves += other.waves;
  around += other.around;
  launches += other.launches;
  return *this;
}

TimeParts &TimeParts::operator*=(double factor) {
  for (double *part :
       {&products, &elements, &memory, &waves, &around, &launches})
    *part *= factor;
  return *this;
}

/// Of a launch.
struct Gpu::Blocks {
  double count = 1, threads = 1; ///< threads of a block
};

static double productOf(const std::vector<int64_t> &sizes) {
  return std::accumulate(
      sizes.begin(), sizes.end(), 1.0,
      [](double product, int64_t size) { return product * double(size); });
}

Gpu::Gpu(const DeviceRow &row) : row_(row) {
  const CudaModel &model = CudaModel::of(CudaName(row.target).sm);
  processors = row.multiprocessors > 0 ? int64_t(row.multiprocessors)
                                       : model.multiprocessors;
  sharedBytes = model.sharedBytes;
}

static bool isHalf(DType type) {
  return type == DType::F16 || type == DType::BF16;
}

static bool isFloat8(DType type) {
  return type == DType::F8E4M3FN || type == DType::F8E5M2;
}

/// Of a product: of factors of 8 bits.
static bool isByte(DType type) {
  return isFloat8(type) || type == DType::I8 || type == DType::U8;
}

/// Flops in a second by the data sheet. 8 bits have twice bf16's rate, tf32 has
/// half of it; what is f32 and no bulk copy is taken for f32.
double Gpu::peak(const Kernel &kernel) const {
  if (isByte(kernel.dtype))
    return 2 * row_.narrow;
  if (isHalf(kernel.dtype))
    return row_.narrow;
  if (kernel.dtype == DType::F64)
    return row_.f32 / 2;
  return kernel.tensorMaps.empty() ? row_.f32 : row_.narrow / 2;
}

double Gpu::moving(const Kernel &kernel) const {
  return double(kernel.bytes) / (row_.memory * row_.achievedMemory);
}

/// Blocks that a multiprocessor has at a time, each of whose threads keeps so
/// many sums.
int64_t Gpu::blocksTogether(const Kernel &kernel, double sums) const {
  if (!kernel.tensorMaps.empty())
    return 1; // it takes all registers
  double threads = std::max(productOf(kernel.block), 1.0);
  double registers = std::min(sums + 80, 255.0); // addresses and what is coming
  double together =
      std::min(double(registersOfProcessor) / (registers * threads),
               double(threadsOfProcessor) / threads);
  if (kernel.sharedBytes > 0)
    together =
        std::min(together, double(sharedBytes) / double(kernel.sharedBytes));
  return std::clamp(int64_t(together), int64_t(1), int64_t(8));
}

/// Whether a factor comes by single elements: its rows are no multiples of 16
/// bytes, or it is a convolution's windows.
static bool gathers(const KernelSummary &summary) {
  if (summary.op != "matmul")
    return true;
  return std::any_of(summary.operands.begin(), summary.operands.end(),
                     [](const SummaryType &type) {
                       return !type.shape.empty() &&
                              type.shape.back() * byteSize(type.dtype) % 16;
                     });
}

void Gpu::addProduct(const Kernel &kernel, const Blocks &blocks,
                     KernelTime &time) const {
  KernelSummary summary = readSummary(kernel.summary);
  double rate = peak(kernel) * row_.achievedProducts, start = firstTiles;
  if (!kernel.tensorMaps.empty()) {
    time.what = "products by wgmma";
    if (isByte(kernel.dtype))
      time.what = "8-bit products by wgmma";
    rate *= wgmmaWithoutClusters * (isFloat8(kernel.dtype) ? ofFloat8 : 1);
    start = firstBulkTiles;
  } else if (isHalf(kernel.dtype) || isByte(kernel.dtype)) {
    int64_t sm = CudaName(row_.target).sm;
    bool byElement = gathers(summary);
    time.what = "products by mma.sync";
    double ofHalf = 1;
    if (isByte(kernel.dtype)) {
      time.what = "8-bit products by mma.sync";
      ofHalf = byteRateByWarps(sm, isFloat8(kernel.dtype));
    }
    if (byElement)
      time.what += ", gathered";
    rate = row_.narrow * ofHalf * (byElement ? ofGathers : ofMma) *
           (sm == 90 ? mmaOnHopper : row_.achievedProducts);
  } else {
    time.what = "products by threads";
    rate = peak(kernel) * ofThreads;
  }
  double factors = 0, results = 0;
  for (size_t i = 0; i < std::min<size_t>(summary.operands.size(), 2); ++i)
    factors += summary.operands[i].bytes();
  if (!summary.results.empty())
    results = summary.results.front().elements();

  double alone = double(kernel.flops) / blocks.count / (rate / processors);
  double around = start + std::max(double(kernel.bytes) - factors, 0.0) /
                              blocks.count / besideProducts;
  // Blocks of a wave overlap what is around the products.
  double rounds = std::ceil(blocks.count / processors);
  double together = std::min(
      double(blocksTogether(kernel, results / blocks.count / blocks.threads)),
      rounds);
  double waves = std::ceil(rounds / together);
  double wave = std::max(together * alone, alone + around);
  double seconds = waves * wave;
  TimeParts &parts = time.parts;
  parts.products = double(kernel.flops) / rate;
  parts.waves = std::min(waves * together * alone, seconds) - parts.products;
  parts.around = seconds - parts.products - parts.waves + fillAndDrain;
  parts.memory = std::max(moving(kernel) - seconds, 0.0);
}

/// Attention by wgmma, whose boxes say how it is cut: own rows come first.
static std::optional<AttentionWork> attentionOf(const Kernel &kernel,
                                                double blocks) {
  KernelSummary summary = readSummary(kernel.summary);
  const auto &operands = summary.operands;
  const auto &maps = kernel.tensorMaps;
  if (maps.size() < 2 || operands.size() < 3)
    return std::nullopt;
  for (size_t i = 0; i < 3; ++i)
    if (operands[i].shape.size() < 2)
      return std::nullopt;
  if (maps[0].box.size() < 2 || maps[1].box.size() < 2)
    return std::nullopt;
  AttentionWork work;
  work.kernel = summary.op == "attention_forward"    ? AttentionWork::Forward
                : summary.op == "attention_key_grad" ? AttentionWork::KeyGrad
                                                     : AttentionWork::QueryGrad;
  const std::vector<int64_t> &q = operands[0].shape;
  for (size_t i = 0; i + 2 < q.size(); ++i)
    work.batches *= q[i];
  work.queries = q[q.size() - 2];
  work.keys = operands[1].shape[operands[1].shape.size() - 2];
  work.width = q.back();
  work.valueWidth = operands[2].shape.back();
  work.causal = kernel.summary.ends_with(" causal");
  work.rows = maps[0].box[1];
  work.step = maps[1].box[1];
  auto ofBatch = std::max<int64_t>(
      int64_t(blocks) / std::max<int64_t>(work.batches, 1), 1);
  work.chain = (work.tiles() + ofBatch - 1) / ofBatch;
  return work;
}

void Gpu::addAttention(const Kernel &kernel, const Blocks &blocks,
                       KernelTime &time) const {
  bool isForward = kernel.summary.starts_with("attention_forward");
  time.what = isForward ? "attention" : "gradients of attention";
  if (std::optional<AttentionWork> work = attentionOf(kernel, blocks.count)) {
    AttentionTime parts = timeByWarpgroups(*work, row_, processors);
    time.what += " by wgmma";
    time.parts.products = parts.products + parts.narrow;
    time.parts.elements = parts.elements;
    time.parts.waves = parts.waves;
    time.parts.around = parts.around + fillAndDrain;
    time.parts.memory = std::max(moving(kernel) - parts.seconds(), 0.0);
    return;
  }
  time.parts.products = isHalf(kernel.dtype)
                            ? secondsByWarps(double(kernel.flops), row_)
                            : double(kernel.flops) / (peak(kernel) * ofThreads);
  time.parts.memory = std::max(moving(kernel) - time.parts.products, 0.0);
  time.parts.around = fillAndDrain;
}

void Gpu::addLoop(const Kernel &kernel, const Blocks &blocks,
                  KernelTime &time) const {
  time.what = kernel.kind;
  double threads = std::min(blocks.count * blocks.threads,
                            double(processors) * threadsOfProcessor);
  double needed =
      row_.memory * row_.achievedMemory * memoryLatency / bytesOnTheirWay;
  TimeParts &parts = time.parts;
  parts.memory = moving(kernel);
  parts.waves = parts.memory * std::max(needed / threads - 1, 0.0);
  // Data sheets count a fused multiply-add as two operations.
  parts.elements = std::max(
      double(kernel.flops) / (row_.f32 / 2) - parts.memory - parts.waves, 0.0);
  parts.around = fillAndDrain;
}

KernelTime Gpu::timeOf(const Kernel &kernel, const Launch &launch) const {
  KernelTime time;
  Blocks blocks{std::max(productOf(launch.grid), 1.0),
                std::max(productOf(kernel.block), 1.0)};
  bool multiplies = isProduct(kernel) && (kernel.kind == "contraction" ||
                                          kernel.summary.starts_with("conv"));
  if (launch.library) {
    time.what = "products by a library";
    time.parts.products =
        double(kernel.flops) / (peak(kernel) * row_.achievedProducts);
    time.parts.memory = std::max(moving(kernel) - time.parts.products, 0.0);
    time.parts.around = fillAndDrain;
  } else if (!multiplies) {
    addLoop(kernel, blocks, time);
  } else if (kernel.summary.starts_with("attention")) {
    addAttention(kernel, blocks, time);
  } else {
    addProduct(kernel, blocks, time);
  }
  time.parts.launches = fromKernelToKernel;
  double computing =
      double(kernel.flops) / (multiplies ? peak(kernel) : row_.f32 / 2);
  time.least = std::max(computing, double(kernel.bytes) / row_.memory);
  return time;
}

} // namespace tandem::simulate
