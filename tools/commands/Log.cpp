//===- Log.cpp - training as lines of JSON --------------------------------===//
#include "tools/commands/Log.h"

#include "runtime/artifact/AtomicFile.h"
#include "runtime/io/Csv.h"
#include "tools/commands/Print.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unistd.h>
#include <utility>

namespace tandem::commands {

std::string jsonText(const std::string &name) {
  std::string text = "\"";
  for (char c : name)
    text += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return text + "\"";
}

std::string jsonNumber(double value) {
  return std::isfinite(value) ? numberText(value) : "null";
}

namespace {

nlohmann::json parsed(std::string_view text) {
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::string beginning(int64_t epoch, int64_t steps) {
  return "{\"epoch\": " + std::to_string(epoch) +
         ", \"step\": " + std::to_string(steps);
}

std::string headerOf(const std::vector<std::string> &columns) {
  std::string text;
  for (const std::string &name : columns)
    text += (text.empty() ? "" : ",") + io::csvCell(name);
  return text;
}

std::string ending(double seconds) {
  char text[64];
  std::snprintf(text, sizeof text, ", \"seconds\": %.6f}", seconds);
  return text;
}

} // namespace

std::optional<int64_t> lastStepOf(const std::string &path) {
  // Of a regular file alone: a pipe would wait.
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return std::nullopt;
  std::ifstream file(path);
  std::optional<int64_t> step;
  bool isTable = path.ends_with(".csv");
  for (std::string text; std::getline(file, text);) {
    if (isTable) { // epoch, step, ...
      size_t cell = text.find(',') + 1;
      if (cell && std::isdigit(static_cast<unsigned char>(text[cell])))
        step = std::strtoll(text.c_str() + cell, nullptr, 10);
      continue;
    }
    auto line = parsed(text);
    if (!line.is_object())
      continue;
    auto found = line.find("step");
    if (found != line.end() && found->is_number_integer())
      step = found->get<int64_t>();
  }
  return step;
}

bool cutTornLine(const std::string &path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return false;
  std::ifstream file(path, std::ios::binary);
  // A loss of power leaves zeros of lines that were not on disk.
  uintmax_t whole = 0, size = 0, zero = UINTMAX_MAX;
  for (char c; file.get(c);) {
    if (c == '\0')
      zero = std::min(zero, size);
    ++size;
    if (c == '\n' && size < zero)
      whole = size;
  }
  if (whole == size)
    return false;
  std::filesystem::resize_file(path, whole, error);
  return !error;
}

std::vector<Scalar> scalarsOf(std::string_view line) {
  std::vector<Scalar> scalars;
  auto take = [&](const nlohmann::json &from, const std::string &prefix) {
    for (const auto &[name, value] : from.items())
      if (value.is_number() || value.is_null())
        scalars.emplace_back(prefix + name,
                             value.is_null() ? NAN : value.get<double>());
  };
  auto object = parsed(line);
  if (!object.is_object())
    return scalars;
  take(object, "");
  auto eval = object.find("eval");
  if (eval == object.end() || !eval->is_object())
    return scalars;
  take(*eval, "eval.");
  if (auto outputs = eval->find("outputs"); outputs != eval->end())
    take(*outputs, "eval.");
  return scalars;
}

/// A table that is continued has these columns.
Status Log::checkColumns() const {
  std::error_code error;
  std::string first;
  if (columns_.empty() || !std::filesystem::is_regular_file(path_, error))
    return Status::success();
  std::ifstream file(path_);
  if (!std::getline(file, first) || first == headerOf(columns_))
    return Status::success();
  return Status::usage("the log " + io::inQuotes(path_) +
                       " has other columns: expected " + headerOf(columns_));
}

std::string Log::cellsOf(const std::string &text) const {
  auto object = parsed(text);
  std::vector<std::string> cells;
  for (const std::string &column : columns_) {
    const nlohmann::json *from = &object;
    std::string key = column;
    if (key.starts_with("eval.")) {
      key = key.substr(5);
      auto eval = object.find("eval");
      if (eval == object.end()) {
        cells.emplace_back();
        continue;
      }
      from = &*eval;
      auto outputs = from->find("outputs");
      if (outputs != from->end() && outputs->contains(key))
        from = &*outputs;
    }
    auto cell = from->find(key);
    cells.push_back(cell == from->end()  ? ""
                    : cell->is_null()    ? "nan"
                    : cell->is_boolean() ? "1"
                                         : cell->dump());
  }
  return withCommas(cells);
}

Status Log::open(const std::string &path, Then then, std::optional<double> rate,
                 const std::vector<std::string> &metrics) {
  path_ = path;
  if (path.ends_with(".csv")) {
    columns_ = {"epoch",     "step",       "loss",    "lr",
                "grad_norm", "loss_scale", "skipped", "seconds"};
    for (const std::string &name : metrics)
      columns_.push_back("eval." + name);
  }
  setRate(rate);
  then_ = then;
  // From here on nobody else writes it.
  if (Status status = file_.open(path); !status || then != Then::Append)
    return status;
  if (cutTornLine(path))
    note("the last line of the log " + io::inQuotes(path) +
         " was cut off, and is left out");
  return checkColumns();
}

void Log::setRate(std::optional<double> rate) {
  if (rate && std::isfinite(*rate))
    rate_ = ", \"lr\": " + roundedText(*rate);
}

bool Log::keep() {
  std::error_code error;
  bool isFile = std::filesystem::is_regular_file(path_, error);
  uintmax_t size = isFile ? std::filesystem::file_size(path_, error) : 0;
  if (error) { // what is there cannot be told, and may be somebody's
    file_.fail(error.value());
    return false;
  }
  if (size == 0)
    return true;
  std::string kept;
  for (int i = 1; kept.empty() || std::filesystem::exists(kept, error); ++i)
    kept = path_ + "." + std::to_string(i);
  if (!std::filesystem::copy_file(path_, kept, error)) {
    file_.fail(error.value() ? error.value() : EIO);
    return false;
  }
  // What is emptied next outlives a loss of power under its other name.
  int fd = ::open(kept.c_str(), O_RDONLY | O_CLOEXEC);
  bool isSynced = fd >= 0 && (::fsync(fd) == 0 || errno == EINVAL);
  if (!isSynced)
    file_.fail(errno);
  if (fd >= 0)
    ::close(fd);
  if (!isSynced)
    return false;
  artifact::syncFolderOf(kept);
  note("the log of another training in " + io::inQuotes(path_) +
       " is kept as " + io::inQuotes(kept));
  return true;
}

void Log::writeEvents(const std::string &text) {
  int64_t step = 0;
  std::vector<Scalar> written;
  for (auto &[name, value] : scalarsOf(text)) {
    if (name == "step")
      step = int64_t(value);
    if (name == "step" || name == "epoch" || name == "seconds" ||
        name == "waited" || name == "eval.rows")
      continue;
    // TensorBoard makes groups of what stands before a slash.
    if (name.starts_with("eval."))
      name[4] = '/';
    written.emplace_back(std::move(name), value);
  }
  events_.write(step, written);
}

void Log::line(const std::string &text) {
  if (events_.isOpen())
    writeEvents(text);
  append(columns_.empty() ? text : cellsOf(text));
}

void Log::append(const std::string &text) {
  if (!file_.isOpen())
    return;
  Then then = std::exchange(then_, Then::Append);
  if (then == Then::Keep && !keep())
    return;
  if (then != Then::Append)
    file_.empty();
  if (!std::exchange(isBegun_, true) && !columns_.empty() && file_.isEmpty())
    file_.append(headerOf(columns_) + "\n");
  file_.append(text + "\n");
}

void Log::step(int64_t epoch, int64_t steps, const runtime::Tensor &loss,
               double seconds, const std::string &more) {
  if (!file_.isOpen() && !events_.isOpen())
    return;
  bool finite = std::isfinite(loss.at(0));
  line(beginning(epoch, steps) + ", \"loss\": " +
       (finite ? scalarText(loss) : "null") + rate_ + more + ending(seconds));
}

void Log::evaluation(int64_t epoch, int64_t steps, const Evaluation &evaluation,
                     double seconds) {
  if (!file_.isOpen() && !events_.isOpen())
    return;
  std::string outputs, rows;
  auto add = [](std::string &to, const Mean &mean, const std::string &text) {
    to += (to.empty() ? "" : ", ") + jsonText(mean.name) + ": " + text;
  };
  for (const Mean &mean : evaluation.means) {
    add(outputs, mean, jsonNumber(mean.value));
    if (mean.isFilled || mean.rows != evaluation.rows)
      add(rows, mean, mean.isFilled ? "null" : std::to_string(mean.rows));
  }
  if (!outputs.empty())
    outputs = ", \"outputs\": {" + outputs + "}";
  if (!rows.empty())
    outputs += ", \"rows_of_outputs\": {" + rows + "}";
  if (const auto &accuracy = evaluation.accuracy)
    outputs += ", \"accuracy\": " + jsonNumber(double(accuracy->right()) /
                                               double(accuracy->counted()));
  for (const MetricValue &metric : evaluation.metrics)
    outputs += ", " + jsonText(metric.name) + ": " + jsonNumber(metric.value);
  line(beginning(epoch, steps) + ", \"eval\": {\"rows\": " +
       std::to_string(evaluation.rows) + outputs + "}" + ending(seconds));
}

void Log::histograms(int64_t epoch, int64_t steps,
                     const NamedHistograms &histograms, double seconds) {
  if (events_.isOpen())
    events_.write(steps, histograms);
  if (!file_.isOpen() || !columns_.empty())
    return;
  std::string text;
  for (const auto &[name, histogram] : histograms)
    text +=
        (text.empty() ? "" : ", ") + jsonText(name) + ": " + jsonOf(histogram);
  append(beginning(epoch, steps) + ", \"histograms\": {" + text + "}" +
         ending(seconds));
}

Status Log::sync() {
  Status events = events_.sync(), lines = file_.sync();
  return lines ? events : lines;
}

Status Log::close() {
  Status events = events_.close(), lines = file_.close();
  return lines ? events : lines;
}

} // namespace tandem::commands
