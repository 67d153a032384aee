//===- Workloads.h - the benchmark models, as traced programs -------------===//
//
// Seven models whose shapes, initial weights and data are those of the peers'
// benchmark, so that losses and gradients can be compared number by number.
// Weights and data come from the counter generator: parameter j uses stream j,
// batch b the streams 1000 + 10 b (inputs) and 1001 + 10 b (labels), seed 1.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_BENCH_WORKLOADS_H
#define TANDEM_TOOLS_BENCH_WORKLOADS_H

#include "compiler/trace/Trace.h"

#include <string>
#include <vector>

namespace tandem::workloads {

/// An input of a workload, and how a batch of it is made.
struct DataSpec {
  std::string name;
  Shape shape;
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
  /// Records the model with floating-point elements of type `dtype`.
  void (*trace)(Trace &trace, DType dtype);
};

inline constexpr int kBatches = 2; ///< the steps cycle through this many

const std::vector<Workload> &all();
const Workload *find(const std::string &name);

} // namespace tandem::workloads

#endif
