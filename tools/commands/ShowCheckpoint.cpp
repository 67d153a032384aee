//===- ShowCheckpoint.cpp - what is in a safetensors file -----------------===//
#include "runtime/artifact/Text.h"
#include "runtime/io/Elements.h"
#include "runtime/io/FileKind.h"
#include "runtime/io/TensorFiles.h"
#include "tools/commands/Print.h"
#include "tools/commands/Show.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace tandem::commands {
namespace {

using io::TensorFiles;

int64_t notFinite(const TensorFiles::Entry &entry) {
  int64_t count = 0, size = byteSize(entry.dtype);
  for (const TensorFiles::Piece &piece : entry.pieces)
    for (size_t at = 0; at < piece.bytes.size(); at += size_t(size))
      count += !std::isfinite(
          io::elementAsDouble(entry.dtype, piece.bytes.data() + at, 0));
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

void printText(const TensorFiles &files) {
  std::string training = trainingText(files.metadata());
  if (!training.empty())
    std::printf("training stands %s\n", training.c_str());
  std::vector<std::vector<std::string>> rows = {
      {"tensor", "type", "bytes", "nan/inf"}};
  if (files.isIndex())
    rows[0].push_back("file");
  auto add = [&](std::vector<std::string> row, const std::string &file) {
    if (files.isIndex())
      row.push_back(artifact::printable(file));
    rows.push_back(std::move(row));
  };
  int64_t total = 0;
  for (const auto &[name, entry] : files.entries()) {
    total += entry.bytes();
    bool isCut = entry.pieces.size() > 1;
    add({artifact::printable(name), runtime::describe(entry.dtype, entry.shape),
         bytesText(entry.bytes()), std::to_string(notFinite(entry))},
        isCut ? std::to_string(entry.pieces.size()) + " pieces"
              : entry.pieces[0].place.file);
    for (const TensorFiles::Piece &piece : entry.pieces)
      if (isCut)
        add({"  at " + io::shapeText(piece.place.begin),
             io::shapeText(piece.place.shape),
             bytesText(int64_t(piece.bytes.size())), ""},
            piece.place.file);
  }
  add({"total", std::to_string(files.entries().size()) + " tensors",
       bytesText(total), ""},
      "");
  printTable(rows);
  for (const auto &[key, text] : files.metadata())
    std::printf("%s = %s\n", artifact::printable(key).c_str(),
                artifact::printable(text).c_str());
}

void printJson(const TensorFiles &files) {
  nlohmann::ordered_json all = {{"kind", "checkpoint"},
                                {"tensors", nlohmann::ordered_json::array()},
                                {"metadata", files.metadata()}};
  for (const auto &[name, entry] : files.entries()) {
    nlohmann::ordered_json one = {{"name", name},
                                  {"type", spelling(entry.dtype)},
                                  {"shape", entry.shape},
                                  {"bytes", entry.bytes()},
                                  {"not_finite", notFinite(entry)}};
    if (files.isIndex())
      for (const TensorFiles::Piece &piece : entry.pieces)
        one["pieces"].push_back({{"file", piece.place.file},
                                 {"name", piece.place.name},
                                 {"begin", piece.place.begin},
                                 {"shape", piece.place.shape}});
    all["tensors"].push_back(std::move(one));
  }
  std::printf("%s\n",
              all.dump(1, ' ', false, nlohmann::json::error_handler_t::replace)
                  .c_str());
}

} // namespace

bool isShownAsCheckpoint(const std::string &path) {
  io::FileKind kind = io::fileKind(path);
  return io::isSafetensors(kind) || io::isIndex(kind) ||
         (path.ends_with(".safetensors") && kind != io::FileKind::Artifact);
}

Status showCheckpoint(const std::string &path, bool asJson) {
  auto files = TensorFiles::open(path);
  if (!files)
    return std::move(files).status();
  for (const auto &[name, entry] : files->entries())
    for (const TensorFiles::Piece &piece : entry.pieces)
      if (Status status = TensorFiles::verify(name, piece); !status)
        return std::move(status).in(io::inQuotes(path));
  if (asJson)
    printJson(*files);
  else
    printText(*files);
  return Status::success();
}

} // namespace tandem::commands
