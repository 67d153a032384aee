//===- Npy.cpp - NumPy's array file ---------------------------------------===//
//
// The format: "\x93NUMPY", major, minor, the header's length (u16 in version 1,
// else u32), a Python dictionary with the keys descr, fortran_order and shape,
// then the elements. The dictionary is scanned by hand: it is a fixed little
// subset of Python's literals.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/Npy.h"

#include "runtime/io/Elements.h"
#include "runtime/io/File.h"
#include "runtime/io/Foreign.h"

#include <algorithm>
#include <charconv>

namespace tandem::io {
namespace {

using artifact::DType;

constexpr std::string_view magic = "\x93NUMPY";
constexpr size_t mostDimensions = 64; // NumPy's own limit
constexpr std::string_view supportedTypes =
    "bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, "
    "float32, float64";

struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortran;
  std::optional<std::vector<int64_t>> shape;
};

/// Scans `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
/// Offsets in messages are those of the file.
class HeaderScanner {
public:
  HeaderScanner(std::string_view text, size_t offset)
      : text_(text), offset_(offset) {}

  Result<Header> scan() {
    Header header;
    if (!take('{'))
      return expected("'{'");
    while (!take('}')) {
      auto key = string();
      if (!key)
        return expected("a key in quotes or '}'");
      if (!take(':'))
        return expected("':'");
      Status status = value(*key, header);
      if (!status)
        return status;
      if (!take(',') && peek() != '}')
        return expected("',' or '}'");
    }
    if (peek() != '\0' || at_ != text_.size())
      return expected("the end of the header");
    std::string missing;
    for (auto [present, name] :
         {std::pair(header.descr.has_value(), "'descr'"),
          std::pair(header.fortran.has_value(), "'fortran_order'"),
          std::pair(header.shape.has_value(), "'shape'")})
      if (!present)
        missing += std::string(missing.empty() ? "" : ", ") + name;
    if (!missing.empty())
      return Status::failed("npy header lacks " + missing);
    return header;
  }

private:
  /// Returns the next character that is no space, or 0 at the end.
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' ||
                                  text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool take(char c) {
    if (peek() != c)
      return false;
    ++at_;
    return true;
  }

  bool takeWord(std::string_view word) {
    peek();
    if (!text_.substr(at_).starts_with(word))
      return false;
    at_ += word.size();
    return true;
  }

  std::optional<std::string> string() {
    char quote = peek();
    if (quote != '\'' && quote != '"')
      return std::nullopt;
    size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos)
      return std::nullopt;
    std::string result(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return result;
  }

  Status value(const std::string &key, Header &header) {
    if ((key == "descr" && header.descr) ||
        (key == "fortran_order" && header.fortran) ||
        (key == "shape" && header.shape))
      return Status::failed("npy header has " + inQuotes(key) + " twice");
    if (key == "descr") {
      if (peek() == '[')
        return Status::unsupported(
            "npy holds records (a structured type); expected one of " +
            std::string(supportedTypes));
      header.descr = string();
      return header.descr ? Status::success() : expected("a type in quotes");
    }
    if (key == "fortran_order") {
      if (takeWord("False"))
        header.fortran = false;
      else if (takeWord("True"))
        header.fortran = true;
      return header.fortran ? Status::success() : expected("True or False");
    }
    if (key == "shape")
      return shape(header.shape.emplace());
    return Status::failed("npy header has the unknown key " + inQuotes(key));
  }

  Status shape(std::vector<int64_t> &result) {
    if (!take('('))
      return expected("'('");
    while (!take(')')) {
      peek();
      int64_t dim = 0;
      const char *end = text_.data() + text_.size();
      auto parsed = std::from_chars(text_.data() + at_, end, dim);
      if (parsed.ec != std::errc() || dim < 0)
        return expected("a dimension between 0 and 2^63 - 1");
      at_ = size_t(parsed.ptr - text_.data());
      take('L'); // a long of Python 2
      result.push_back(dim);
      if (!take(',') && peek() != ')')
        return expected("',' or ')'");
    }
    return Status::success();
  }

