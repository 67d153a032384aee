//===- Evaluation.cpp - program `evaluate` over a data set ----------------===//
#include "runtime/cli/Evaluation.h"

#include "runtime/cli/Interrupt.h"
#include "runtime/io/Elements.h"

#include <algorithm>
#include <cmath>
#include <deque>

namespace tandem::commands {

using artifact::Slot;
using runtime::Tensor;

Result<Accuracy> Accuracy::parse(std::string_view text) {
  size_t comma = text.find(',');
  if (comma == std::string_view::npos || comma == 0 ||
      comma + 1 == text.size() ||
      text.find(',', comma + 1) != std::string_view::npos)
    return Status::usage("--accuracy: expected LOGITS,LABELS but got '" +
                         std::string(text) + "'");
  Accuracy accuracy;
  accuracy.logits_ = text.substr(0, comma);
  accuracy.labels_ = text.substr(comma + 1);
  return accuracy;
}

Status Accuracy::check(const Slot &logits, int64_t rows, int64_t batch,
                       const Tensor *labels) const {
  if (!labels)
    return Status::usage("--accuracy: missing --eval '" + labels_ + "'");
  const auto &scores = logits.shape;
  if (scores.size() < 2 || scores[0] != batch || scores.back() == 0)
    return Status::usage("--accuracy: expected '" + logits_ +
                         "' to have the shape [" + std::to_string(batch) +
                         ", ..., scores] but got " +
                         runtime::describe(logits.dtype, scores));
  std::vector<int64_t> expected(scores.begin(), scores.end() - 1);
  expected[0] = rows;
  auto shape = labels->shape();
  if (io::isInteger(labels->dtype()) &&
      std::equal(shape.begin(), shape.end(), expected.begin(), expected.end()))
    return Status::success();
  return Status::usage("--accuracy: expected '" + labels_ +
                       "' to be integers " + runtime::toString(expected) +
                       " for '" + logits_ + "' (" +
                       runtime::describe(logits.dtype, scores) + ") but got " +
                       runtime::describe(labels->dtype(), shape));
}

namespace {

/// Returns the index of the largest of `count` scores, or -1 if one is NaN.
int64_t argmax(const Tensor &scores, int64_t begin, int64_t count) {
  const auto *data = scores.data<std::byte>();
  int64_t best = 0;
  double largest = -INFINITY;
  for (int64_t i = 0; i < count; ++i) {
    double score = io::elementAsDouble(scores.dtype(), data, begin + i);
    if (std::isnan(score))
      return -1;
    if (score > largest) {
      largest = score;
      best = i;
    }
  }
  return best;
}

} // namespace

void Accuracy::add(const Tensor &logits, const Tensor &labels,
                   int64_t firstLabel, int64_t rows) {
  manyPerRow_ = logits.rank() > 2;
  int64_t classes = logits.shape().back();
  int64_t perRow = 1;
  for (int64_t dim : labels.shape().subspan(1))
    perRow *= dim;
  const auto *data = labels.data<std::byte>();
  for (int64_t row = 0; row < rows; ++row) {
    int64_t counted = 0, right = 0;
    for (int64_t i = 0; i < perRow; ++i) {
      int64_t label = io::elementAsInteger(labels.dtype(), data,
                                           (firstLabel + row) * perRow + i);
      if (label < 0)
        continue;
      ++counted;
      right += argmax(logits, (row * perRow + i) * classes, classes) == label;
    }
    counted_ += counted;
    right_ += right;
    countedRows_ += counted > 0;
    rightRows_ += counted > 0 && counted == right;
  }
}

Result<Evaluation> evaluate(runtime::Model &model,
                            const artifact::Program &program, Dataset &data,
                            std::optional<Accuracy> accuracy) {
  Evaluation result;
  std::deque<NamedTensor> scalars; // destinations point into it
  Tensor logits;
  std::vector<runtime::Destination> destinations;
  // Destinations refer to the names.
  const std::vector<Slot> outputs = artifact::outputsOf(program);
  for (const Slot &slot : outputs) {
    bool isLogits = accuracy && slot.name == accuracy->logits();
    if (!isLogits && !slot.shape.empty())
      continue;
    auto tensor = Tensor::zeros(slot.dtype, slot.shape);
    if (!tensor)
      return std::move(tensor).status();
    if (isLogits) {
      logits = std::move(*tensor);
      destinations.push_back({slot.name, &logits});
    } else {
      scalars.push_back({slot.name, std::move(*tensor)});
      destinations.push_back({slot.name, &scalars.back().tensor});
      result.means.emplace_back(slot.name, 0.0);
    }
  }
  const Tensor *labels = accuracy ? data.array(accuracy->labels()) : nullptr;
  int64_t batch = data.batch();
  int64_t fullBatches = data.rows() / batch, averaged = 0;
  std::vector<int64_t> rows(static_cast<size_t>(batch));
  for (int64_t first = 0; first < data.rows(); first += batch) {
    if (Interrupt::asked()) {
      result.stopped = true;
      return result;
    }
    for (int64_t i = 0; i < batch; ++i)
      rows[size_t(i)] = (first + i) % data.rows();
    data.gather(rows);
    if (Status status = model.run(program.name, data.arguments(), destinations);
        !status)
      return status;
    int64_t real = std::min(batch, data.rows() - first);
    if (labels)
      accuracy->add(logits, *labels, first, real);
    if (real < batch && fullBatches > 0)
      continue;
    ++averaged;
    for (size_t i = 0; i < scalars.size(); ++i)
      result.means[i].second += scalars[i].tensor.at(0);
  }
  for (auto &[name, mean] : result.means)
    mean /= double(averaged);
  result.accuracy = std::move(accuracy);
  result.rows = data.rows();
  return result;
}

} // namespace tandem::commands
