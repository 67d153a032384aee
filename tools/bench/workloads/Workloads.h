//===- Workloads.h - the benchmark models: names, sizes and data ----------===//
//
// Seven models (and two of them at sizes for GPUs) whose shapes, initial
// weights and data are those of the peers' benchmark, so that losses and
// gradients can be compared number by number. Weights and data come from the
// counter generator: parameter j uses stream j, batch b the streams 1000 + 10 b
// (inputs) and 1001 + 10 b (labels), seed 1. The models themselves (Models.h)
// need the compiler; what runs them does not.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_BENCH_WORKLOADS_WORKLOADS_H
#define TANDEM_TOOLS_BENCH_WORKLOADS_WORKLOADS_H

#include "runtime/artifact/DType.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::workloads {

using artifact::DType;

/// An input of a workload, and how a batch of it is made.
struct DataSpec {
  std::string name;
  std::vector<int64_t> shape;
  enum Kind {
    Uniform,   ///< f32, uniform in (-scale/2, scale/2)
    Integers,  ///< i64, below `below`
    Tokens,    ///< i64, one stream of n + 1 tokens: all but the last
    NextTokens ///< i64, the same stream: all but the first
  } kind;
  int64_t streamOffset = 0; ///< 0: inputs, 1: labels
  double scale = 2.0;
  int64_t below = 0;
  /// Not from the batch's streams but from this one, in every batch; -1: none.
  int64_t fixedStream = -1;
};

struct Workload {
  std::string name, text;
  std::string optimizer; ///< as `tandem compile --optimizer` takes it
  std::vector<DataSpec> data;
};

inline constexpr int kBatches = 2; ///< the steps cycle through this many

const std::vector<Workload> &all();
const Workload *find(const std::string &name);

/// The sizes of a transformer.
struct GptSize {
  int64_t layers, width, heads, time, batch, vocabulary, positions;
};
inline constexpr GptSize kGpt = {4, 256, 4, 128, 8, 1024, 128};
inline constexpr GptSize kGpt2 = {12, 768, 12, 64, 4, 50257, 1024};
/// The same model at a size that fills a GPU.
inline constexpr GptSize kGpt2Large = {12, 768, 12, 1024, 16, 50257, 1024};
/// Those of normchain.
inline constexpr int64_t kRows = 4096, kColumns = 1024;

} // namespace tandem::workloads

#endif
