//===- Log.cpp - training as lines of JSON --------------------------------===//
#include "runtime/cli/Log.h"

#include "runtime/cli/Print.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

namespace tandem::commands {
namespace {

/// A name as JSON: printable, since the manifest was validated.
std::string jsonText(const std::string &name) {
  std::string text = "\"";
  for (char c : name)
    text += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return text + "\"";
}

std::string jsonNumber(double value) {
  return std::isfinite(value) ? numberText(value) : "null";
}

} // namespace

Log::~Log() {
  if (file_)
    std::fclose(file_);
}

Status Log::open(const std::string &path, bool append,
                 std::optional<double> rate) {
  path_ = path;
  if (rate && std::isfinite(*rate))
    rate_ = ", \"lr\": " + roundedText(*rate);
  file_ = std::fopen(path.c_str(), append ? "ae" : "we");
  return file_ ? Status::success() : failed();
}

void Log::step(int64_t epoch, int64_t steps, const runtime::Tensor &loss,
               double seconds) {
  if (!file_)
    return;
  bool finite = std::isfinite(loss.at(0));
  std::fprintf(file_,
               "{\"epoch\": %lld, \"step\": %lld, \"loss\": %s%s, "
               "\"seconds\": %.6f}\n",
               static_cast<long long>(epoch), static_cast<long long>(steps),
               finite ? scalarText(loss).c_str() : "null", rate_.c_str(),
               seconds);
}

void Log::evaluation(int64_t epoch, int64_t steps, const Evaluation &evaluation,
                     double seconds) {
  if (!file_)
    return;
  std::string outputs;
  for (const Mean &mean : evaluation.means)
    outputs += (outputs.empty() ? "" : ", ") + jsonText(mean.name) + ": " +
               jsonNumber(mean.value);
  if (!outputs.empty())
    outputs = ", \"outputs\": {" + outputs + "}";
  if (const auto &accuracy = evaluation.accuracy)
    outputs += ", \"accuracy\": " + jsonNumber(double(accuracy->right()) /
                                               double(accuracy->counted()));
  std::fprintf(file_,
               "{\"epoch\": %lld, \"step\": %lld, \"eval\": {\"rows\": "
               "%lld%s}, \"seconds\": %.6f}\n",
               static_cast<long long>(epoch), static_cast<long long>(steps),
               static_cast<long long>(evaluation.rows), outputs.c_str(),
               seconds);
}

Status Log::close() {
  if (!file_)
    return Status::success();
  bool lost = std::ferror(file_) != 0;
  lost |= std::fclose(std::exchange(file_, nullptr)) != 0;
  return lost ? failed() : Status::success();
}

Status Log::failed() const {
  return Status::failed("cannot write '" + path_ +
                        "': " + std::strerror(errno));
}

} // namespace tandem::commands
