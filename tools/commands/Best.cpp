//===- Best.cpp - which evaluation was the best ---------------------------===//
#include "tools/commands/Best.h"

#include "runtime/artifact/NearestName.h"
#include "tools/commands/Print.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace tandem::commands {

using Json = nlohmann::json;

static constexpr std::string_view kAccuracy = "accuracy",
                                  kExactMatch = "exact_match";

Result<Best> Best::parse(std::string_view text,
                         const artifact::Program &evaluate,
                         const std::string &loss, const Counters &counters) {
  const auto &accuracy = counters.accuracy;
  Best best;
  bool isLeast = text.starts_with("min:"), isMost = text.starts_with("max:");
  if (isLeast || isMost)
    text.remove_prefix(4);
  best.metric_ = text;
  if (text.empty())
    best.metric_ = accuracy ? std::string(kAccuracy) : loss;
  std::vector<std::string_view> names;
  if (accuracy)
    names.push_back(kAccuracy);
  if (accuracy && accuracy->manyPerRow())
    names.push_back(kExactMatch);
  const std::vector<artifact::Slot> outputs = artifact::outputsOf(evaluate);
  for (const artifact::Slot &slot : outputs)
    if (slot.shape.empty())
      names.push_back(slot.name);
  bool isLarger = best.metric_ == kAccuracy || best.metric_ == kExactMatch;
  for (const Metric &metric : counters.metrics) {
    names.push_back(metric.name());
    if (metric.name() != best.metric_)
      continue;
    isLarger |= metric.isLargerBetter();
    best.definition_ = metric.definition();
  }
  std::string known;
  for (std::string_view name : names)
    known += (known.empty() ? "'" : ", '") + std::string(name) + "'";
  if (std::find(names.begin(), names.end(), best.metric_) == names.end())
    return Status::usage("--best: an evaluation has no number '" +
                         best.metric_ + "'" + didYouMean(best.metric_, names) +
                         "; it has " + (known.empty() ? "none" : known));
  best.isLarger_ = isMost || (!isLeast && isLarger);
  return best;
}

static double fraction(int64_t part, int64_t whole) {
  return double(part) / double(whole); // NaN where nothing counts
}

bool Best::take(const Evaluation &evaluation, int64_t step) {
  double value = NAN;
  for (const Mean &mean : evaluation.means)
    if (mean.name == metric_)
      value = mean.value;
  for (const MetricValue &metric : evaluation.metrics)
    if (metric.name == metric_)
      value = metric.value;
  if (const auto &accuracy = evaluation.accuracy) {
    if (metric_ == kAccuracy)
      value = fraction(accuracy->right(), accuracy->counted());
    if (metric_ == kExactMatch)
      value = fraction(accuracy->rightRows(), accuracy->countedRows());
  }
  bool isRepeated = std::exchange(evaluated_, step) == step;
  bool isBetter = !std::isnan(value) &&
                  (!value_ || (isLarger_ ? value > *value_ : value < *value_));
  if (!isBetter) {
    since_ += isRepeated ? 0 : 1;
    return false;
  }
  value_ = value;
  step_ = step;
  since_ = 0;
  return true;
}

std::string Best::text() const {
  return value_ ? metric_ + " " + roundedText(*value_) + " after step " +
                      std::to_string(step_)
                : "none was a number";
}

std::string Best::metadata() const {
  Json json = {{"metric", (isLarger_ ? "max:" : "min:") + metric_},
               {"step", step_},
               {"since", since_},
               {"evaluated", evaluated_}};
  if (!definition_.empty())
    json["is"] = definition_;
  // As a text: it may be infinite.
  if (value_)
    json["value"] = numberText(*value_);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool Best::resume(const std::string &metadata) {
  Json json = Json::parse(std::string_view(metadata), nullptr,
                          /*allow_exceptions=*/false);
  if (!json.is_object())
    return false;
  auto number = [&](const char *key, int64_t otherwise) {
    auto found = json.find(key);
    return found != json.end() && found->is_number_integer()
               ? found->get<int64_t>()
               : otherwise;
  };
  auto textOf = [&](const char *key) {
    auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>()
                                                     : std::string();
  };
  evaluated_ = number("evaluated", -1);
  if (textOf("metric") != (isLarger_ ? "max:" : "min:") + metric_ ||
      textOf("is") != definition_)
    return false;
  step_ = number("step", 0);
  since_ = number("since", 0);
  if (std::string value = textOf("value"); !value.empty())
    value_ = std::strtod(value.c_str(), nullptr);
  return true;
}

} // namespace tandem::commands
