//===- Outputs.cpp - what a command gives out -----------------------------===//
#include "tools/commands/Outputs.h"

#include "runtime/io/Elements.h"
#include "runtime/io/FileKind.h"
#include "runtime/io/Npy.h"
#include "tools/commands/Print.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace tandem::commands {

using runtime::Tensor;

namespace {

/// Of finite elements.
struct Summary {
  double low = INFINITY, high = -INFINITY, mean = 0;
  int64_t finite = 0;
};

Summary summaryOf(const Tensor &tensor) {
  Summary summary;
  double sum = 0;
  const auto *data = tensor.data<std::byte>();
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    double value = io::elementAsDouble(tensor.dtype(), data, i);
    if (!std::isfinite(value))
      continue;
    ++summary.finite;
    summary.low = std::min(summary.low, value);
    summary.high = std::max(summary.high, value);
    sum += value;
  }
  summary.mean = sum / double(summary.finite);
  return summary;
}

std::vector<std::string> summaryRow(std::string_view name,
                                    const Tensor &tensor) {
  Summary summary = summaryOf(tensor);
  std::vector<std::string> row = {std::string(name),
                                  std::string(spelling(tensor.dtype())),
                                  runtime::toString(tensor.shape())};
  for (double value : {summary.low, summary.high, summary.mean})
    row.push_back(summary.finite ? roundedText(value) : "-");
  row.push_back(std::to_string(tensor.elements() - summary.finite));
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
      rows.push_back(summaryRow(name, tensor));
  if (rows.size() > 1)
    printTable(rows);
}

/// A scalar; integers with all their digits.
static nlohmann::ordered_json numberOf(const Tensor &scalar) {
  artifact::DType dtype = scalar.dtype();
  const auto *data = scalar.data<std::byte>();
  if (artifact::isFloat(dtype))
    return io::elementAsDouble(dtype, data, 0);
  if (dtype != artifact::DType::U64)
    return io::elementAsInteger(dtype, data, 0);
  uint64_t number;
  std::memcpy(&number, data, sizeof number);
  return number;
}

void printOutputsAsJson(const std::string &program,
                        const std::deque<NamedTensor> &outputs) {
  nlohmann::ordered_json all = {{"program", program},
                                {"outputs", nlohmann::ordered_json::object()}};
  for (const auto &[name, tensor] : outputs) {
    nlohmann::ordered_json &one = all["outputs"][name];
    Summary summary = summaryOf(tensor);
    one = {{"type", spelling(tensor.dtype())},
           {"shape",
            std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end())},
           {"not_finite", tensor.elements() - summary.finite}};
    if (tensor.rank() == 0)
      one["value"] = numberOf(tensor);
    else if (summary.finite)
      one.update({{"min", summary.low},
                  {"max", summary.high},
                  {"mean", summary.mean}});
  }
  std::printf("%s\n",
              all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
                  .c_str());
}

/// The type and shape of an array in a file; nothing if there is none.
static std::optional<io::NpyHeader> headerOf(const std::string &path) {
  if (io::fileKind(path) != io::FileKind::Npy)
    return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::string begin(4096, '\0');
  file.read(begin.data(), std::ssize(begin));
  begin.resize(size_t(file.gcount()));
  std::error_code error;
  auto header = io::parseNpyHeader(std::as_bytes(std::span(begin)),
                                   std::filesystem::file_size(path, error));
  return header ? std::optional(*header) : std::nullopt;
}

Status checkReplaced(const std::vector<io::Argument> &files,
                     const std::vector<artifact::Slot> &outputs,
                     bool isArgmax) {
  Problems problems;
  for (const io::Argument &file : files) {
    auto slot = std::find_if(
        outputs.begin(), outputs.end(),
        [&](const artifact::Slot &one) { return one.name == file.name; });
    auto header = file.kind == io::Argument::Kind::Npy ? headerOf(file.text)
                                                       : std::nullopt;
    if (slot == outputs.end() || !header)
      continue;
    auto dtype = isArgmax                  ? artifact::DType::I64
                 : io::npyHas(slot->dtype) ? slot->dtype
                                           : artifact::DType::F32;
    const auto &shape = header->shape;
    bool isSame = header->dtype == dtype &&
                  (isArgmax ||
                   (shape.size() == slot->shape.size() &&
                    (shape.empty() || std::equal(shape.begin() + 1, shape.end(),
                                                 slot->shape.begin() + 1))));
    if (!isSame)
      problems.add("--output '" + file.name + "' would replace " +
                   io::inQuotes(file.text) + ": expected " +
                   (isArgmax
                        ? "indices in i64"
                        : "rows of " + runtime::describe(dtype, slot->shape)) +
                   " but got " + runtime::describe(header->dtype, shape));
  }
  if (problems.none())
    return Status::success();
  problems.add("choose another file, or say --force");
  return problems.status();
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
    else if (Status status = io::checkPlace(*argument); !status)
      problems.add("--output " + status.message());
    result.push_back(*std::move(argument));
  }
  if (!problems.none())
    return problems.status();
  return result;
}

} // namespace tandem::commands
