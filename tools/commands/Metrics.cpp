//===- Metrics.cpp - numbers of an evaluation beside its outputs ----------===//
#include "tools/commands/Metrics.h"

#include "runtime/artifact/NearestName.h"
#include "runtime/io/Elements.h"
#include "tools/commands/Print.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace tandem::commands {

using artifact::DType;
using artifact::Slot;
using runtime::Tensor;

std::optional<int64_t> axisOfScores(std::string_view text, int64_t rank) {
  int64_t axis = 0;
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, axis);
  axis += axis < 0 ? rank : 0;
  bool isOne = error == std::errc() && stop == end && axis >= 1 && axis < rank;
  return isOne ? std::optional(axis) : std::nullopt;
}

/// Integers of 64 bits as they are: f64 does not hold them.
static __int128 integerAt(DType dtype, const std::byte *data, int64_t index) {
  if (dtype != DType::U64)
    return io::elementAsInteger(dtype, data, index);
  uint64_t value = 0;
  std::memcpy(&value, data + index * int64_t(sizeof value), sizeof value);
  return value;
}

/// Calls `use` with a function that returns element `i` in a type that holds
/// it.
template <typename Use>
static auto withElements(DType dtype, const std::byte *data, Use use) {
  if (dtype == DType::I64 || dtype == DType::U64)
    return use([=](int64_t i) { return integerAt(dtype, data, i); });
  return use([=](int64_t i) { return io::elementAsDouble(dtype, data, i); });
}

int64_t argmax(const Tensor &scores, int64_t axis, int64_t position) {
  const auto *data = scores.data<std::byte>();
  std::span<const int64_t> shape = scores.shape();
  int64_t count = shape[axis], step = 1;
  for (int64_t dim : shape.subspan(axis + 1))
    step *= dim;
  int64_t begin = position / step * step * count + position % step;
  return withElements(scores.dtype(), data, [&](auto at) -> int64_t {
    int64_t best = 0;
    auto largest = at(begin);
    for (int64_t i = 0; i < count; ++i) {
      auto score = at(begin + i * step);
      if (score != score) // NaN
        return -1;
      if (score > largest) {
        largest = score;
        best = i;
      }
    }
    return best;
  });
}

Result<int64_t> axisFor(const std::string &option, const Slot &output,
                        const std::string &nameOfLabels,
                        const std::string &asked, int64_t rows, int64_t batch,
                        const std::optional<io::ArrayView> &labels) {
  if (!labels)
    return Status::usage(option + ": missing --eval '" + nameOfLabels + "'");
  const auto &scores = output.shape;
  const std::string &name = output.name;
  int64_t rank = std::ssize(scores);
  if (rank < 2 || scores[0] != batch || scores.back() == 0)
    return Status::usage(option + ": expected '" + name +
                         "' to have the shape [" + std::to_string(batch) +
                         ", ..., scores] but got " +
                         runtime::describe(output.dtype, scores));
  auto shapeOfLabels = [&](int64_t axis) {
    std::vector<int64_t> shape(scores.begin(), scores.end());
    shape.erase(shape.begin() + axis);
    shape[0] = rows;
    return shape;
  };
  auto fits = [&](int64_t axis) {
    return io::isInteger(labels->dtype) &&
           std::ranges::equal(labels->shape, shapeOfLabels(axis));
  };
  auto found = axisOfScores(asked, rank);
  if (!asked.empty() && !found)
    return Status::usage(option + ": expected an axis of '" + name +
                         "', from 1 to " + std::to_string(rank - 1) +
                         ", but got '" + asked + "'");
  bool fitsLast = fits(rank - 1), fitsFirst = rank > 2 && fits(1);
  if (!found && fitsLast && fitsFirst)
    return Status::usage(option + ": the scores of '" + name + "' (" +
                         runtime::describe(output.dtype, scores) +
                         ") may be on axis 1 or on the last; expected '" +
                         name + "," + nameOfLabels + ",1' or '" + name + "," +
                         nameOfLabels + ",-1'");
  int64_t axis = found.value_or(fitsFirst ? 1 : rank - 1);
  if (fits(axis))
    return axis;
  return Status::usage(
      option + ": expected '" + nameOfLabels + "' to be integers " +
      runtime::toString(shapeOfLabels(axis)) +
      (rank > 2 && !found ? " or, with scores on axis 1, " +
                                runtime::toString(shapeOfLabels(1))
                          : "") +
      " for '" + name + "' (" + runtime::describe(output.dtype, scores) +
      ") but got " + runtime::describe(labels->dtype, labels->shape));
}

