//===- Tar.cpp - the files in a tar archive -------------------------------===//
//
// POSIX.1-2017, pax: "ustar Interchange Format" and "pax Interchange Format";
// GNU tar's manual, "Basic Tar Format".
//
//===----------------------------------------------------------------------===//
#include "runtime/io/Tar.h"

#include <algorithm>
#include <charconv>

namespace tandem::io {
namespace {

constexpr int64_t block = 512;
constexpr int64_t mostText = int64_t(1) << 20; ///< bytes of a long header

/// A field of fixed width up to its first zero byte.
std::string_view field(std::string_view header, size_t first, size_t width) {
  std::string_view text = header.substr(first, width);
  return text.substr(0, text.find('\0'));
}

/// An octal number, with blanks around it, or GNU's 0x80 and base 256.
std::optional<int64_t> number(std::string_view header, size_t first,
                              size_t width) {
  std::string_view text = header.substr(first, width);
  if (static_cast<unsigned char>(text[0]) == 0x80) {
    uint64_t value = 0;
    for (char c : text.substr(1)) {
      if (value >> 55)
        return std::nullopt;
      value = value << 8 | static_cast<unsigned char>(c);
    }
    return int64_t(value);
  }
  text = text.substr(0, text.find('\0'));
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  while (text.ends_with(' '))
    text.remove_suffix(1);
  int64_t value = 0;
  if (text.empty())
    return value;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, 8);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    return std::nullopt;
  return value;
}

bool isZero(Bytes bytes) {
  return std::ranges::all_of(bytes,
                             [](std::byte b) { return b == std::byte(); });
}

/// The sum of the bytes, those of the sum itself as blanks.
int64_t sumOf(std::string_view header) {
  int64_t sum = 0;
  for (size_t i = 0; i < header.size(); ++i)
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(header[i]);
  return sum;
}

} // namespace

struct TarReader::Header {
  std::string name;
  int64_t size = 0; ///< of what lies behind it
  char type = '0';
};

std::string TarReader::at() const {
  return "at byte " + std::to_string(place_) + ": ";
}

/// Behind the end there is nothing but zeros: two archives, one behind the
/// other, would lose the second one.
Status TarReader::checkEnd() {
  std::vector<std::byte> bytes(size_t(64) << 10);
  for (int64_t at = place_; at < size_;) {
    auto piece = std::span(bytes).first(
        size_t(std::min(int64_t(bytes.size()), size_ - at)));
    if (Status status = read_(at, piece); !status)
      return status;
    if (!isZero(piece))
      return Status::usage("at byte " + std::to_string(at) +
                           ": something follows the end of the archive");
    at += int64_t(piece.size());
  }
  return Status::success();
}

/// Reads one block and goes behind it.
Status TarReader::readHeader(Header &header, bool &isEnd) {
  if (size_ - place_ < block)
    return Status::usage(at() + "the archive is cut off: it has no end");
  std::byte bytes[block];
  if (Status status = read_(place_, bytes); !status)
    return status;
  isEnd = isZero(bytes);
  if (isEnd) {
    isOver_ = true;
    return checkEnd();
  }
  std::string_view text = asText(bytes);
  auto sum = number(text, 148, 8);
  if (!sum || *sum != sumOf(text))
    return Status::usage(at() + "expected a header of tar, but its sum is "
                                "another one");
  auto size = number(text, 124, 12);
  if (!size)
    return Status::usage(at() + "expected a size but got none");
  header.name = field(text, 0, 100);
  // GNU has other things there.
  if (text.substr(257, 6) == std::string_view("ustar\0", 6))
    if (std::string_view prefix = field(text, 345, 155); !prefix.empty())
      header.name = std::string(prefix) + "/" + header.name;
  header.type = text[156] ? text[156] : '0';
  header.size = *size;
  // Links, folders, devices and pipes have no bytes, whatever is said.
  if (header.type >= '1' && header.type <= '6')
    header.size = 0;
  return Status::success();
}

Result<std::string> TarReader::readText(const Header &header) {
  if (header.size > mostText)
    return Status::usage(at() + "expected a long header of at most " +
                         std::to_string(mostText) + " bytes but got " +
                         std::to_string(header.size));
  std::string text(size_t(header.size), '\0');
  if (Status status = read_(place_, std::as_writable_bytes(std::span(text)));
      !status)
    return status;
  return text;
}

