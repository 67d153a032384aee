//===- Predict.h - outputs for any number of rows -------------------------===//
//
// Runs "evaluate" for some of its outputs over any number of rows: batch by
// batch, and the last one filled up with rows of it that are repeated. What the
// wanted outputs do not follow from (labels, the loss) is neither read nor
// computed. The batch is the first dimension of the inputs.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_MODEL_PREDICT_H
#define TANDEM_RUNTIME_MODEL_PREDICT_H

#include "runtime/model/Model.h"

namespace tandem::runtime {

/// What predicting some outputs takes. Refers to the manifest.
struct Prediction {
  const artifact::Program *program = nullptr;
  int64_t batch = 0;
  std::vector<artifact::Slot>
      outputs;             ///< in the order in which they are wanted
  std::vector<char> needs; ///< for each argument of the program

  /// Finds it; without names, of all outputs that have rows. Fails with Usage,
  /// naming every output that does not exist or whose first dimension is not
  /// the batch, and with Unsupported where there is nothing to predict.
  static Result<Prediction> of(const artifact::Manifest &manifest,
                               const std::vector<std::string> &names);
};

/// Serves the rows of one batch: brings them into the arguments.
using ServeRows = std::function<Status(std::span<const int64_t> rows)>;

/// Computes the outputs of the batch that was served, whole and on the host.
using ComputeRows = std::function<Result<std::span<const Tensor>>()>;

/// Returns the outputs for `rows` rows, on the host.
Result<std::vector<Tensor>> predict(const Prediction &prediction, int64_t rows,
                                    const ServeRows &serve,
                                    const ComputeRows &compute);

/// The same of a model. `batch` are the arguments
/// of one batch, which `serve` fills.
Result<std::vector<Tensor>> predict(Model &model, const Prediction &prediction,
                                    int64_t rows,
                                    std::span<const Argument> batch,
                                    const ServeRows &serve);

/// The same for whole arrays: `inputs` have N rows where the program's have a
/// batch of them. Destinations are undefined, or tensors of N rows that are
/// written to.
Status predict(Model &model, std::span<const Argument> inputs,
               std::span<const Destination> outputs);

} // namespace tandem::runtime

#endif
