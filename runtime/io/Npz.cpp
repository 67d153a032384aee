//===- Npz.cpp - NumPy's archive of arrays --------------------------------===//
//
// The zip format (PKWARE's APPNOTE.TXT, sections 4.3 and 4.5): members, each
// with a local header; the central directory, which alone is believed; and the
// end record, preceded in zip64 by a locator and a record with 64-bit fields.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/Npz.h"

#include "runtime/io/Elements.h"
#include "runtime/io/File.h"
#include "runtime/io/Npy.h"

#include <deque>
#include <limits>
#include <new>
#include <zlib.h>

namespace tandem::io {
namespace {

constexpr uint32_t localMagic = 0x04034b50, centralMagic = 0x02014b50,
                   endMagic = 0x06054b50, end64Magic = 0x06064b50,
                   locatorMagic = 0x07064b50;
constexpr size_t localSize = 30, centralSize = 46, endSize = 22, end64Size = 56,
                 locatorSize = 20;
constexpr uint32_t all32 = 0xffffffff;

bool holds(Bytes file, uint64_t offset, uint64_t bytes) {
  return offset <= file.size() && bytes <= file.size() - offset;
}

Status malformed(uint64_t offset, const std::string &what) {
  return Status::failed("malformed npz at byte " + std::to_string(offset) +
                        ": " + what);
}

uint32_t checksum(Bytes data) {
  uLong crc = crc32(0, nullptr, 0);
  while (!data.empty()) {
    auto chunk = uInt(std::min<size_t>(data.size(), 1 << 30));
    crc = crc32(crc, reinterpret_cast<const Bytef *>(data.data()), chunk);
    data = data.subspan(chunk);
  }
  return uint32_t(crc);
}

/// Returns the offset of the end record: the last one whose comment reaches
/// exactly to the end of the file.
std::optional<size_t> findEnd(Bytes file) {
  for (size_t back = endSize; back <= file.size() && back <= endSize + 65535;
       ++back) {
    size_t at = file.size() - back;
    if (loadInteger<uint32_t>(file, at) == endMagic &&
        loadInteger<uint16_t>(file, at + 20) == back - endSize)
      return at;
  }
  return std::nullopt;
}

/// Replaces, in the order of the format, those of `fields` that say "see the
/// zip64 extra field" by its values; returns whether it had them all.
bool readExtra(Bytes extra, std::initializer_list<uint64_t *> fields) {
  Bytes values;
  for (size_t at = 0; at + 4 <= extra.size();) {
    auto id = loadInteger<uint16_t>(extra, at);
    auto bytes = loadInteger<uint16_t>(extra, at + 2);
    if (!holds(extra, at + 4, bytes))
      break;
    if (id == 1)
      values = extra.subspan(at + 4, bytes);
    at += 4 + size_t(bytes);
  }
  size_t used = 0;
  for (uint64_t *field : fields) {
    if (*field != all32)
      continue;
    if (!holds(values, used, 8))
      return false;
    *field = loadInteger<uint64_t>(values, used);
    used += 8;
  }
  return true;
}

/// Returns the `unpacked` bytes of a deflate stream; or, of one that may have
/// more, the first so many at most.
Result<std::vector<std::byte>> inflateBytes(Bytes packed, uint64_t unpacked,
                                            bool isBegin) try {
  std::vector<std::byte> result(unpacked);
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return Status::failed("not enough memory to unpack it");
  size_t in = 0, out = 0;
  std::byte beyond; // room for the byte that would be one too many
  int code = Z_OK;
  while (code == Z_OK) {
    if (stream.avail_in == 0) {
      size_t chunk = std::min(packed.size() - in, size_t{1} << 30);
      stream.next_in = reinterpret_cast<Bytef *>(
          const_cast<std::byte *>(packed.data() + in));
      stream.avail_in = uInt(chunk);
      in += chunk;
    }
    size_t room = std::min(result.size() - out, size_t{1} << 30);
    if (isBegin && room == 0)
      break;
    std::byte *target = room ? result.data() + out : &beyond;
    stream.next_out = reinterpret_cast<Bytef *>(target);
    stream.avail_out = room ? uInt(room) : 1;
    code = inflate(&stream, Z_NO_FLUSH);
    size_t made = (room ? room : 1) - stream.avail_out;
    out += made;
    if (out > result.size())
      break;
  }
  inflateEnd(&stream);
  if (isBegin) {
    result.resize(out);
    return result;
  }
  if (out > result.size())
    return Status::failed("unpacks to more than the stated " +
                          std::to_string(unpacked) + " bytes");
  if (code != Z_STREAM_END)
    return Status::failed("its deflated data is damaged or cut short");
  if (out < result.size())
    return Status::failed("expected to unpack " + std::to_string(unpacked) +
                          " bytes but got " + std::to_string(out));
  return result;
} catch (const std::bad_alloc &) {
  return Status::failed("not enough memory to unpack its " +
                        std::to_string(unpacked) + " bytes");
}

/// The longest npy header whose array is looked at before it is unpacked; NumPy
/// writes some hundred bytes.
constexpr uint64_t mostHeader = 1 << 17;

} // namespace

Result<NpzArchive> NpzArchive::open(Bytes file) {
  if (file.size() < 4 || !asText(file).starts_with("PK"))
    return Status::failed("not an npz file: expected it to begin with 'PK'");
  auto found = findEnd(file);
  if (!found)
    return Status::failed(
        "not an npz file, or cut short: it has no end-of-archive record");
  size_t end = *found;
  uint64_t count = loadInteger<uint16_t>(file, end + 10);
  uint64_t bytes = loadInteger<uint32_t>(file, end + 12);
  uint64_t offset = loadInteger<uint32_t>(file, end + 16);
  uint64_t limit = end;
  if (count == 0xffff || bytes == all32 || offset == all32) {
    if (end < locatorSize ||
        loadInteger<uint32_t>(file, end - locatorSize) != locatorMagic)
      return malformed(end, "expected a zip64 locator before it");
    limit = loadInteger<uint64_t>(file, end - locatorSize + 8);
    if (!holds(file, limit, end64Size) ||
        loadInteger<uint32_t>(file, limit) != end64Magic)
      return malformed(end - locatorSize,
                       "its zip64 record is not where it says");
    count = loadInteger<uint64_t>(file, limit + 32);
    bytes = loadInteger<uint64_t>(file, limit + 40);
    offset = loadInteger<uint64_t>(file, limit + 48);
  }
  if (offset > limit || bytes > limit - offset)
    return malformed(end, "its directory lies outside the file");
  NpzArchive archive;
  archive.file_ = file;
  if (Status status = archive.readDirectory(count, offset, bytes); !status)
    return status;
  return archive;
}

Status NpzArchive::readDirectory(uint64_t count, uint64_t offset,
                                 uint64_t bytes) {
  Bytes directory = file_.subspan(offset, bytes);
  size_t at = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (!holds(directory, at, centralSize) ||
        loadInteger<uint32_t>(directory, at) != centralMagic)
      return malformed(offset + at, "expected entry " + std::to_string(i + 1) +
                                        " of " + std::to_string(count) +
                                        " of the directory");
    size_t nameSize = loadInteger<uint16_t>(directory, at + 28);
    size_t extraSize = loadInteger<uint16_t>(directory, at + 30);
    size_t commentSize = loadInteger<uint16_t>(directory, at + 32);
    if (!holds(directory, at + centralSize, nameSize + extraSize + commentSize))
      return malformed(offset + at, "a directory entry is cut short");
    Member member = {loadInteger<uint16_t>(directory, at + 8),
                     loadInteger<uint16_t>(directory, at + 10),
                     loadInteger<uint32_t>(directory, at + 16),
                     loadInteger<uint32_t>(directory, at + 20),
                     loadInteger<uint32_t>(directory, at + 24),
                     loadInteger<uint32_t>(directory, at + 42)};
    std::string name(asText(directory.subspan(at + centralSize, nameSize)));
    if (!readExtra(directory.subspan(at + centralSize + nameSize, extraSize),
                   {&member.unpacked, &member.packed, &member.header}))
      return malformed(offset + at,
                       "expected a zip64 extra field for " + inQuotes(name));
    if (name.ends_with(".npy"))
      name.resize(name.size() - 4);
    if (!members_.emplace(name, member).second)
      return malformed(offset + at,
                       "array " + inQuotes(name) + " occurs twice");
    at += centralSize + nameSize + extraSize + commentSize;
  }
  return Status::success();
}

