//===- WindowAxis.cpp - where results of a convolution look, per direction ===//
#include "passes/lower/cpu/convolution/WindowAxis.h"

using namespace tandem;
using namespace tandem::lower::cpu;

WindowAxis WindowAxis::ofOutput(const Window2d &w, int d) {
  WindowAxis axis;
  axis.results = w.output[d];
  axis.seen = w.input[d];
  axis.phases = 1;
  axis.first = -w.before[d];
  // Of rows that only single taps see, the others are left out.
  bool skips = d == 0 && w.kernel[d] == 1;
  axis.step = skips ? 1 : w.stride[d];
  axis.every = skips ? w.stride[d] : 1;
  axis.taps.resize(1);
  for (int64_t tap = 0; tap < w.kernel[d]; ++tap)
    axis.taps[0].push_back({tap, tap * w.dilation[d]});
  return axis;
}

/// Pixel x = j * stride + phase is seen by output (x + before - tap * dilation)
/// / stride, where that is whole: j plus an offset that the phase's tap has.
WindowAxis WindowAxis::ofInput(const Window2d &w, int d) {
  int64_t stride = w.stride[d], least = 0;
  WindowAxis axis;
  axis.results = w.input[d];
  axis.seen = w.output[d];
  axis.phases = stride;
  axis.step = axis.every = 1;
  axis.taps.resize(stride);
  bool any = false;
  for (int64_t phase = 0; phase < stride; ++phase)
    for (int64_t tap = 0; tap < w.kernel[d]; ++tap) {
      int64_t scaled = phase + w.before[d] - tap * w.dilation[d];
      if (scaled % stride != 0)
        continue;
      int64_t offset = scaled / stride;
      axis.taps[phase].push_back({tap, offset});
      least = any ? std::min(least, offset) : offset;
      any = true;
    }
  for (auto &ofPhase : axis.taps)
    for (Tap &tap : ofPhase)
      tap.offset -= least;
  axis.first = least;
  return axis;
}

int64_t WindowAxis::padded(int64_t count) const {
  int64_t reach = 1;
  for (const auto &ofPhase : taps)
    for (const Tap &tap : ofPhase)
      reach = std::max(reach, tap.offset + 1);
  return (count - 1) * step + reach;
}

int64_t WindowAxis::lanes(int64_t most) const {
  int64_t lanes = most;
  while (lanes > 4 && 2 * neighbours() <= lanes)
    lanes /= 2;
  return lanes;
}
