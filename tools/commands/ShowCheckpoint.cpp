//===- ShowCheckpoint.cpp - what is in a safetensors file -----------------===//
#include "runtime/artifact/Text.h"
#include "runtime/io/Elements.h"
#include "runtime/io/FileKind.h"
#include "runtime/io/Safetensors.h"
#include "tools/commands/Print.h"
#include "tools/commands/Show.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace tandem::commands {
namespace {

using io::Safetensors;

int64_t notFinite(const io::ArrayView &tensor) {
  int64_t count = 0, elements = 1;
  for (int64_t size : tensor.shape)
    elements *= size;
  for (int64_t i = 0; i < elements; ++i)
    count += !std::isfinite(
        io::elementAsDouble(tensor.dtype, tensor.bytes.data(), i));
  return count;
}

/// "after 2 epochs and 3 steps (25 in all), seed 0, ...", or nothing.
std::string trainingText(const std::map<std::string, std::string> &metadata) {
  auto get = [&](const char *key) {
    auto found = metadata.find(std::string("tandem.") + key);
    return found == metadata.end() ? std::string("?")
                                   : artifact::printable(found->second);
  };
  if (!metadata.count("tandem.epoch"))
    return "";
  return "after " + get("epoch") + " epochs and " + get("step") + " steps (" +
         get("total_steps") + " in all) over " + get("rows") +
         " rows in batches of " + get("batch") + ", seed " + get("seed") +
         (get("shuffle") == "0" ? ", not shuffled" : "");
}

void printText(const Safetensors &file) {
  std::string training = trainingText(file.metadata());
  if (!training.empty())
    std::printf("training stands %s\n", training.c_str());
  std::vector<std::vector<std::string>> rows = {
      {"tensor", "type", "bytes", "nan/inf"}};
  int64_t total = 0;
  for (const auto &[name, entry] : file.entries()) {
    auto view = file.find(name);
    total += int64_t(entry.bytes);
    rows.push_back({artifact::printable(name),
                    runtime::describe(entry.dtype, entry.shape),
                    bytesText(int64_t(entry.bytes)),
                    std::to_string(view ? notFinite(*view) : 0)});
  }
  rows.push_back({"total", std::to_string(file.entries().size()) + " tensors",
                  bytesText(total), ""});
  printTable(rows);
  for (const auto &[key, text] : file.metadata())
    std::printf("%s = %s\n", artifact::printable(key).c_str(),
                artifact::printable(text).c_str());
}

void printJson(const Safetensors &file) {
  nlohmann::ordered_json all = {{"kind", "checkpoint"},
                                {"tensors", nlohmann::ordered_json::array()},
                                {"metadata", file.metadata()}};
  for (const auto &[name, entry] : file.entries()) {
    auto view = file.find(name);
    all["tensors"].push_back({{"name", name},
                              {"type", spelling(entry.dtype)},
                              {"shape", entry.shape},
                              {"bytes", entry.bytes},
                              {"not_finite", view ? notFinite(*view) : 0}});
  }
  std::printf("%s\n",
              all.dump(1, ' ', false, nlohmann::json::error_handler_t::replace)
                  .c_str());
}

} // namespace

bool isShownAsCheckpoint(const std::string &path) {
  io::FileKind kind = io::fileKind(path);
  return io::isSafetensors(kind) ||
         (path.ends_with(".safetensors") && kind != io::FileKind::Artifact);
}

Status showCheckpoint(const std::string &path, bool asJson) {
  auto file = Safetensors::read(path);
  if (!file)
    return std::move(file).status();
  if (asJson)
    printJson(*file);
  else
    printText(*file);
  return Status::success();
}

} // namespace tandem::commands