Status checkClasses(const std::string &option, const std::string &nameOfLabels,
                    const io::ArrayView &labels, int64_t classes) {
  auto count = int64_t(labels.bytes.size()) / artifact::byteSize(labels.dtype);
  for (int64_t i = 0; i < count; ++i)
    if (io::elementAsInteger(labels.dtype, labels.bytes.data(), i) >= classes)
      return Status::usage(
          option + ": expected labels below " + std::to_string(classes) +
          " but element " + io::positionText(labels.shape, i) + " of '" +
          nameOfLabels + "' is " +
          io::integerText(labels.dtype, labels.bytes.data(), i));
  return Status::success();
}

namespace {

struct KindRow {
  std::string_view name;
  Metric::Kind kind;
  bool hasAxis; ///< of scores
};

constexpr KindRow kinds[] = {{"f1", Metric::Kind::F1, true},
                             {"auc", Metric::Kind::Auc, true},
                             {"iou", Metric::Kind::Iou, true},
                             {"mae", Metric::Kind::Mae, false},
                             {"r2", Metric::Kind::R2, false},
                             {"perplexity", Metric::Kind::Perplexity, false}};

Status wrongMetric(const std::string &what, std::string_view text) {
  return Status::usage("--metric: expected " + what + " but got " +
                       io::inQuotes(text));
}

} // namespace

Result<Metric> Metric::parse(std::string_view text) {
  const std::string form = "[NAME=]KIND:OUTPUT,ARRAY, as 'top5:logits,labels',";
  constexpr size_t none = std::string_view::npos;
  Metric metric;
  size_t colon = text.find(':');
  if (colon == none)
    return wrongMetric(form, text);
  std::string_view kind = text.substr(0, colon);
  if (size_t equals = kind.find('='); equals != none) {
    metric.name_ = kind.substr(0, equals);
    kind.remove_prefix(equals + 1);
    auto isOfNames = [](unsigned char c) {
      return c < 0x80 && (std::isalnum(c) || c == '_' || c == '-' || c == '.');
    };
    if (metric.name_.empty() || !std::ranges::all_of(metric.name_, isOfNames))
      return wrongMetric("a name of letters, digits, '_', '-' and '.'", text);
  } else {
    metric.name_ = kind;
  }
  metric.definition_ = std::string(kind) + std::string(text.substr(colon));
  bool hasAxis = true;
  const auto *row = std::ranges::find(kinds, kind, &KindRow::name);
  if (row != std::end(kinds)) {
    metric.kind_ = row->kind;
    hasAxis = row->hasAxis;
  } else {
    std::string_view digits =
        kind.starts_with("top") ? kind.substr(3) : std::string_view();
    const char *end = digits.data() + digits.size();
    auto [stop, error] = std::from_chars(digits.data(), end, metric.most_);
    if (error != std::errc() || stop != end || metric.most_ < 1) {
      std::vector<std::string_view> known = {"top5"};
      for (const KindRow &one : kinds)
        known.push_back(one.name);
      return Status::usage("--metric: there is no kind " + io::inQuotes(kind) +
                           didYouMean(kind, known) +
                           "; expected topK (as "
                           "top5), f1, auc, iou, mae, r2 or perplexity");
    }
  }
  std::vector<std::string> parts;
  for (std::string_view rest = text.substr(colon + 1);;) {
    size_t comma = rest.find(',');
    parts.emplace_back(rest.substr(0, comma));
    if (comma == none)
      break;
    rest.remove_prefix(comma + 1);
  }
  bool isMean = metric.kind_ == Kind::Perplexity;
  size_t least = isMean ? 1 : 2, most = least + hasAxis;
  if (parts.size() < least || parts.size() > most ||
      std::ranges::count(parts, std::string()) > 0)
    return wrongMetric(std::string(kind) +
                           (isMean    ? ":OUTPUT"
                            : hasAxis ? ":OUTPUT,ARRAY or :OUTPUT,ARRAY,AXIS"
                                      : ":OUTPUT,ARRAY"),
                       text);
  metric.output_ = parts[0];
  if (!isMean)
    metric.array_ = parts[1];
  if (parts.size() > 2)
    metric.asked_ = parts[2];
  return metric;
}

