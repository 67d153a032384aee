//===- Evaluation.h - program `evaluate` over a data set ------------------===//
//
// Runs the program batch by batch, so that each row counts once. Where the rows
// that are left do not fill a batch, and the artifact says that a scalar output
// is a mean over rows, they are served in groups whose size divides the batch,
// each row equally often: the mean of such a batch is the mean of the group. Of
// another scalar the mean over the full batches is taken, and said to be that.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_EVALUATION_H
#define TANDEM_TOOLS_COMMANDS_EVALUATION_H

#include "tools/commands/Metrics.h"

#include <functional>

namespace tandem::commands {

/// Counts how often the largest of the scores on an axis of an output (the last
/// one or, where the shape of the labels says so, axis 1) is where an integer
/// label says. Entries with a negative label are ignored;
/// equal scores go to the lower index; scores with a NaN are wrong.
class Accuracy {
public:
  /// Takes "LOGITS,LABELS" or "LOGITS,LABELS,AXIS" apart.
  static Result<Accuracy> parse(std::string_view text);

  const std::string &logits() const { return logits_; }
  const std::string &labels() const { return labels_; }

  /// Returns why logits of this type and shape, of `rows` rows in batches of
  /// `batch`, and the array `labels` do not fit together.
  Status check(const artifact::Slot &logits, int64_t rows, int64_t batch,
               const std::optional<io::ArrayView> &labels);

  /// After `check`: counts the first `rows` rows of `logits` against the rows
  /// of `labels` from `firstLabel` on.
  void add(const runtime::Tensor &logits, const io::ArrayView &labels,
           int64_t firstLabel, int64_t rows);

  int64_t counted() const { return counted_; }
  int64_t right() const { return right_; }
  /// Rows with a label that counts, and those of them with all labels right;
  /// meaningful where a row has many labels.
  int64_t countedRows() const { return countedRows_; }
  int64_t rightRows() const { return rightRows_; }
  bool manyPerRow() const { return manyPerRow_; }

private:
  std::string logits_, labels_;
  std::string asked_; ///< the axis; empty: as the labels' shape says
  int64_t axis_ = -1; ///< found by `check`
  int64_t counted_ = 0, right_ = 0, countedRows_ = 0, rightRows_ = 0;
  bool manyPerRow_ = false;
};

/// The mean of a scalar output.
struct Mean {
  std::string name;
  double value = 0;
  int64_t rows = 0; ///< that it is of: the first ones
  /// A batch that is filled up with repeated rows: there was no full one.
  bool isFilled = false;

  /// Returns what a reader must know beside the number, if it is not of all of
  /// `all` rows: " (of ...)".
  std::string remark(int64_t all) const;
};

/// The value of a metric.
struct MetricValue {
  std::string name;
  double value = 0;
};

/// What is counted of an evaluation's rows, before there were any.
struct Counters {
  std::optional<Accuracy> accuracy;
  std::vector<Metric> metrics;
};

struct Evaluation {
  std::vector<Mean> means; ///< of the scalar outputs
  std::vector<MetricValue> metrics;
  std::optional<Accuracy> accuracy;
  int64_t rows = 0;
  bool stopped = false; ///< by a signal: nothing else is meaningful

  /// Returns the first mean that is NaN or infinite, or null.
  const Mean *nonFinite() const;
};

/// Computes a batch, and returns outputs of it, whole and on the host, which
/// are valid until the next call.
using EvaluateBatch = std::function<Result<std::span<const runtime::Tensor>>(
    std::span<const runtime::Argument>)>;

/// Returns the names of the outputs that an evaluation looks at.
std::vector<std::string> evaluatedOutputs(const artifact::Program &program,
                                          const Counters &counters);

/// Evaluates by `compute`, which gives `evaluatedOutputs`; `counters` are
/// fresh, and bound to `data`.
Result<Evaluation> evaluate(const artifact::Manifest &manifest,
                            const artifact::Program &program, Dataset &data,
                            Counters counters, const EvaluateBatch &compute);

/// The same of a model.
Result<Evaluation> evaluate(runtime::Model &model,
                            const artifact::Program &program, Dataset &data,
                            Counters counters);

} // namespace tandem::commands

#endif
