//===- Safetensors.cpp - named tensors in one file ------------------------===//
//
// The header goes through nlohmann-json, with a callback that sees repeated
// keys, which the document alone would hide. Everything wrong with the entries
// is reported at once.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/Safetensors.h"

#include "runtime/artifact/AtomicFile.h"
#include "runtime/artifact/JsonText.h"
#include "runtime/io/Foreign.h"
#include "runtime/io/JsonIntegers.h"

#include <algorithm>
#include <new>

namespace tandem::io {
namespace {

using artifact::DType;
using Json = nlohmann::json;

constexpr std::pair<std::string_view, DType> dtypes[] = {
    {"BOOL", DType::Bool},     {"I8", DType::I8},
    {"U8", DType::U8},         {"I16", DType::I16},
    {"I32", DType::I32},       {"I64", DType::I64},
    {"F16", DType::F16},       {"BF16", DType::BF16},
    {"F32", DType::F32},       {"F64", DType::F64},
    {"U16", DType::U16},       {"U32", DType::U32},
    {"U64", DType::U64},       {"F8_E4M3", DType::F8E4M3FN},
    {"F8_E5M2", DType::F8E5M2}};
constexpr size_t longestHeader = 100'000'000; // the format's own limit
constexpr size_t mostProblems = 20;

/// What is wrong with a file, as one message.
class Problems {
public:
  void add(const std::string &problem, Code code = Code::Failed) {
    if (++count_ <= mostProblems)
      text_ += (text_.empty() ? "" : "; ") + problem;
    // A file that is wrong is not merely unsupported.
    if (code_ == Code::Ok || code == Code::Failed)
      code_ = code;
  }
  bool none() const { return count_ == 0; }
  Status status() const {
    return {code_,
            text_ + (count_ > mostProblems
                         ? "; and " + std::to_string(count_ - mostProblems) +
                               " more"
                         : "")};
  }

private:
  std::string text_;
  size_t count_ = 0;
  Code code_ = Code::Ok;
};

/// Parses `text`, the header that begins at byte 8 of the file.
Result<artifact::JsonDocument<Json>> parseHeader(std::string_view text) {
  // Lists and objects of a header lie in one another at most 3 deep.
  artifact::JsonDocument<Json> header;
  if (auto problem = artifact::parseJsonText(text, header.json, {.depth = 8}))
    return Status::failed(problem->byte ? "header is not JSON: error at byte " +
                                              std::to_string(8 + problem->byte)
                                        : "header: " + problem->what);
  if (!header.json.is_object())
    return Status::failed("expected the header to be a JSON object");
  return header;
}

} // namespace

std::optional<std::vector<int64_t>> integers(const Json &list) {
  if (!list.is_array())
    return std::nullopt;
  std::vector<int64_t> result;
  for (const Json &item : list) {
    if (!item.is_number_unsigned() ||
        item.get<uint64_t>() > uint64_t(INT64_MAX))
      return std::nullopt;
    result.push_back(item.get<int64_t>());
  }
  return result;
}

namespace {

/// Reads and checks one entry; `dataBytes` follow the header at `dataStart`.
std::optional<Safetensors::Entry> readEntry(const std::string &name,
                                            const Json &json, size_t dataStart,
                                            size_t dataBytes,
                                            Problems &problems) {
  std::string who = "tensor " + inQuotes(name);
  auto fail = [&](const std::string &what, Code code = Code::Failed) {
    problems.add(who + " " + what, code);
    return std::nullopt;
  };
  if (!json.is_object() || !json.contains("dtype") ||
      !json["dtype"].is_string() || !json.contains("shape") ||
      !json.contains("data_offsets"))
    return fail("expected an object with 'dtype', 'shape', 'data_offsets'");
  const auto &dtypeName = json["dtype"].get_ref<const std::string &>();
  auto shape = integers(json["shape"]);
  auto offsets = integers(json["data_offsets"]);
  if (!shape)
    return fail("expected 'shape' to be a list of non-negative integers");
  if (!offsets || offsets->size() != 2)
    return fail("expected 'data_offsets' to be two non-negative integers");
  const auto *dtype =
      std::find_if(std::begin(dtypes), std::end(dtypes),
                   [&](auto &d) { return d.first == dtypeName; });
  if (dtype == std::end(dtypes))
    return fail("has elements of type " + inQuotes(dtypeName) +
                    "; expected one of BOOL, I8, U8, I16, I32, I64, F16, BF16, "
                    "F32, F64, U16, U32, U64, F8_E4M3, F8_E5M2",
                Code::Unsupported);
  auto begin = uint64_t((*offsets)[0]), end = uint64_t((*offsets)[1]);
  if (begin > end || end > dataBytes)
    return fail("has offsets [" + std::to_string(begin) + ", " +
                std::to_string(end) + "] outside the data of " +
                std::to_string(dataBytes) + " bytes");
  auto count = elementCount(*shape);
  if (!count || uint64_t(*count * byteSize(dtype->second)) != end - begin)
    return fail("expected " +
                (count ? std::to_string(*count * byteSize(dtype->second))
                       : std::string("more than 2^62")) +
                " bytes for " + std::string(spelling(dtype->second)) + " " +
                shapeText(*shape) + " but got " + std::to_string(end - begin));
  return Safetensors::Entry{dtype->second, std::move(*shape), dataStart + begin,
                            end - begin};
}

/// Checks that the entries cover the data without overlap or hole.
void checkCover(const std::map<std::string, Safetensors::Entry> &entries,
                size_t dataStart, size_t fileBytes, Problems &problems) {
  std::vector<std::tuple<size_t, size_t, std::string>> ranges;
  for (const auto &[name, entry] : entries)
    ranges.emplace_back(entry.offset, entry.offset + entry.bytes, name);
  std::sort(ranges.begin(), ranges.end());
  size_t at = dataStart;
  std::string last;
  for (const auto &[begin, end, name] : ranges) {
    if (begin < at)
      problems.add("tensors " + inQuotes(last) + " and " + inQuotes(name) +
                   " overlap");
    else if (begin > at)
      problems.add("bytes " + std::to_string(at) + " to " +
                   std::to_string(begin) + " belong to no tensor");
    if (end >= at) {
      at = end;
      last = name;
    }
  }
  if (at < fileBytes)
    problems.add("bytes " + std::to_string(at) + " to " +
                 std::to_string(fileBytes) + " belong to no tensor");
}

} // namespace

Result<Safetensors> Safetensors::parse(std::vector<std::byte> file) {
  return parse(SharedBytes(std::move(file)));
}

Result<Safetensors> Safetensors::parse(SharedBytes shared) {
  Bytes file = shared.bytes;
  if (file.size() < 8)
    return Status::failed("not a safetensors file: expected at least 8 bytes "
                          "but got " +
                          std::to_string(file.size()));
  auto length = loadInteger<uint64_t>(file, 0);
  if (length > longestHeader || length > file.size() - 8)
    return Status::failed(
        "not a safetensors file, or cut short: expected a header of " +
        std::to_string(length) + " bytes but got " +
        std::to_string(file.size() - 8) + adviceFor(file));
  std::string_view text = asText(file.subspan(8, length));
  if (!text.starts_with('{'))
    return Status::failed("not a safetensors file: expected '{' at byte 8");
  auto header = parseHeader(text);
  if (!header)
    return std::move(header).status();

  Safetensors result;
  Problems problems;
  size_t dataStart = 8 + length;
  for (const auto &[name, json] : header->json.items()) {
    if (name == "__metadata__") {
      if (!json.is_object())
        problems.add("expected '__metadata__' to be an object");
      else
        for (const auto &[key, value] : json.items())
          if (value.is_string())
            result.metadata_[key] = value.get<std::string>();
          else
            problems.add("expected metadata " + inQuotes(key) +
                         " to be a string");
      continue;
    }
    auto entry =
        readEntry(name, json, dataStart, file.size() - dataStart, problems);
    if (entry)
      result.entries_.emplace(name, std::move(*entry));
  }
  // Holes are only meaningful once every entry is known.
  if (problems.none())
    checkCover(result.entries_, dataStart, file.size(), problems);
  if (!problems.none())
    return problems.status();
  for (const auto &[name, entry] : result.entries_) {
    if (entry.dtype != DType::Bool)
      continue;
    for (size_t i = entry.offset; i < entry.offset + entry.bytes; ++i)
      if (uint8_t(file[i]) > 1)
        return Status::failed("tensor " + inQuotes(name) + ": byte " +
                              std::to_string(i) +
                              " is no bool: expected 0 or 1 but got " +
                              std::to_string(uint8_t(file[i])));
  }
  result.file_ = std::move(shared);
  return result;
}

Result<Safetensors> Safetensors::read(const std::string &path) {
  auto bytes = readFile(path);
  if (!bytes)
    return std::move(bytes).status();
  auto result = parse(*std::move(bytes));
  if (!result)
    return std::move(result).status().in(inQuotes(path));
  return result;
}

Result<Safetensors> Safetensors::map(const std::string &path) {
  auto bytes = mapFile(path);
  if (!bytes)
    return std::move(bytes).status();
  auto result = parse(*std::move(bytes));
  if (!result)
    return std::move(result).status().in(inQuotes(path));
  return result;
}

std::optional<ArrayView> Safetensors::find(const std::string &name) const {
  auto found = entries_.find(name);
  if (found == entries_.end())
    return std::nullopt;
  const Entry &entry = found->second;
  return ArrayView(entry.dtype, entry.shape,
                   file_.bytes.subspan(entry.offset, entry.bytes));
}

/// Names are bytes to us: what is not UTF-8 is replaced, never thrown about.
static std::string quoted(const std::string &text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::byte>
safetensorsHeader(const std::map<std::string, TensorType> &tensors,
                  const std::map<std::string, std::string> &metadata,
                  std::vector<std::string> &order) {
  std::vector<std::pair<int64_t, std::string>> sorted;
  for (const auto &[name, type] : tensors)
    sorted.emplace_back(-byteSize(type.dtype), name);
  std::sort(sorted.begin(), sorted.end());
  // Each member's text by its name. Without a document: what that does when it
  // ends asks for memory, which may be what is out (JsonText.h).
  std::map<std::string, std::string> members;
  if (!metadata.empty()) {
    std::string &text = members["__metadata__"];
    for (const auto &[key, value] : metadata)
      text += (text.empty() ? "{" : ",") + quoted(key) + ":" + quoted(value);
    text += "}";
  }
  size_t offset = 0;
  for (const auto &[size, name] : sorted) {
    const TensorType &one = tensors.at(name);
    std::string_view dtype;
    for (auto [spelled, type] : dtypes)
      if (type == one.dtype)
        dtype = spelled;
    size_t end = offset + size_t(elementCount(one.shape).value_or(0) * -size);
    std::string &text = members[name];
    text = "{\"data_offsets\":[" + std::to_string(offset) + "," +
           std::to_string(end) + "],\"dtype\":\"" + std::string(dtype) +
           "\",\"shape\":[";
    for (size_t i = 0; i < one.shape.size(); ++i)
      text += (i ? "," : "") + std::to_string(one.shape[i]);
    text += "]}";
    offset = end;
    order.push_back(name);
  }
  std::string text = "{";
  for (const auto &[name, member] : members)
    text += (text.size() > 1 ? "," : "") + quoted(name) + ":" + member;
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::vector<std::byte> bytes;
  appendInteger<uint64_t>(bytes, text.size());
  appendText(bytes, text);
  return bytes;
}

Status writeSafetensors(
    const std::string &path, const std::map<std::string, TensorType> &tensors,
    const std::map<std::string, std::string> &metadata,
    const std::function<Status(const std::string &, const TakeBytes &)> &give) {
  if (tensors.count("__metadata__"))
    return Status::usage("cannot write " + inQuotes(path) +
                         ": no tensor can be named '__metadata__'");
  std::vector<std::string> order;
  auto header = safetensorsHeader(tensors, metadata, order);
  auto file = artifact::AtomicFile::create(path);
  if (!file)
    return std::move(file).status();
  auto take = [&](Bytes bytes) {
    return file->write(bytes.data(), bytes.size());
  };
  Status status = take(header);
  for (const std::string &name : order)
    if (status)
      status = give(name, take);
  return status ? file->commit() : status;
}

Status writeSafetensors(const std::string &path,
                        const std::map<std::string, ArrayView> &tensors,
                        const std::map<std::string, std::string> &metadata) {
  std::map<std::string, TensorType> types;
  for (const auto &[name, view] : tensors)
    types[name] = {view.dtype, {view.shape.begin(), view.shape.end()}};
  return writeSafetensors(path, types, metadata,
                          [&](const std::string &name, const TakeBytes &take) {
                            return take(tensors.at(name).bytes);
                          });
}

} // namespace tandem::io
