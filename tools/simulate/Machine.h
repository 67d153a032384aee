//===- Machine.h - the devices that a simulation runs on ------------------===//
#ifndef TANDEM_TOOLS_SIMULATE_MACHINE_H
#define TANDEM_TOOLS_SIMULATE_MACHINE_H

#include "tools/simulate/Engine.h"
#include "tools/simulate/Network.h"

namespace tandem::simulate {

/// What a kernel takes, and what for.
struct KernelCost {
  double seconds = 0;
  Spent spent = Spent::Arithmetic;
};

/// How much longer than by the tables things take, as a measurement has shown
/// (Calibration.h).
struct Slowness {
  double products = 1; ///< matrix products, convolutions, attention
  double others = 1;   ///< other kernels
  double links = 1;    ///< exchanges
};

/// One rank's device: a GPU, or its part of the processors of a machine.
class Device {
public:
  /// `vectorBits` is that of a processor. `ranks` share a machine; a rank has
  /// `threads` of its processors, or its part of them where that is 0 or less.
  Device(const DeviceRow &row, int64_t vectorBits, int64_t ranks,
         double threads, const Slowness &slowness);

  const DeviceRow &row() const { return row_; }
  /// Of a kernel with so many flops that moves so many bytes.
  KernelCost costOf(const artifact::Kernel &kernel) const;
  /// A copy in its memory, that is read and written once.
  KernelCost copy(double bytes) const;
  /// Flops of products in a second, by the data sheet.
  double peak(artifact::DType type) const;

private:
  DeviceRow row_;
  Slowness slowness;
  double f32, narrow, elements, memory, launch;
};

/// True if the kernel multiplies matrices, or is a convolution or attention.
bool isProduct(const artifact::Kernel &kernel);

} // namespace tandem::simulate

#endif
