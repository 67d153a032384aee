//===- Metrics.h - numbers of an evaluation beside its outputs ------------===//
//
// Each compares the rows of an output with those of an array of --eval, or is
// of the mean of a scalar output. Rows are taken one by one in their order, so
// that a metric does not depend on the batch. Under a mesh every rank has the
// whole output of a batch, and the same numbers.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_METRICS_H
#define TANDEM_TOOLS_COMMANDS_METRICS_H

#include "tools/commands/Dataset.h"

namespace tandem::commands {

/// Returns the axis of scores that `text` names, a number from 1 to `rank` - 1
/// or, from the last one on, from -1 to 1 - `rank`; nothing where it is none.
std::optional<int64_t> axisOfScores(std::string_view text, int64_t rank);

/// Returns the axis of the scores in an output of this type and shape, of
/// `rows` rows in batches of `batch`, that fits the integers `labels`: the one
/// that `asked` names or, where that is empty, the last one or axis 1,
/// whichever the shape of the labels says. Fails with Usage, in the name of
/// `option`.
Result<int64_t> axisFor(const std::string &option, const artifact::Slot &output,
                        const std::string &nameOfLabels,
                        const std::string &asked, int64_t rows, int64_t batch,
                        const std::optional<io::ArrayView> &labels);

/// Fails with Usage, in the name of `option`, where one of the integers
/// `labels` is no class and counts nevertheless: negative ones do not.
Status checkClasses(const std::string &option, const std::string &nameOfLabels,
                    const io::ArrayView &labels, int64_t classes);

/// Returns the index of the largest of the scores along `axis`, the lower one
/// of equal ones, or -1 if one is NaN. `position` counts the elements of the
/// tensor without that axis, in row-major order.
int64_t argmax(const runtime::Tensor &scores, int64_t axis, int64_t position);

class Metric {
public:
  enum class Kind { Top, F1, Auc, Iou, Mae, R2, Perplexity };

  /// Takes "[NAME=]KIND:OUTPUT[,ARRAY[,AXIS]]" apart; fails with Usage.
  static Result<Metric> parse(std::string_view text);

  /// What it is called: NAME, else KIND.
  const std::string &name() const { return name_; }
  /// What it is whatever its name: "KIND:OUTPUT[,ARRAY[,AXIS]]".
  const std::string &definition() const { return definition_; }
  const std::string &output() const { return output_; }
  /// The array that it compares with; empty: none.
  const std::string &array() const { return array_; }
  bool isLargerBetter() const {
    return kind_ != Kind::Mae && kind_ != Kind::Perplexity;
  }

  /// Takes the output and the array, which must outlive the metric; `input` is
  /// what the program takes it as, null where it does not. Fails with Usage
  /// where they do not fit together, or an array has labels that are none.
  Status bind(const artifact::Slot &output, int64_t rows, int64_t batch,
              const NamedArray *array, const artifact::Slot *input);

  /// After `bind`: takes the first `rows` rows of `output`, which are those
  /// from `first` on.
  void add(const runtime::Tensor &output, int64_t first, int64_t rows);
  /// Of a perplexity: takes the mean of the output.
  void addMean(double mean);

  /// Returns NaN where nothing was counted.
  double value() const;

private:
  /// How often a class was predicted, was a label, and was both.
  struct Class {
    int64_t predicted = 0, actual = 0, both = 0;
  };
  struct Score {
    std::pair<double, double> score; ///< and what f64 loses of an integer
    bool isOne;
  };

  Status bindLabels(const artifact::Slot &output, int64_t rows, int64_t batch);
  Status bindNumbers(const artifact::Slot &output, int64_t rows);
  void addLabel(const runtime::Tensor &output, int64_t position, int64_t label);
  void addNumber(double difference, double target);
  bool isAmongLargest(const runtime::Tensor &output, int64_t position,
                      int64_t label) const;
  int64_t predicted(const runtime::Tensor &output, int64_t position) const;
  double areaUnderCurve() const;

  Kind kind_ = Kind::Top;
  std::string definition_;
  std::string name_, output_, array_, asked_;
  int64_t most_ = 1;  ///< of Top: how many scores count
  int64_t axis_ = -1; ///< of the scores; -1: one score for each label
  int64_t perRow_ = 1;
  const NamedArray *with_ = nullptr;
  std::optional<artifact::DType> type_; ///< as which the array is read
  std::vector<std::byte> row_;
  int64_t counted_ = 0, right_ = 0;
  std::vector<Class> classes_;
  std::vector<Score> scores_;
  double error_ = 0, mean_ = 0, deviations_ = 0;
};

} // namespace tandem::commands

#endif