std::vector<std::string> NpzArchive::names() const {
  std::vector<std::string> result;
  for (const auto &[name, member] : members_)
    result.push_back(name);
  return result;
}

Result<Bytes> NpzArchive::packedBytes(const Member &member) const {
  if (member.flags & 1)
    return Status::unsupported("is encrypted; expected a plain npz");
  if (member.method != 0 && member.method != 8)
    return Status::unsupported("is packed by zip method " +
                               std::to_string(member.method) +
                               "; expected 0 (stored) or 8 (deflated)");
  if (!holds(file_, member.header, localSize) ||
      loadInteger<uint32_t>(file_, member.header) != localMagic)
    return Status::failed("expected its header at byte " +
                          std::to_string(member.header));
  uint64_t start = member.header + localSize +
                   loadInteger<uint16_t>(file_, member.header + 26) +
                   loadInteger<uint16_t>(file_, member.header + 28);
  if (!holds(file_, start, member.packed))
    return Status::failed("expected " + std::to_string(member.packed) +
                          " bytes at byte " + std::to_string(start) +
                          " but the file ends before");
  if (member.method == 0 && member.unpacked != member.packed)
    return Status::failed("is stored but states two sizes, " +
                          std::to_string(member.packed) + " and " +
                          std::to_string(member.unpacked));
  // Deflate's best is 258 bytes for 2 bits.
  if (member.unpacked / 1040 > member.packed)
    return Status::failed("states a size, " + std::to_string(member.unpacked) +
                          " bytes, that its data cannot unpack to");
  return file_.subspan(start, member.packed);
}

