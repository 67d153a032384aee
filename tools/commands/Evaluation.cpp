//===- Evaluation.cpp - program `evaluate` over a data set ----------------===//
#include "tools/commands/Evaluation.h"

#include "runtime/io/Elements.h"
#include "runtime/model/Pieces.h"
#include "tools/commands/Ranks.h"

#include <algorithm>
#include <cmath>

namespace tandem::commands {

using artifact::Slot;
using runtime::Tensor;

Result<Accuracy> Accuracy::parse(std::string_view text) {
  constexpr size_t none = std::string_view::npos;
  size_t first = text.find(',');
  size_t second = first == none ? none : text.find(',', first + 1);
  Accuracy accuracy;
  accuracy.logits_ = text.substr(0, first);
  if (first != none)
    accuracy.labels_ = text.substr(first + 1, second - first - 1);
  if (second != none)
    accuracy.asked_ = text.substr(second + 1);
  bool isAxis =
      second == none || (!accuracy.asked_.empty() &&
                         accuracy.asked_.find(',') == std::string::npos);
  if (!accuracy.logits_.empty() && !accuracy.labels_.empty() && isAxis)
    return accuracy;
  return Status::usage("--accuracy: expected LOGITS,LABELS or "
                       "LOGITS,LABELS,AXIS but got '" +
                       std::string(text) + "'");
}

Status Accuracy::check(const Slot &logits, int64_t rows, int64_t batch,
                       const std::optional<io::ArrayView> &labels) {
  const std::string option = "--accuracy";
  auto axis = axisFor(option, logits, labels_, asked_, rows, batch, labels);
  if (!axis)
    return std::move(axis).status();
  axis_ = *axis;
  manyPerRow_ = logits.shape.size() > 2;
  return checkClasses(option, labels_, *labels, logits.shape[size_t(axis_)]);
}

void Accuracy::add(const Tensor &logits, const io::ArrayView &labels,
                   int64_t firstLabel, int64_t rows) {
  int64_t perRow = 1;
  for (int64_t dim : labels.shape.subspan(1))
    perRow *= dim;
  const auto *data = labels.bytes.data();
  for (int64_t row = 0; row < rows; ++row) {
    int64_t counted = 0, right = 0;
    for (int64_t i = 0; i < perRow; ++i) {
      int64_t label = io::elementAsInteger(labels.dtype, data,
                                           (firstLabel + row) * perRow + i);
      if (label < 0)
        continue;
      ++counted;
      right += argmax(logits, axis_, row * perRow + i) == label;
    }
    counted_ += counted;
    right_ += right;
    countedRows_ += counted > 0;
    rightRows_ += counted > 0 && counted == right;
  }
}

std::string Mean::remark(int64_t all) const {
  if (isFilled)
    return " (of one batch that is filled up with repeated rows: the output is "
           "not known to be a mean over rows)";
  if (rows == all)
    return "";
  return " (of the first " + std::to_string(rows) + " of " +
         std::to_string(all) +
         " rows: the output is not known to be a mean over rows)";
}

const Mean *Evaluation::nonFinite() const {
  for (const Mean &mean : means)
    if (!std::isfinite(mean.value))
      return &mean;
  return nullptr;
}

namespace {

/// A scalar output, and what is summed up of it.
struct Scalar {
  const Slot *slot;
  size_t index;     ///< among the outputs that are looked at
  double value = 0; ///< of the batch
  /// Whose `ignored` elements do not count.
  std::optional<io::ArrayView> counted = {};
  int64_t ignored = 0;
  double sum = 0, weight = 0;
  int64_t rows = 0;
  bool isFilled = false;

  bool isMean() const { return slot->rows == artifact::Rows::Mean; }
};

/// True for rows that something is counted of.
bool isCounted(const Slot &slot, const Counters &counters) {
  return !slot.shape.empty() &&
         ((counters.accuracy && slot.name == counters.accuracy->logits()) ||
          std::ranges::count(counters.metrics, slot.name, &Metric::output) > 0);
}

class Evaluator {
public:
  Evaluator(const artifact::Manifest &manifest,
            const artifact::Program &program, Dataset &data, Counters counters,
            const EvaluateBatch &compute)
      : manifest_(manifest), data_(data),
        outputs_(artifact::outputsOf(program)), compute_(compute) {
    prepare(counters);
    metrics_ = std::move(counters.metrics);
    result_.accuracy = std::move(counters.accuracy);
  }

