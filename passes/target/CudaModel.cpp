//===- CudaModel.cpp - NVIDIA's GPUs as passes reckon with them -----------===//
#include "passes/target/CudaModel.h"

using namespace tandem;

// Shared memory: CUDA C++ Programming Guide, "Technical Specifications per
// Compute Capability": the maximum for a block, which is 1 KiB below the
// multiprocessor's.
static constexpr CudaModel models[] = {
    {80, 108, 163 << 10, "a100"},    {86, 84, 99 << 10, "a10"},
    {89, 128, 99 << 10, "l40s"},     {90, 132, 227 << 10, "h100"},
    {100, 148, 227 << 10, "b200"},   {103, 148, 227 << 10, "b300"},
    {120, 170, 99 << 10, "rtx5090"},
};

CudaName::CudaName(llvm::StringRef name) {
  name.consume_front("cuda:");
  if (!name.consume_front("sm_"))
    return;
  isForOneAlone = name.consume_back("a");
  if (name.getAsInteger(10, sm))
    sm = 0;
}

const CudaModel &CudaModel::of(int64_t sm) {
  const CudaModel *found = models;
  for (const CudaModel &model : models)
    if (model.sm <= sm)
      found = &model;
  return *found;
}

const DeviceRow &CudaModel::device() const {
  return Machines::builtin().devices().find(name)->second;
}

// Data sheets have twice the rate of f16 for both. But ptxas makes f16 of f8
// values for mma.sync on sm_90 and sm_100, and multiplies that, as its code
// shows; what the conversions leave is assumed.
double tandem::byteRateByWarps(int64_t sm, bool isFloat) {
  bool converts = isFloat && sm >= 90 && sm < 120;
  return converts ? 0.7 : 2;
}
