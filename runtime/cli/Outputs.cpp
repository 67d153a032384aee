//===- Outputs.cpp - what a command gives out -----------------------------===//
#include "runtime/cli/Outputs.h"

#include "runtime/cli/Checkpoint.h"
#include "runtime/cli/Print.h"
#include "runtime/io/Elements.h"

#include <cmath>
#include <cstdio>

namespace tandem::commands {

using runtime::Tensor;

namespace {

/// Returns a row of the summary: minimum, maximum and mean of finite elements.
std::vector<std::string> summary(std::string_view name, const Tensor &tensor) {
  double low = INFINITY, high = -INFINITY, sum = 0;
  int64_t finite = 0;
  const auto *data = tensor.data<std::byte>();
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    double value = io::elementAsDouble(tensor.dtype(), data, i);
    if (!std::isfinite(value))
      continue;
    ++finite;
    low = std::min(low, value);
    high = std::max(high, value);
    sum += value;
  }
  std::vector<std::string> row = {std::string(name),
                                  std::string(spelling(tensor.dtype())),
                                  runtime::toString(tensor.shape())};
  for (double value : {low, high, sum / double(finite)})
    row.push_back(finite ? roundedText(value) : "-");
  row.push_back(std::to_string(tensor.elements() - finite));
  return row;
}

} // namespace

void printOutputs(const std::deque<NamedTensor> &outputs) {
  for (const auto &[name, tensor] : outputs)
    if (tensor.rank() == 0)
      std::printf("%s = %s\n", name.c_str(), scalarText(tensor).c_str());
  std::vector<std::vector<std::string>> rows = {
      {"output", "type", "shape", "min", "max", "mean", "nan/inf"}};
  for (const auto &[name, tensor] : outputs)
    if (tensor.rank() != 0)
      rows.push_back(summary(name, tensor));
  if (rows.size() > 1)
    printTable(rows);
}

Result<std::vector<io::Argument>>
parseOutputs(const std::vector<std::string> &texts, const std::string &program,
             const std::vector<artifact::Slot> &outputs) {
  Problems problems;
  std::vector<io::Argument> result;
  for (const std::string &text : texts) {
    auto argument = io::parseArgument(text);
    if (!argument) {
      problems.add("--output: " + argument.status().message());
      continue;
    }
    std::string known;
    bool found = false;
    for (const artifact::Slot &slot : outputs) {
      found |= slot.name == argument->name;
      known += (known.empty() ? "'" : ", '") + slot.name + "'";
    }
    if (!found)
      problems.add("--output: program '" + program + "' has no output '" +
                   argument->name + "'; it has " +
                   (known.empty() ? "none" : known));
    else if (argument->kind == io::Argument::Kind::Scalar)
      problems.add("--output '" + argument->name +
                   "': expected '@FILE' but got '" + argument->text + "'");
    else if (Status status = checkWritable(argument->text); !status)
      return status;
    result.push_back(*std::move(argument));
  }
  if (!problems.none())
    return problems.status();
  return result;
}

} // namespace tandem::commands
