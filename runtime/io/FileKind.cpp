//===- FileKind.cpp - what a file is, by what is in it --------------------===//
//
// Formats with a magic number first, then what is text. ONNX has no magic: it
// is recognized by the fields that its exporters write first.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/FileKind.h"

#include "runtime/artifact/JsonText.h"
#include "runtime/io/File.h"
#include "runtime/io/Npz.h"
#include "runtime/io/Safetensors.h"

#include <algorithm>
#include <optional>
#include <sys/stat.h>

namespace tandem::io {
namespace {

using Document = artifact::JsonDocument<nlohmann::json>;

constexpr size_t looked = size_t(1) << 18;

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

/// The header of a safetensors file, if `begin` is that of one.
std::optional<Document> safetensorsHeader(const std::string &path,
                                          std::string_view begin,
                                          uint64_t size) {
  if (begin.size() < 10 || begin[8] != '{')
    return std::nullopt;
  auto length =
      loadInteger<uint64_t>(std::as_bytes(std::span(begin.substr(0, 8))), 0);
  if (length > 100'000'000 || length > size - 8)
    return std::nullopt;
  auto bytes = readBegin(path, 8 + size_t(length));
  if (!bytes || bytes->size() != 8 + length)
    return std::nullopt;
  Document header;
  if (artifact::parseJsonText(asText(*bytes).substr(8), header.json) ||
      !header.json.is_object())
    return std::nullopt;
  return header;
}

FileKind kindOfSafetensors(const nlohmann::json &header) {
  auto metadata = header.find("__metadata__");
  if (metadata != header.end() && metadata->is_object()) {
    if (metadata->contains(checkpointKey))
      return FileKind::Checkpoint;
    if (metadata->contains(initialValuesKey))
      return FileKind::InitialValues;
  }
  return FileKind::Safetensors;
}

/// A zip archive whose first member is an array.
bool isNpz(std::string_view begin) {
  constexpr size_t header = 30;
  if (!begin.starts_with("PK\3\4") || begin.size() < header)
    return false;
  auto length = size_t(
      loadInteger<uint16_t>(std::as_bytes(std::span(begin.substr(26, 2))), 0));
  return begin.substr(header, length).ends_with(".npy");
}

/// 64 bytes, not all of which are ASCII.
bool isSignature(std::string_view begin, uint64_t size) {
  return size == 64 && std::any_of(begin.begin(), begin.end(), [](char c) {
           return static_cast<unsigned char>(c) > 126;
         });
}

/// ir_version first, then one of the model's other fields, as all exporters
/// write them.
bool isOnnx(std::string_view begin) {
  return begin.size() > 3 && begin[0] == 8 && begin[1] > 0 && begin[1] < 32 &&
         holds("\x12\x1a\x22\x2a\x32\x3a\x42", begin.substr(2, 1));
}

/// Columns' names, then rows of equally many numbers.
bool isCsv(std::string_view text, bool whole) {
  std::optional<long> commas;
  text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  while (!text.empty()) {
    size_t end = text.find('\n');
    if (end == text.npos && !whole)
      break; // a line that was cut
    std::string_view line = text.substr(0, end);
    long count = std::count(line.begin(), line.end(), ',');
    if (line.empty() || (commas && *commas != count) ||
        line.find_first_not_of("0123456789+-.,eEnaiftrus") != line.npos)
      return false;
    commas = count;
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return commas.has_value();
}

/// The first line is a step or an evaluation of a training, or what a loss of
/// power or a full disk left of it.
bool isLog(std::string_view text) {
  constexpr std::string_view begin = "{\"epoch\": ";
  if (text.find('\n') == text.npos &&
      (begin.starts_with(text) || text.starts_with(begin)))
    return true;
  Document first;
  const nlohmann::json &line = first.json;
  return !artifact::parseJsonText(text.substr(0, text.find('\n')),
                                  first.json) &&
         line.is_object() && (line.contains("step") || line.contains("eval")) &&
         !line.contains("format");
}

FileKind kindOfJson(std::string_view text) {
  if (isLog(text))
    return FileKind::Log;
  if (holds(text, "\"total_size\"") || holds(text, "\"weight_map\""))
    return holds(text, std::string("\"") + checkpointKey + "\"")
               ? FileKind::CheckpointIndex
               : FileKind::TensorIndex;
  std::string_view head = text.substr(0, 4096);
  if (holds(head, "\"tandem-graph\""))
    return FileKind::Graph;
  if (holds(head, "\"traceEvents\""))
    return FileKind::Profile;
  if (holds(head, "\"budget\""))
    return FileKind::BudgetCurve;
  if (holds(text, "\"tandem schedules\""))
    return FileKind::Schedules;
  return FileKind::Other;
}

/// Returns where the first line begins that says something.
std::string_view withoutComments(std::string_view text) {
  while (true) {
    size_t word = text.find_first_not_of(" \t\r\n");
    text.remove_prefix(std::min(word, text.size()));
    if (!text.starts_with("//"))
      return text;
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
}

/// True for a module that `compile` wrote: it has the digest of its graph, or
/// is at a phase that nobody begins with.
bool isWrittenModule(std::string_view text) {
  constexpr std::string_view phase = "tandem.phase = ";
  size_t at = text.find(phase);
  return holds(text, "tandem.graph = ") ||
         (at != text.npos &&
          !text.substr(at + phase.size()).starts_with("\"capture\""));
}

FileKind kindOfText(std::string_view text, bool whole) {
  if (text.starts_with(resolvedOptions))
    return FileKind::Options;
  if (text.starts_with(reportBegin))
    return FileKind::Report;
  std::string_view body = withoutComments(text);
  if (body.starts_with('{') || body.starts_with('['))
    return kindOfJson(body);
  if (body.starts_with("<svg") || body.starts_with("<?xml"))
    return holds(body, "<svg") ? FileKind::Svg : FileKind::Other;
  for (std::string_view word : {"module", "\"builtin.module\"",
                                "builtin.module", "func.func", "#", "!"})
    if (body.starts_with(word) &&
        (holds(body, "tandem.") || holds(body, "func.func")))
      return isWrittenModule(body) ? FileKind::Module : FileKind::Mlir;
  return isCsv(text, whole) ? FileKind::Csv : FileKind::Other;
}

} // namespace

FileKind fileKind(const std::string &path) {
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0)
    return FileKind::Missing;
  if (!S_ISREG(facts.st_mode))
    return FileKind::Special;
  if (facts.st_size == 0)
    return FileKind::Empty;
  auto bytes = readBegin(path, looked);
  if (!bytes)
    return FileKind::Other;
  std::string_view begin = asText(*bytes);
  auto size = uint64_t(facts.st_size);
  // What a loss of power leaves of a file that was not on disk yet.
  if (begin.size() == size && begin.find_first_not_of('\0') == begin.npos)
    return FileKind::Empty;
  if (begin.starts_with("TANDEM\r\n"))
    return FileKind::Artifact;
  if (begin.starts_with("\x93NUMPY"))
    return FileKind::Npy;
  if (isNpz(begin))
    return FileKind::Npz;
  if (auto header = safetensorsHeader(path, begin, size))
    return kindOfSafetensors(header->json);
  if (isSignature(begin, size))
    return FileKind::Signature;
  if (isOnnx(begin))
    return FileKind::Onnx;
  size_t zero = begin.find('\0');
  FileKind kind = kindOfText(begin.substr(0, zero), begin.size() == size);
  // A loss of power leaves zeros of lines that were not on disk.
  bool growsByLines = kind == FileKind::Log || kind == FileKind::Csv;
  return zero == begin.npos || growsByLines ? kind : FileKind::Other;
}

bool isSafetensors(FileKind kind) {
  return kind == FileKind::Checkpoint || kind == FileKind::InitialValues ||
         kind == FileKind::Safetensors;
}

bool isIndex(FileKind kind) {
  return kind == FileKind::CheckpointIndex || kind == FileKind::TensorIndex;
}

std::string_view describe(FileKind kind) {
  constexpr std::string_view names[] = {"nothing",
                                        "no regular file",
                                        "an empty file",
                                        "an artifact",
                                        "a checkpoint",
                                        "a model's initial values",
                                        "tensors (safetensors)",
                                        "a checkpoint's index",
                                        "an index of tensors (safetensors)",
                                        "an array (npy)",
                                        "arrays (npz)",
                                        "a model in ONNX",
                                        "a module that 'compile' wrote",
                                        "a model in MLIR",
                                        "a model in JSON",
                                        "a training's log",
                                        "a profile",
                                        "a budget curve",
                                        "schedules of '--tune'",
                                        "a picture (svg)",
                                        "a report (html)",
                                        "a table (csv)",
                                        "a training's options",
                                        "a signature",
                                        "a file of another kind"};
  return names[size_t(kind)];
}

std::vector<std::string> arraysIn(const std::string &path) {
  std::vector<std::string> names;
  if (auto file = Safetensors::read(path)) {
    for (const auto &[name, entry] : file->entries())
      names.push_back(name);
  } else if (auto bytes = readFile(path)) {
    if (auto archive = NpzArchive::open(*bytes))
      names = archive->names();
  }
  return names;
}

} // namespace tandem::io
