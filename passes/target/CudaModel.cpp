//===- CudaModel.cpp - NVIDIA's GPUs as passes reckon with them -----------===//
#include "passes/target/CudaModel.h"

using namespace tandem;

// Memory, f32 and dense tensor products: NVIDIA's data sheets of A100 80GB,
// A10, L40S, H100 SXM, B200, B300 and RTX 5090. The host is behind PCI
// Express 4.0 or 5.0 of 16 lanes, of which large copies see four fifths. Shared
// memory: CUDA C++ Programming Guide, "Technical Specifications per Compute
// Capability": the maximum for a block, which is 1 KiB below the
// multiprocessor's.
static constexpr CudaModel models[] = {
    {80, 108, 163 << 10, 2039 * 1e9, 19.5 * 1e12, 312 * 1e12, 25.2 * 1e9},
    {86, 84, 99 << 10, 600 * 1e9, 31.2 * 1e12, 125 * 1e12, 25.2 * 1e9},
    {89, 128, 99 << 10, 864 * 1e9, 91.6 * 1e12, 362 * 1e12, 25.2 * 1e9},
    {90, 132, 227 << 10, 3350 * 1e9, 66.9 * 1e12, 989 * 1e12, 50.4 * 1e9},
    {100, 148, 227 << 10, 8000 * 1e9, 80.0 * 1e12, 2250 * 1e12, 50.4 * 1e9},
    {103, 148, 227 << 10, 8000 * 1e9, 77.5 * 1e12, 2250 * 1e12, 50.4 * 1e9},
    {120, 170, 99 << 10, 1792 * 1e9, 104.8 * 1e12, 209.5 * 1e12, 50.4 * 1e9},
};

const CudaModel &CudaModel::of(int64_t sm) {
  const CudaModel *found = models;
  for (const CudaModel &model : models)
    if (model.sm <= sm)
      found = &model;
  return *found;
}