/// Labels of floats are those that a loss of logits reads: 0 and 1.
static Status checkAreBits(const std::string &option,
                           const std::string &nameOfLabels,
                           const io::ArrayView &labels) {
  auto count = int64_t(labels.bytes.size()) / artifact::byteSize(labels.dtype);
  for (int64_t i = 0; i < count; ++i) {
    double label = io::elementAsDouble(labels.dtype, labels.bytes.data(), i);
    if (label != 0 && label != 1)
      return Status::usage(option +
                           ": expected labels of 0 and 1 but element " +
                           io::positionText(labels.shape, i) + " of '" +
                           nameOfLabels + "' is " + numberText(label));
  }
  return Status::success();
}

/// Of labels: with scores on an axis, or one score for each.
Status Metric::bindLabels(const Slot &output, int64_t rows, int64_t batch) {
  const std::string who = "--metric '" + name_ + "'";
  io::ArrayView labels = with_->view();
  std::vector<int64_t> alone(output.shape.begin(), output.shape.end());
  if (!alone.empty())
    alone[0] = rows;
  bool isAlone = kind_ != Kind::Top && asked_.empty() &&
                 !output.shape.empty() && output.shape[0] == batch &&
                 std::ranges::equal(labels.shape, alone);
  int64_t classes = 2;
  if (!isAlone) {
    auto axis = axisFor(who, output, array_, asked_, rows, batch, labels);
    if (!axis)
      return std::move(axis).status();
    axis_ = *axis;
    classes = output.shape[size_t(axis_)];
  }
  if (kind_ == Kind::Auc && classes != 2)
    return Status::usage(who +
                         ": expected one score for each label, or those "
                         "of 2 classes, but '" +
                         output_ + "' has " + std::to_string(classes));
  if (kind_ == Kind::Top && most_ > classes)
    return Status::usage(who + ": expected at most " + std::to_string(classes) +
                         ", the scores of '" + output_ + "', but got " +
                         std::to_string(most_));
  if (kind_ == Kind::F1 || kind_ == Kind::Iou)
    classes_.resize(size_t(classes));
  return io::isInteger(labels.dtype)
             ? checkClasses(who, array_, labels, classes)
             : checkAreBits(who, array_, labels);
}

/// Of numbers: as many as the output has, in its shape.
Status Metric::bindNumbers(const Slot &output, int64_t rows) {
  std::vector<int64_t> shape(output.shape.begin(), output.shape.end());
  if (!shape.empty())
    shape[0] = rows;
  io::ArrayView array = with_->view();
  if (!shape.empty() && std::ranges::equal(array.shape, shape))
    return Status::success();
  return Status::usage("--metric '" + name_ + "': expected '" + array_ +
                       "' to have the shape " + runtime::toString(shape) +
                       " of '" + output_ + "' but got " +
                       runtime::describe(array.dtype, array.shape));
}

