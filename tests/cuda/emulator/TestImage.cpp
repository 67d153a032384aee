//===- TestImage.cpp - an emulation image, written by hand ----------------===//
//
// What the compiler would make of a kernel image_increment(to, from), to[i] =
// from[i] + 1 for each thread i (runtime/artifact/Emulation.h). It needs no
// library.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/Emulation.h"

using namespace tandem::artifact;

namespace {
void *functions[1];
const char *const names[] = {"check.access"};
const char *const sites[] = {"load of from", "store to to"};

void check(EmulatedThread *thread, const void *at, uint32_t flags,
           uint32_t site) {
  using Check =
      void (*)(EmulatedThread *, const void *, uint32_t, uint32_t, uint32_t);
  constexpr uint32_t log2Alignment = 2;
  thread->site = site;
  reinterpret_cast<Check>(functions[0])(
      thread, at, sizeof(float), flags | log2Alignment << kAccessAlignShift,
      site);
}

void increment(EmulatedThread *thread, void **parameters) {
  float *to = *static_cast<float **>(parameters[0]);
  const float *from = *static_cast<float **>(parameters[1]);
  const uint32_t i = thread->ctaid[0] * thread->ntid[0] + thread->tid[0];
  check(thread, from + i, 0, 0);
  const float value = from[i];
  check(thread, to + i, kAccessWrite, 1);
  to[i] = value + 1;
}

const uint32_t parameterBytes[] = {8, 8};
const EmulatedKernel kernels[] = {
    {"image_increment", increment, parameterBytes, 2, 0, 0, 0}};
const EmulatedChunk chunk = {1, 0, kernels, names,  functions,
                             1, 2, sites,   nullptr};
const EmulatedChunk *const chunks[] = {&chunk};
} // namespace

extern "C" {
extern const EmulatedImage tandem_emulation;
const EmulatedImage tandem_emulation = {kEmulationVersion, 1, chunks};
}
