//===- Evaluation.h - program `evaluate` over a data set ------------------===//
//
// Runs the program batch by batch. The last batch is filled up with rows from
// the beginning when there are too few left; only real rows count where a
// metric can tell rows apart, and only full batches where it cannot.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_CLI_EVALUATION_H
#define TANDEM_RUNTIME_CLI_EVALUATION_H

#include "runtime/cli/Dataset.h"

namespace tandem::commands {

/// Counts how often the largest of the scores on the last axis of an output is
/// where an integer label says. Entries with a negative label are ignored;
/// equal scores go to the lower index; scores with a NaN are wrong.
class Accuracy {
public:
  /// Takes "LOGITS,LABELS" apart.
  static Result<Accuracy> parse(std::string_view text);

  const std::string &logits() const { return logits_; }
  const std::string &labels() const { return labels_; }

  /// Returns why logits of this type and shape, of `rows` rows in batches of
  /// `batch`, and the array `labels` do not fit together.
  Status check(const artifact::Slot &logits, int64_t rows, int64_t batch,
               const runtime::Tensor *labels) const;

  /// Counts the first `rows` rows of `logits` against the rows of `labels` from
  /// `firstLabel` on.
  void add(const runtime::Tensor &logits, const runtime::Tensor &labels,
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
  int64_t counted_ = 0, right_ = 0, countedRows_ = 0, rightRows_ = 0;
  bool manyPerRow_ = false;
};

struct Evaluation {
  /// The mean of each scalar output over the full batches (over the one batch,
  /// with its repeated rows, if there is no full one).
  std::vector<std::pair<std::string, double>> means;
  std::optional<Accuracy> accuracy;
  int64_t rows = 0;
  bool stopped = false; ///< by a signal: nothing else is meaningful
};

/// Evaluates; `accuracy` is a fresh counter or nothing.
Result<Evaluation> evaluate(runtime::Model &model,
                            const artifact::Program &program, Dataset &data,
                            std::optional<Accuracy> accuracy);

} // namespace tandem::commands

#endif