Status Metric::bind(const Slot &output, int64_t rows, int64_t batch,
                    const NamedArray *array, const Slot *input) {
  if (kind_ == Kind::Perplexity)
    return output.shape.empty() && output.rows == artifact::Rows::Mean
               ? Status::success()
               : Status::usage("--metric '" + name_ + "': expected '" +
                               output_ + "' to be a mean over rows, a scalar");
  if (!array)
    return Status::usage("--metric '" + name_ + "': missing --eval '" + array_ +
                         "'");
  with_ = array;
  bool isOfNumbers = kind_ == Kind::Mae || kind_ == Kind::R2;
  if (Status status = isOfNumbers ? bindNumbers(output, rows)
                                  : bindLabels(output, rows, batch);
      !status)
    return status;
  if (isOfNumbers && (output.shape.empty() || output.shape[0] != batch))
    return Status::usage("--metric '" + name_ + "': expected '" + output_ +
                         "' to have rows, but got " +
                         runtime::describe(output.dtype, output.shape));
  io::ArrayView view = array->view();
  for (int64_t dim : view.shape.subspan(1))
    perRow_ *= dim;
  // As the program reads it, which may scale it; else as it is.
  bool areIntegers = io::isInteger(view.dtype) && io::isInteger(output.dtype) &&
                     !array->cast.scales;
  type_ = isOfNumbers && input          ? input->dtype
          : isOfNumbers && !areIntegers ? DType::F64
                                        : view.dtype;
  row_.resize(size_t(perRow_ * artifact::byteSize(*type_)));
  return Status::success();
}

bool Metric::isAmongLargest(const Tensor &output, int64_t position,
                            int64_t label) const {
  std::span<const int64_t> shape = output.shape();
  int64_t count = shape[size_t(axis_)], step = 1;
  for (int64_t dim : shape.subspan(size_t(axis_) + 1))
    step *= dim;
  int64_t begin = position / step * step * count + position % step;
  auto isAmong = [&](auto at) {
    auto own = at(begin + label * step);
    int64_t before = 0;
    for (int64_t i = 0; i < count; ++i) {
      auto score = at(begin + i * step);
      if (score != score) // NaN
        return false;
      before += score > own || (score == own && i < label);
    }
    return before < most_;
  };
  return withElements(output.dtype(), output.data<std::byte>(), isAmong);
}

int64_t Metric::predicted(const Tensor &output, int64_t position) const {
  if (axis_ >= 0)
    return argmax(output, axis_, position);
  double score =
      io::elementAsDouble(output.dtype(), output.data<std::byte>(), position);
  return std::isnan(score) ? -1 : score > 0;
}

void Metric::addLabel(const Tensor &output, int64_t position, int64_t label) {
  ++counted_;
  if (kind_ == Kind::Top) {
    right_ += isAmongLargest(output, position, label);
  } else if (kind_ == Kind::Auc) {
    auto addScore = [&](auto at) {
      auto score = at(position);
      if (axis_ >= 0) {
        int64_t step = 1;
        for (int64_t dim : output.shape().subspan(size_t(axis_) + 1))
          step *= dim;
        int64_t begin = position / step * step * 2 + position % step;
        score = at(begin + step) - at(begin);
      }
      auto high = double(score);
      // What f64 loses of an integer; of floats nothing (or NaN).
      double low = 0;
      if constexpr (!std::is_same_v<decltype(score), double>)
        low = double(score - __int128(high));
      scores_.push_back({{high, low}, label == 1});
    };
    withElements(output.dtype(), output.data<std::byte>(), addScore);
  } else {
    int64_t found = predicted(output, position);
    ++classes_[size_t(label)].actual;
    if (found >= 0)
      ++classes_[size_t(found)].predicted;
    classes_[size_t(label)].both += found == label;
  }
}