  Status expected(const std::string &what) {
    peek();
    std::string got = at_ < text_.size() ? inQuotes(text_.substr(at_, 1))
                                         : std::string("the header's end");
    return Status::failed("malformed npy header at byte " +
                          std::to_string(offset_ + at_) + ": expected " + what +
                          " but got " + got);
  }

  std::string_view text_;
  size_t offset_;
  size_t at_ = 0;
};

struct ElementType {
  DType dtype;
  bool swapped;
};

/// Returns the type for a `descr` such as "<f4".
Result<ElementType> parseDescr(const std::string &descr) {
  constexpr std::pair<std::string_view, DType> types[] = {
      {"b1", DType::Bool}, {"i1", DType::I8},  {"u1", DType::U8},
      {"i2", DType::I16},  {"i4", DType::I32}, {"i8", DType::I64},
      {"u2", DType::U16},  {"u4", DType::U32}, {"u8", DType::U64},
      {"f2", DType::F16},  {"f4", DType::F32}, {"f8", DType::F64}};
  std::string_view text = descr;
  bool swapped = text.starts_with('>');
  if (!text.empty() &&
      std::string_view("<>|=").find(text[0]) != std::string_view::npos)
    text.remove_prefix(1);
  for (auto [name, dtype] : types)
    if (text == name)
      return ElementType{dtype, swapped && byteSize(dtype) > 1};
  return Status::unsupported("npy has elements of type " + inQuotes(descr) +
                             "; expected one of " +
                             std::string(supportedTypes));
}

void swapElements(std::vector<std::byte> &bytes, size_t size) {
  for (size_t i = 0; i + size <= bytes.size(); i += size)
    std::reverse(bytes.begin() + long(i), bytes.begin() + long(i + size));
}

/// Returns the elements of a column-major array in row-major order.
std::vector<std::byte> rowMajor(Bytes data, std::span<const int64_t> shape,
                                size_t size) {
  std::vector<std::byte> result(data.size());
  std::vector<size_t> stride(shape.size()), index(shape.size(), 0);
  for (size_t i = 0, next = size; i < shape.size(); ++i) {
    stride[i] = next;
    next *= size_t(shape[i]);
  }
  size_t from = 0;
  for (size_t to = 0; to < result.size(); to += size) {
    std::memcpy(&result[to], &data[from], size);
    for (size_t i = shape.size(); i-- > 0;) {
      from += stride[i];
      if (++index[i] < size_t(shape[i]))
        break;
      from -= stride[i] * index[i];
      index[i] = 0;
    }
  }
  return result;
}

Status checkBools(Bytes data, size_t offset) {
  for (size_t i = 0; i < data.size(); ++i)
    if (uint8_t(data[i]) > 1)
      return Status::failed("byte " + std::to_string(offset + i) +
                            " is no bool: expected 0 or 1 but got " +
                            std::to_string(uint8_t(data[i])));
  return Status::success();
}

} // namespace

Result<NpyHeader> parseNpyHeader(Bytes file, uint64_t fileBytes) {
  std::string_view text = asText(file);
  if (!text.starts_with(magic))
    return Status::failed(
        "not an npy file: expected it to begin with "
        "'\\x93NUMPY' but got " +
        (text.empty() ? std::string("an empty file")
                      : inQuotes(text.substr(0, 6)) + adviceFor(file)));
  if (file.size() < 10)
    return Status::failed("npy file is cut short: expected at least 10 bytes "
                          "but got " +
                          std::to_string(file.size()));
  auto major = uint8_t(file[6]), minor = uint8_t(file[7]);
  if (major < 1 || major > 3 || minor != 0)
    return Status::unsupported("npy has version " + std::to_string(major) +
                               "." + std::to_string(minor) +
                               "; expected 1.0, 2.0 or 3.0");
  size_t start = major == 1 ? 10 : 12;
  if (file.size() < start)
    return Status::failed("npy file is cut short: expected at least 12 bytes "
                          "but got " +
                          std::to_string(file.size()));
  size_t length = major == 1 ? size_t(loadInteger<uint16_t>(file, 8))
                             : size_t(loadInteger<uint32_t>(file, 8));
  if (length > file.size() - start)
    return Status::failed("npy file is cut short: expected a header of " +
                          std::to_string(length) + " bytes at byte " +
                          std::to_string(start) + " but got " +
                          std::to_string(file.size() - start));

  auto header = HeaderScanner(text.substr(start, length), start).scan();
  if (!header)
    return std::move(header).status();
  auto type = parseDescr(*header->descr);
  if (!type)
    return std::move(type).status();
  if (header->shape->size() > mostDimensions)
    return Status::unsupported(
        "npy has " + std::to_string(header->shape->size()) +
        " dimensions; expected at most " + std::to_string(mostDimensions));
  auto size = uint64_t(byteSize(type->dtype));
  auto count = elementCount(*header->shape);
  size_t offset = start + length;
  uint64_t data = fileBytes - offset;
  if (!count || data != uint64_t(*count) * size)
    return Status::failed(
        "npy data at byte " + std::to_string(offset) + ": expected " +
        (count ? std::to_string(uint64_t(*count) * size) + " bytes"
               : std::string("more bytes than can be addressed")) +
        " for " + std::string(spelling(type->dtype)) + " " +
        shapeText(*header->shape) + " but got " + std::to_string(data));
  return NpyHeader{type->dtype, std::move(*header->shape), type->swapped,
                   *header->fortran, offset};
}