Result<std::vector<std::byte>>
NpzArchive::unpack(const Member &member, const ArrayCheck &check) const {
  auto packed = packedBytes(member);
  if (!packed)
    return std::move(packed).status();
  auto begin =
      member.method == 0
          ? Result<std::vector<std::byte>>(std::vector<std::byte>())
          : inflateBytes(*packed, std::min(member.unpacked, mostHeader),
                         /*isBegin=*/true);
  if (!begin)
    return begin;
  auto header = parseNpyHeader(member.method == 0 ? *packed : Bytes(*begin),
                               member.unpacked);
  if (!header)
    return std::move(header).status().in("cannot be read");
  if (check)
    if (Status status = check(header->dtype, header->shape); !status)
      return std::move(status).in("was not unpacked");
  std::vector<std::byte> data;
  if (member.method == 0) {
    data.assign(packed->begin(), packed->end());
  } else {
    auto inflated = inflateBytes(*packed, member.unpacked, /*isBegin=*/false);
    if (!inflated)
      return inflated;
    data = *std::move(inflated);
  }
  if (checksum(data) != member.crc)
    return Status::failed("is damaged: its checksum differs");
  return data;
}

Result<Array> NpzArchive::read(const std::string &name,
                               const ArrayCheck &check) const {
  auto found = members_.find(name);
  if (found == members_.end()) {
    std::string present;
    for (const auto &[other, member] : members_)
      present += (present.empty() ? "" : ", ") + inQuotes(other);
    return Status::usage("has no array " + inQuotes(name) + "; it has " +
                         (present.empty() ? "none" : present));
  }
  auto data = unpack(found->second, check);
  if (!data)
    return Status(data.status().code(),
                  "array " + inQuotes(name) + " " + data.status().message());
  auto array = parseNpy(*data);
  if (!array)
    return std::move(array).status().in("array " + inQuotes(name));
  return array;
}

Result<Array> readNpz(const std::string &path, const std::string &member,
                      const std::string &otherwise, const ArrayCheck &check) {
  auto bytes = readFile(path);
  if (!bytes)
    return std::move(bytes).status();
  auto archive = NpzArchive::open(*bytes);
  if (!archive)
    return std::move(archive).status().in(inQuotes(path));
  auto names = archive->names();
  std::string wanted = member.empty() ? otherwise : member;
  if (member.empty() && names.size() == 1)
    wanted = names[0];
  auto array = archive->read(wanted, check);
  if (!array)
    return std::move(array).status().in(inQuotes(path));
  return array;
}

