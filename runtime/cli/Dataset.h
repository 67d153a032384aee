//===- Dataset.h - arrays of rows, served in batches ----------------------===//
//
// The arrays given to a program's inputs, N rows each, and one tensor per input
// that holds the current batch. The batch is the first dimension of the inputs.
// An input of rank 0, or one whose first dimension is not the batch and whose
// array has exactly its shape, is the same in every batch. The tensors are made
// once, so that serving a batch allocates nothing.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_CLI_DATASET_H
#define TANDEM_RUNTIME_CLI_DATASET_H

#include "runtime/cli/Inputs.h"

namespace tandem::commands {

class Dataset {
public:
  /// Matches the arrays of the option `option` ("--data") with the inputs of
  /// `program`, which must outlive the result. `also` names arrays that may be
  /// given though the program has no such input. Fails with Usage, naming
  /// everything that is missing, unknown or of the wrong shape.
  static Result<Dataset> match(const artifact::Program &program,
                               std::vector<NamedTensor> arrays,
                               const std::string &option,
                               std::string_view also = {});

  int64_t rows() const { return rows_; }
  int64_t batch() const { return batch_; }

  /// Copies the given rows, `batch()` of them, into the batch.
  void gather(std::span<const int64_t> rows);

  /// Returns the batch as arguments of the program.
  std::span<const runtime::Argument> arguments() const { return arguments_; }

  /// Returns the whole array `name`, or null.
  const runtime::Tensor *array(std::string_view name) const;

  /// Returns the names of arrays that hold NaN or infinity.
  std::vector<std::string> nonFinite() const;

private:
  struct Column {
    runtime::Tensor rows, batch; ///< the same tensor if it is constant
    int64_t rowBytes = 0;
  };

  int64_t rows_ = 0, batch_ = 0;
  std::vector<NamedTensor> arrays_;
  std::vector<Column> columns_;
  std::vector<runtime::Argument> arguments_;
};

/// Returns the order in which pass number `epoch` visits `rows` rows: as they
/// are or, with `shuffle`, in a permutation that depends on these numbers
/// alone.
std::vector<int64_t> rowOrder(int64_t rows, bool shuffle, uint64_t seed,
                              int64_t epoch);

/// Returns a well mixed 64-bit value for each counter (SplitMix64: Steele, Lea,
/// Flood, "Fast splittable pseudorandom number generators", 2014).
inline uint64_t mix(uint64_t counter) {
  uint64_t z = counter + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

} // namespace tandem::commands

#endif
