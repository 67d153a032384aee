//===- TensorIndex.cpp - which file has which tensor ----------------------===//
#include "runtime/io/TensorIndex.h"

#include "runtime/artifact/JsonText.h"
#include "runtime/io/JsonIntegers.h"

namespace tandem::io {
namespace {

using Json = nlohmann::json;

/// All pieces of a tensor are compared with each other.
constexpr size_t mostPieces = 1 << 14;

Status wrong(const std::string &what) { return Status::failed(what); }

/// Returns member `name` of an object, or null.
const Json &member(const Json &json, const char *name) {
  static const Json none;
  auto found = json.is_object() ? json.find(name) : json.end();
  return json.is_object() && found != json.end() ? *found : none;
}

/// A file lies beside its index.
bool isFileName(const Json &json) {
  if (!json.is_string())
    return false;
  const auto &name = json.get_ref<const std::string &>();
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == name.npos;
}

Status readFiles(const Json &json, TensorIndex &index) {
  if (json.is_null())
    return Status::success();
  if (!json.is_object())
    return wrong("expected 'files' to be an object");
  for (const auto &[name, one] : json.items()) {
    const Json &bytes = member(one, "bytes"),
               &checksums = member(one, "checksums");
    if (!isFileName(name) || !bytes.is_number_unsigned() ||
        bytes.get<uint64_t>() > uint64_t(INT64_MAX) || !checksums.is_object())
      return wrong("file " + inQuotes(name) +
                   ": expected the name of a file of the same folder, with "
                   "'bytes' and 'checksums'");
    TensorIndex::File &file = index.files[name];
    file.bytes = bytes.get<int64_t>();
    for (const auto &[tensor, checksum] : checksums.items()) {
      if (!checksum.is_number_unsigned() ||
          checksum.get<uint64_t>() > UINT32_MAX)
        return wrong("file " + inQuotes(name) + ": the checksum of " +
                     inQuotes(tensor) + " is no number of 32 bits");
      file.checksums[tensor] = checksum.get<uint32_t>();
    }
  }
  return Status::success();
}

/// Reads a piece; its block lies inside of `shape`.
Result<TensorIndex::Piece> readPiece(const Json &json,
                                     std::span<const int64_t> shape) {
  auto begin = integers(member(json, "begin")),
       sizes = integers(member(json, "shape"));
  const Json &file = member(json, "file"), &name = member(json, "name");
  if (!isFileName(file) || !name.is_string() || !begin || !sizes)
    return wrong("expected a piece to have 'file', of the same folder, 'name', "
                 "'begin' and 'shape'");
  bool isInside =
      begin->size() == shape.size() && sizes->size() == shape.size();
  for (size_t d = 0; isInside && d < shape.size(); ++d)
    isInside = (*begin)[d] <= shape[d] && (*sizes)[d] <= shape[d] - (*begin)[d];
  if (!isInside)
    return wrong("the piece at " + shapeText(*begin) + " of " +
                 shapeText(*sizes) + " is not inside of " + shapeText(shape));
  return TensorIndex::Piece{file.get<std::string>(), name.get<std::string>(),
                            *std::move(begin), *std::move(sizes)};
}

Status readTensors(const Json &json, TensorIndex &index) {
  if (json.is_null())
    return Status::success();
  if (!json.is_object())
    return wrong("expected 'tensors' to be an object");
  for (const auto &[name, one] : json.items()) {
    auto fail = [&](const std::string &what) {
      return wrong("tensor " + inQuotes(name) + ": " + what);
    };
    auto shape = integers(member(one, "shape"));
    const Json &pieces = member(one, "pieces");
    if (!shape || !elementCount(*shape) || !pieces.is_array() ||
        pieces.size() > mostPieces)
      return fail("expected 'shape', and at most " +
                  std::to_string(mostPieces) + " 'pieces'");
    if (index.weightMap.contains(name))
      return fail("is in 'weight_map' as well");
    TensorIndex::Cut &cut = index.cut[name];
    for (const Json &piece : pieces) {
      auto read = readPiece(piece, *shape);
      if (!read)
        return fail(read.status().message());
      cut.pieces.push_back(*std::move(read));
    }
    cut.shape = *std::move(shape);
  }
  return Status::success();
}

} // namespace

Result<TensorIndex> TensorIndex::parse(std::string_view text) {
  artifact::JsonDocument<Json> document;
  const Json &json = document.json;
  if (auto problem =
          artifact::parseJsonText(text, document.json, {.depth = 16}))
    return wrong(
        "not an index of tensors: " + problem->what +
        (problem->byte ? " at byte " + std::to_string(problem->byte) : ""));
  TensorIndex index;
  const Json &weightMap = member(json, "weight_map");
  if (!weightMap.is_object())
    return wrong("not an index of tensors: expected an object 'weight_map'");
  for (const auto &[name, file] : weightMap.items()) {
    if (!isFileName(file))
      return wrong("tensor " + inQuotes(name) +
                   ": expected the name of a file of the same folder");
    index.weightMap[name] = file.get<std::string>();
  }
  const Json none = Json::object(), &metadata = member(json, "metadata");
  for (const auto &[key, value] :
       (metadata.is_object() ? metadata : none).items()) {
    if (key != "total_size")
      index.metadata[key] =
          value.is_string() ? value.get<std::string>() : value.dump();
    else if (value.is_number_unsigned() &&
             value.get<uint64_t>() <= uint64_t(INT64_MAX))
      index.totalSize = value.get<int64_t>();
  }
  const Json &own = member(json, "tandem");
  if (Status status = readFiles(member(own, "files"), index); !status)
    return status;
  if (Status status = readTensors(member(own, "tensors"), index); !status)
    return status;
  return index;
}

std::string TensorIndex::text() const {
  // Without lists of values in braces, which JsonDocument does not reach.
  artifact::JsonDocument<Json> document;
  Json &json = document.json, &own = json["tandem"];
  json["metadata"] = metadata;
  json["metadata"]["total_size"] = totalSize;
  json["weight_map"] = weightMap;
  own["files"] = Json::object();
  for (const auto &[name, file] : files) {
    Json &one = own["files"][name];
    one["bytes"] = file.bytes;
    one["checksums"] = file.checksums;
  }
  own["tensors"] = Json::object();
  for (const auto &[name, tensor] : cut) {
    Json &one = own["tensors"][name], &pieces = one["pieces"];
    one["shape"] = tensor.shape;
    pieces = Json::array();
    for (const Piece &piece : tensor.pieces) {
      Json &place = pieces.emplace_back();
      place["file"] = piece.file;
      place["name"] = piece.name;
      place["begin"] = piece.begin;
      place["shape"] = piece.shape;
    }
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void TensorIndex::add(TensorIndex other) {
  totalSize += other.totalSize;
  metadata.merge(other.metadata);
  weightMap.merge(other.weightMap);
  files.merge(other.files);
  for (auto &[name, one] : other.cut) {
    Cut &mine = cut[name];
    mine.shape = one.shape;
    mine.pieces.insert(mine.pieces.end(), one.pieces.begin(), one.pieces.end());
  }
}

bool isIndexName(std::string_view path) {
  return path.ends_with(".safetensors.index.json");
}

bool isIndexText(Bytes begin) {
  // A safetensors file begins with a number that is far below 2^56.
  std::string_view text =
      asText(begin.first(std::min<size_t>(8, begin.size())));
  size_t word = text.find_first_not_of(" \t\r\n");
  return word != text.npos && text[word] == '{' && text.find('\0') == text.npos;
}

bool covers(std::span<const int64_t> shape,
            std::span<const TensorIndex::Piece> pieces, std::string &problem) {
  // Disjoint blocks inside of it with as many elements as it has.
  int64_t left = elementCount(shape).value_or(0);
  for (size_t i = 0; i < pieces.size(); ++i) {
    int64_t elements = elementCount(pieces[i].shape).value_or(0);
    if (elements == 0)
      continue;
    for (size_t j = 0; j < i; ++j) {
      bool apart = false;
      for (size_t d = 0; d < shape.size(); ++d) {
        int64_t a = pieces[i].begin[d], b = pieces[j].begin[d];
        apart |= a >= b + pieces[j].shape[d] || b >= a + pieces[i].shape[d];
      }
      if (!apart) {
        problem = "the pieces " + inQuotes(pieces[j].name) + " of " +
                  inQuotes(pieces[j].file) + " and " +
                  inQuotes(pieces[i].name) + " of " + inQuotes(pieces[i].file) +
                  " overlap";
        return false;
      }
    }
    left -= elements;
  }
  if (left)
    problem = "its pieces lack " + std::to_string(left) + " of its elements";
  return left == 0;
}

} // namespace tandem::io