  Result<Evaluation> run();

private:
  void prepare(const Counters &counters);
  Status runBatch(int64_t first, int64_t count);
  Status runRest(int64_t first, int64_t count);
  void count(int64_t first, int64_t count);
  void add(Scalar &scalar, int64_t first, int64_t count) const;
  double weightOf(const Scalar &scalar, int64_t first, int64_t count) const;

  const artifact::Manifest &manifest_;
  Dataset &data_;
  const std::vector<Slot> outputs_;
  const EvaluateBatch &compute_;
  std::vector<Scalar> scalars_;
  /// An output with rows that something is counted of.
  struct Rows {
    const Slot *slot;
    size_t index;      ///< among the outputs that are looked at
    Tensor whole = {}; ///< of the batch
  };
  std::vector<Rows> rowOutputs_;
  std::vector<Metric> metrics_;
  std::optional<io::ArrayView> labels_;
  std::vector<int64_t> rows_;
  Evaluation result_;
};

void Evaluator::prepare(const Counters &counters) {
  size_t index = 0;
  for (const Slot &slot : outputs_) {
    if (isCounted(slot, counters)) {
      rowOutputs_.push_back({&slot, index++});
      continue;
    }
    if (!slot.shape.empty())
      continue;
    Scalar &scalar = scalars_.emplace_back(Scalar{&slot, index++});
    if (slot.counted.empty())
      continue;
    scalar.counted = data_.array(slot.counted);
    // Validated: the value says what it ignores.
    if (const auto *value = manifest_.findValue(slot.counted))
      scalar.ignored = value->ignored.value_or(0);
  }
  if (counters.accuracy)
    labels_ = data_.array(counters.accuracy->labels());
  rows_.resize(size_t(data_.batch()));
}

/// Runs a batch of the `count` rows from `first` on, repeated in their order.
Status Evaluator::runBatch(int64_t first, int64_t count) {
  for (size_t i = 0; i < rows_.size(); ++i)
    rows_[i] = first + int64_t(i) % count;
  if (Status status = data_.gather(rows_); !status)
    return status;
  auto computed = compute_(data_.arguments());
  if (!computed)
    return std::move(computed).status();
  for (Scalar &scalar : scalars_)
    scalar.value = (*computed)[scalar.index].at(0);
  for (Rows &rows : rowOutputs_)
    rows.whole = (*computed)[rows.index];
  return Status::success();
}

/// Counts the `count` rows from `first` on, the first ones of the batch.
void Evaluator::count(int64_t first, int64_t count) {
  for (const Rows &rows : rowOutputs_) {
    if (labels_ && rows.slot->name == result_.accuracy->logits())
      result_.accuracy->add(rows.whole, *labels_, first, count);
    for (Metric &metric : metrics_)
      if (metric.output() == rows.slot->name)
        metric.add(rows.whole, first, count);
  }
}

/// How much the mean of a batch of these rows counts.
double Evaluator::weightOf(const Scalar &scalar, int64_t first,
                           int64_t count) const {
  if (!scalar.counted)
    return double(count);
  const io::ArrayView &array = *scalar.counted;
  int64_t perRow = 1, counted = 0;
  for (size_t d = 1; d < array.shape.size(); ++d)
    perRow *= array.shape[d];
  for (int64_t i = first * perRow; i < (first + count) * perRow; ++i)
    counted += io::elementAsInteger(array.dtype, array.bytes.data(), i) !=
               scalar.ignored;
  return double(counted);
}

void Evaluator::add(Scalar &scalar, int64_t first, int64_t count) const {
  double weight = weightOf(scalar, first, count);
  scalar.rows += count;
  if (weight == 0)
    return; // nothing that counts: 0 / 0
  scalar.sum += scalar.value * weight;
  scalar.weight += weight;
}

/// The rows that do not fill a batch.
Status Evaluator::runRest(int64_t first, int64_t count) {
  bool hasMean = std::any_of(scalars_.begin(), scalars_.end(),
                             [](const Scalar &s) { return s.isMean(); });
  bool hasOther = std::any_of(scalars_.begin(), scalars_.end(),
                              [](const Scalar &s) { return !s.isMean(); });
  bool fills = !hasMean || (hasOther && first == 0);
  if (fills) {
    if (Status status = runBatch(first, count); !status)
      return status;
    this->count(first, count);
    for (Scalar &scalar : scalars_)
      if (!scalar.isMean() && first == 0) {
        add(scalar, first, count);
        scalar.isFilled = true;
      }
  }
  for (int64_t left = count; hasMean && left > 0;) {
    int64_t size = left;
    while (data_.batch() % size != 0)
      --size;
    if (Status status = runBatch(first, size); !status)
      return status;
    if (!fills)
      this->count(first, size);
    for (Scalar &scalar : scalars_)
      if (scalar.isMean())
        add(scalar, first, size);
    first += size;
    left -= size;
  }
  return Status::success();
}

Result<Evaluation> Evaluator::run() {
  int64_t batch = data_.batch();
  for (int64_t first = 0; first < data_.rows(); first += batch) {
    auto stops = isInterrupted();
    if (!stops)
      return std::move(stops).status();
    if (*stops) {
      result_.stopped = true;
      return std::move(result_);
    }
    int64_t count = std::min(batch, data_.rows() - first);
    if (count < batch) {
      if (Status status = runRest(first, count); !status)
        return status;
      break;
    }
    if (Status status = runBatch(first, batch); !status)
      return status;
    this->count(first, batch);
    for (Scalar &scalar : scalars_)
      add(scalar, first, batch);
  }
  for (const Scalar &scalar : scalars_)
    result_.means.push_back({scalar.slot->name, scalar.sum / scalar.weight,
                             scalar.rows, scalar.isFilled});
  for (Metric &metric : metrics_) {
    for (const Mean &mean : result_.means)
      if (mean.name == metric.output() && metric.array().empty())
        metric.addMean(mean.value);
    result_.metrics.push_back({metric.name(), metric.value()});
  }
  result_.rows = data_.rows();
  return std::move(result_);
}

} // namespace

std::vector<std::string> evaluatedOutputs(const artifact::Program &program,
                                          const Counters &counters) {
  std::vector<std::string> names;
  for (const Slot &slot : artifact::outputsOf(program))
    if (slot.shape.empty() || isCounted(slot, counters))
      names.push_back(slot.name);
  return names;
}

Result<Evaluation> evaluate(const artifact::Manifest &manifest,
                            const artifact::Program &program, Dataset &data,
                            Counters counters, const EvaluateBatch &compute) {
  return Evaluator(manifest, program, data, std::move(counters), compute).run();
}

Result<Evaluation> evaluate(runtime::Model &model,
                            const artifact::Program &program, Dataset &data,
                            Counters counters) {
  std::vector<std::string> names = evaluatedOutputs(program, counters);
  std::vector<Tensor> pieces(names.size()), wholes(names.size());
  std::vector<runtime::Destination> destinations;
  for (const Slot &slot : artifact::outputsOf(program)) {
    if (!slot.shape.empty() && !isCounted(slot, counters))
      continue;
    // Of several ranks each has a piece, for which a call makes the tensor.
    size_t index = destinations.size();
    if (slot.shape.empty() || !model.communicators()) {
      auto tensor = Tensor::zeros(slot.dtype, slot.shape);
      if (!tensor)
        return std::move(tensor).status();
      pieces[index] = *std::move(tensor);
    }
    destinations.push_back({names[index], &pieces[index]});
  }
  auto compute = [&](std::span<const runtime::Argument> arguments)
      -> Result<std::span<const Tensor>> {
    if (Status status = model.run(program.name, arguments, destinations);
        !status)
      return status;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const artifact::Value *value =
          pieces[i].rank() ? model.manifest().findOutput(names[i]) : nullptr;
      auto whole = wholeOf(pieces[i], value, model.communicators());
      if (!whole)
        return std::move(whole).status();
      wholes[i] = *std::move(whole);
    }
    return std::span<const Tensor>(wholes);
  };
  return evaluate(model.manifest(), program, data, std::move(counters),
                  compute);
}

} // namespace tandem::commands