Status writeNpz(const std::string &path,
                const std::map<std::string, ArrayView> &arrays) {
  std::deque<std::vector<std::byte>> owned; // what `pieces` refer to
  std::vector<Bytes> pieces;
  std::vector<std::byte> directory;
  uint64_t offset = 0;
  auto append = [&](Bytes piece) {
    pieces.push_back(piece);
    offset += piece.size();
  };
  constexpr uint16_t version = 45, midnight = 0, newYear1980 = 0x21;

  for (const auto &[key, view] : arrays) {
    ArrayView array = view;
    std::vector<std::byte> wide;
    if (!npyHas(array.dtype)) {
      auto converted = convertExactly(array, artifact::DType::F32);
      if (!converted)
        return std::move(converted).status();
      array.dtype = converted->dtype;
      array.bytes = owned.emplace_back(std::move(converted->bytes));
    }
    auto npy = npyHeader(array.dtype, array.shape);
    if (!npy)
      return std::move(npy).status().in(inQuotes(path));
    std::string name = key + ".npy";
    if (name.size() > 65535)
      return Status::usage("array name " + inQuotes(name) + " is too long");
    Bytes header = owned.emplace_back(*std::move(npy));
    uint64_t size = header.size() + array.bytes.size();
    uint32_t crc = uint32_t(crc32_combine(
        checksum(header), checksum(array.bytes), z_off_t(array.bytes.size())));

    // Sizes and offsets always stand in the zip64 fields: one path, whatever
    // the size. The common part of both headers follows their magic.
    auto common = [&](std::vector<std::byte> &to) {
      for (uint16_t field : {version, uint16_t(0x800) /* UTF-8 */,
                             uint16_t(0) /* stored */, midnight, newYear1980})
        appendInteger<uint16_t>(to, field);
      for (uint32_t field : {crc, all32, all32})
        appendInteger<uint32_t>(to, field);
      appendInteger<uint16_t>(to, uint16_t(name.size()));
    };
    uint64_t start = offset;
    auto &local = owned.emplace_back();
    appendInteger<uint32_t>(local, localMagic);
    common(local);
    appendInteger<uint16_t>(local, 20);
    appendText(local, name);
    appendInteger<uint16_t>(local, 1);
    appendInteger<uint16_t>(local, 16);
    appendInteger<uint64_t>(local, size);
    appendInteger<uint64_t>(local, size);
    append(local);
    append(header);
    append(array.bytes);

    appendInteger<uint32_t>(directory, centralMagic);
    appendInteger<uint16_t>(directory, version);
    common(directory);
    appendInteger<uint16_t>(directory, 28);
    appendInteger<uint16_t>(directory, 0); // comment
    appendInteger<uint16_t>(directory, 0); // disk
    appendInteger<uint16_t>(directory, 0); // internal attributes
    appendInteger<uint32_t>(directory, 0); // external attributes
    appendInteger<uint32_t>(directory, all32);
    appendText(directory, name);
    appendInteger<uint16_t>(directory, 1);
    appendInteger<uint16_t>(directory, 24);
    for (uint64_t field : {size, size, start})
      appendInteger<uint64_t>(directory, field);
  }

  uint64_t directoryStart = offset;
  append(directory);
  uint64_t end64 = offset;
  auto &end = owned.emplace_back();
  appendInteger<uint32_t>(end, end64Magic);
  appendInteger<uint64_t>(end, end64Size - 12);
  appendInteger<uint16_t>(end, version);
  appendInteger<uint16_t>(end, version);
  appendInteger<uint64_t>(end, 0); // this disk, the directory's disk
  for (uint64_t field : {uint64_t(arrays.size()), uint64_t(arrays.size()),
                         uint64_t(directory.size()), directoryStart})
    appendInteger<uint64_t>(end, field);
  appendInteger<uint32_t>(end, locatorMagic);
  appendInteger<uint32_t>(end, 0);
  appendInteger<uint64_t>(end, end64);
  appendInteger<uint32_t>(end, 1);
  appendInteger<uint32_t>(end, endMagic);
  appendInteger<uint32_t>(end, 0);
  for (uint32_t field : {all32, all32, all32}) // counts, size, offset
    appendInteger<uint32_t>(end, field);
  appendInteger<uint16_t>(end, 0);
  append(end);
  return replaceFile(path, pieces);
}

} // namespace tandem::io
