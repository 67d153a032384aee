//===- Machine.cpp - the devices that a simulation runs on ----------------===//
#include "tools/simulate/Machine.h"

#include "passes/target/Rates.h"

#include <algorithm>

namespace tandem::simulate {

using artifact::DType;
using artifact::Kernel;

Device::Device(const DeviceRow &row, int64_t vectorBits, int64_t ranks,
               double threads, const Slowness &slowness)
    : row_(row), slowness(slowness) {
  Rates rates = Rates::of(row, vectorBits);
  // Processors are divided among the ranks of a machine, and so is its memory;
  // what is asked for beyond that is not there.
  double part = 1, share = 1;
  if (row.isCpu()) {
    share = 1 / double(ranks);
    double own = row.cores * share;
    part = (threads > 0 ? std::min(threads, own) : own) / row.cores;
  }
  f32 = rates.products * part;
  narrow = rates.narrow * part;
  elements = rates.elements * part;
  memory = rates.bytes * std::max(part, share) * row.achievedMemory;
  launch = 1 / rates.launches;
}

bool isProduct(const Kernel &kernel) {
  return kernel.kind == "contraction" || kernel.kind == "window";
}

static bool isNarrow(DType type) {
  return type == DType::F16 || type == DType::BF16;
}

/// Of a contraction, whose factors have 8 bits for a GPU alone.
static bool isByte(DType type) {
  return type == DType::F8E4M3FN || type == DType::F8E5M2 ||
         type == DType::I8 || type == DType::U8;
}

double Device::peak(DType type) const { return isNarrow(type) ? narrow : f32; }

static KernelCost costOf(double arithmetic, double moving, double launch) {
  KernelCost cost;
  cost.seconds = launch + std::max(arithmetic, moving);
  cost.spent = launch > std::max(arithmetic, moving) ? Spent::Launch
               : arithmetic >= moving                ? Spent::Arithmetic
                                                     : Spent::Memory;
  return cost;
}

KernelCost Device::costOf(const Kernel &kernel) const {
  double rate = elements, slow = slowness.others;
  if (isProduct(kernel)) {
    bool isAttention = kernel.summary.starts_with("attention");
    bool hasBytes = kernel.kind == "contraction" && isByte(kernel.dtype);
    rate = (hasBytes ? 2 * narrow : peak(kernel.dtype)) *
           (isAttention ? row_.achievedAttention : row_.achievedProducts);
    slow = slowness.products;
  }
  return simulate::costOf(double(kernel.flops) / rate * slow,
                          double(kernel.bytes) / memory * slow, launch * slow);
}

KernelCost Device::copy(double bytes) const {
  double slow = slowness.others;
  return simulate::costOf(0, 2 * bytes / memory * slow, launch * slow);
}

} // namespace tandem::simulate