Result<Array> parseNpy(Bytes file) {
  auto header = parseNpyHeader(file, file.size());
  if (!header)
    return std::move(header).status();
  Bytes data = file.subspan(header->bytes);
  if (header->dtype == DType::Bool)
    if (Status status = checkBools(data, header->bytes); !status)
      return status;
  auto size = size_t(byteSize(header->dtype));
  Array result{header->dtype, std::move(header->shape), {}};
  if (header->isColumnMajor && result.shape.size() > 1)
    result.bytes = rowMajor(data, result.shape, size);
  else
    result.bytes.assign(data.begin(), data.end());
  if (header->isSwapped)
    swapElements(result.bytes, size);
  return result;
}

Result<std::vector<std::byte>> npyHeader(DType dtype,
                                         std::span<const int64_t> shape) {
  constexpr std::string_view descr[] = {"|b1", "|i1", "|u1", "<i2", "<i4",
                                        "<i8", "<f2", "",    "<f4", "<f8",
                                        "<u2", "<u4", "<u8", "",    ""};
  if (!npyHas(dtype))
    return Status::unsupported("npy has no element type " +
                               std::string(spelling(dtype)));
  std::string dims = shapeText(shape);
  dims =
      "(" + dims.substr(1, dims.size() - 2) + (shape.size() == 1 ? ",)" : ")");
  std::string header = "{'descr': '" + std::string(descr[int(dtype)]) +
                       "', 'fortran_order': False, 'shape': " + dims + ", }";
  // The elements begin at a multiple of 64; the last byte before is a newline.
  size_t start = 10;
  if (header.size() + 64 > 65535)
    return Status::unsupported("npy cannot hold an array of " +
                               std::to_string(shape.size()) + " dimensions");
  size_t total = (start + header.size() + 1 + 63) / 64 * 64;
  header.resize(total - start - 1, ' ');
  header += '\n';
  std::vector<std::byte> bytes;
  appendText(bytes, magic);
  appendInteger<uint8_t>(bytes, 1);
  appendInteger<uint8_t>(bytes, 0);
  appendInteger<uint16_t>(bytes, uint16_t(header.size()));
  appendText(bytes, header);
  return bytes;
}

Result<Array> readNpy(const std::string &path) {
  auto bytes = readFile(path);
  if (!bytes)
    return std::move(bytes).status();
  auto array = parseNpy(*bytes);
  if (!array)
    return std::move(array).status().in(inQuotes(path));
  return array;
}

Status writeNpy(const std::string &path, const ArrayView &array) {
  if (!npyHas(array.dtype)) {
    auto wide = convertExactly(array, DType::F32);
    return wide ? writeNpy(path, *wide) : std::move(wide).status();
  }
  auto header = npyHeader(array.dtype, array.shape);
  if (!header)
    return std::move(header).status().in(inQuotes(path));
  const Bytes pieces[] = {*header, array.bytes};
  return replaceFile(path, pieces);
}

} // namespace tandem::io
