//===- Samples.h - inputs of single kernels, and what comes of them -------===//
#ifndef TANDEM_TOOLS_BENCH_CUDA_SAMPLES_H
#define TANDEM_TOOLS_BENCH_CUDA_SAMPLES_H

#include "runtime/model/Model.h"

#include <string>
#include <vector>

namespace tandem::gpu {

using artifact::DType;

struct NamedTensor {
  std::string name;
  runtime::Tensor tensor;
};

/// Returns an input for each of the program's: floating point uniform in
/// [-1, 1), rounded to `rounding` and then to the input's own type; integers in
/// the range that the artifact states. They follow from the names alone.
Result<std::vector<NamedTensor>> makeSamples(const artifact::Manifest &manifest,
                                             const artifact::Program &program,
                                             DType rounding);

/// What differs most.
struct Difference {
  double largest = 0; ///< infinite for a NaN that was not expected
  std::string output; ///< of which it is
};

/// Compares outputs with those of a file that `saveOutputs` wrote: the largest
/// difference of an element over the largest magnitude of its output; integers
/// and truth values must be equal. Of a large output those elements are
/// compared that the file has. Fails where there are other outputs.
Result<Difference> compareWith(const std::string &file,
                               const std::vector<NamedTensor> &outputs);

/// Writes outputs; floating-point ones in `type`. Of one with more than 32,768
/// elements it keeps 16,384 that are drawn, and the last one.
Status saveOutputs(const std::string &file, DType type,
                   const std::vector<NamedTensor> &outputs);

/// True if the bytes are the same.
bool haveSameBits(const std::vector<NamedTensor> &some,
                  const std::vector<NamedTensor> &others);

} // namespace tandem::gpu

#endif