/// "LENGTH KEY=VALUE\n" of the file that follows.
Status TarReader::readPax(const Header &header) {
  auto all = readText(header);
  if (!all)
    return std::move(all).status();
  auto wrong = [&](const char *what) { return Status::usage(at() + what); };
  for (std::string_view left = *all; !left.empty();) {
    size_t length = 0;
    auto [end, error] =
        std::from_chars(left.data(), left.data() + left.size(), length);
    auto digits = size_t(end - left.data());
    if (error != std::errc() || length > left.size() || length < digits + 3 ||
        left[digits] != ' ' || left[length - 1] != '\n')
      return wrong("expected 'LENGTH KEY=VALUE' in a pax header");
    std::string_view record = left.substr(digits + 1, length - digits - 2);
    left.remove_prefix(length);
    size_t equals = record.find('=');
    if (equals == record.npos)
      return wrong("expected 'KEY=VALUE' in a pax header");
    std::string_view key = record.substr(0, equals),
                     value = record.substr(equals + 1);
    if (key.starts_with("GNU.sparse"))
      return Status::unsupported(at() + "a file with holes in it (sparse)");
    if (key != "path" && key != "size")
      continue;
    // What is said of all files, names nobody.
    if (header.type == 'g')
      return wrong("a path or size of all files");
    if (key == "path") {
      if (value.empty() || value.find('\0') != value.npos)
        return wrong("expected a path in a pax header");
      longName_ = std::string(value);
      continue;
    }
    int64_t size = 0;
    auto [stop, failure] =
        std::from_chars(value.data(), value.data() + value.size(), size);
    if (failure != std::errc() || stop != value.data() + value.size() ||
        size < 0)
      return wrong("expected a size in a pax header");
    longSize_ = size;
  }
  return Status::success();
}

Result<std::optional<TarMember>> TarReader::next() {
  while (!isOver_) {
    Header header;
    bool isEnd = false;
    if (Status status = readHeader(header, isEnd); !status)
      return status;
    if (isEnd) {
      if (longName_ || longSize_)
        return Status::usage(at() + "expected a file behind its long header");
      break;
    }
    bool isLong = header.type == 'x' || header.type == 'g' ||
                  header.type == 'L' || header.type == 'K';
    bool hasBytes = header.type == '0' || header.type == '7';
    if (longSize_ && hasBytes)
      header.size = *longSize_;
    place_ += block;
    if (header.size > size_ - place_)
      return Status::usage(at() + inQuotes(longName_.value_or(header.name)) +
                           " has " + std::to_string(header.size) +
                           " bytes, but the archive is cut off after " +
                           std::to_string(size_ - place_));
    TarMember member;
    member.name = longName_.value_or(header.name);
    member.offset = place_;
    member.size = header.size;
    if (header.type == 'L') {
      auto name = readText(header);
      if (!name)
        return std::move(name).status();
      longName_ = name->substr(0, name->find('\0'));
    } else if (header.type == 'x' || header.type == 'g') {
      if (Status status = readPax(header); !status)
        return status;
    }
    if (header.type == 'S' || header.type == 'M')
      return Status::unsupported(
          at() + inQuotes(member.name) +
          (header.type == 'S' ? ": a file with holes in it (sparse)"
                              : ": a file that goes on in another archive"));
    // 'D' and 'V' are folders and titles of GNU's.
    if (!isLong && !(header.type >= '0' && header.type <= '7') &&
        header.type != 'D' && header.type != 'V')
      return Status::usage(at() + inQuotes(member.name) +
                           " is of no type that is known");
    // The last block may end with the archive.
    place_ +=
        std::min((header.size + block - 1) / block * block, size_ - place_);
    if (isLong)
      continue;
    longName_.reset();
    longSize_.reset();
    member.isLink = header.type == '1' || header.type == '2';
    member.isSpecial =
        header.type == '3' || header.type == '4' || header.type == '6';
    if (hasBytes || member.isLink || member.isSpecial)
      return std::optional(std::move(member));
  }
  return std::optional<TarMember>();
}

} // namespace tandem::io