/// Sums of squares about the mean by Welford's recurrence ("Note on a method
/// for calculating corrected sums of squares and products", 1962).
void Metric::addNumber(double difference, double target) {
  ++counted_;
  double deviation = target - mean_;
  error_ +=
      kind_ == Kind::Mae ? std::fabs(difference) : difference * difference;
  mean_ += deviation / double(counted_);
  deviations_ += deviation * (target - mean_);
}

void Metric::add(const Tensor &output, int64_t first, int64_t rows) {
  if (!with_)
    return;
  io::ArrayView array = with_->view();
  int64_t bytes = perRow_ * artifact::byteSize(array.dtype);
  for (int64_t row = 0; row < rows; ++row) {
    const std::byte *from = array.bytes.data() + (first + row) * bytes;
    if (kind_ == Kind::Mae || kind_ == Kind::R2) {
      io::castElements(from, array.dtype, row_.data(), *type_, perRow_,
                       with_->cast);
      bool areIntegers = io::isInteger(output.dtype()) && io::isInteger(*type_);
      const auto *numbers = output.data<std::byte>();
      for (int64_t i = 0; i < perRow_; ++i) {
        int64_t at = row * perRow_ + i;
        double target = io::elementAsDouble(*type_, row_.data(), i);
        double difference =
            areIntegers
                ? double(integerAt(*type_, row_.data(), i) -
                         integerAt(output.dtype(), numbers, at))
                : target - io::elementAsDouble(output.dtype(), numbers, at);
        addNumber(difference, target);
      }
      continue;
    }
    bool isInteger = io::isInteger(array.dtype);
    for (int64_t i = 0; i < perRow_; ++i) {
      int64_t label = isInteger
                          ? io::elementAsInteger(array.dtype, from, i)
                          : int64_t(io::elementAsDouble(array.dtype, from, i));
      if (label >= 0)
        addLabel(output, row * perRow_ + i, label);
    }
  }
}

void Metric::addMean(double mean) {
  counted_ = 1;
  mean_ = mean;
}

/// How often a score of class 1 is above one of class 0, equal ones by half
/// (the statistic of Mann and Whitney).
double Metric::areaUnderCurve() const {
  std::vector<Score> sorted = scores_;
  for (const Score &one : sorted)
    if (std::isnan(one.score.first))
      return NAN;
  std::ranges::sort(sorted, {}, &Score::score);
  double twice = 0, zeros = 0, ones = 0;
  for (size_t i = 0; i < sorted.size();) {
    double equalZeros = 0, equalOnes = 0;
    auto score = sorted[i].score;
    for (; i < sorted.size() && sorted[i].score == score; ++i)
      ++(sorted[i].isOne ? equalOnes : equalZeros);
    twice += equalOnes * (2 * zeros + equalZeros);
    zeros += equalZeros;
    ones += equalOnes;
  }
  return twice / 2 / zeros / ones;
}

double Metric::value() const {
  if (counted_ == 0)
    return NAN;
  switch (kind_) {
  case Kind::Top:
    return double(right_) / double(counted_);
  case Kind::Auc:
    return areaUnderCurve();
  case Kind::Mae:
    return error_ / double(counted_);
  case Kind::R2:
    return 1 - error_ / deviations_;
  case Kind::Perplexity:
    return std::exp(mean_);
  case Kind::F1:
  case Kind::Iou:
    break;
  }
  auto part = [&](const Class &one) {
    int64_t sum = one.predicted + one.actual;
    return kind_ == Kind::F1 ? 2 * double(one.both) / double(sum)
                             : double(one.both) / double(sum - one.both);
  };
  // Of two classes with one score, that of class 1; else the mean over those
  // that occur.
  if (axis_ < 0)
    return part(classes_[1]);
  double sum = 0, count = 0;
  for (const Class &one : classes_)
    if (one.predicted + one.actual > 0) {
      sum += part(one);
      ++count;
    }
  return sum / count;
}

} // namespace tandem::commands
