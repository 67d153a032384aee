//===- ArtifactFuzz.cpp - any bytes as an artifact or manifest ------------===//
//
// The input is read as a file, then with its checksums put right (so that
// mutations reach what they guard), then, if it begins with '{', as a manifest.
// A manifest that is accepted must say the same after a round trip, and every
// place that the executor would use must be within bounds.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/ArtifactFormat.h"
#include "runtime/artifact/ArtifactReader.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

using namespace tandem;
using namespace tandem::artifact;

namespace {

void require(bool condition) {
  if (!condition)
    std::abort();
}

/// True if a result of "prepare" is what `taken` stands for.
bool isPrepared(const Manifest &m, const Slot &taken) {
  for (const Program &p : m.programs)
    for (const Slot &given : p.results)
      if (p.name == "prepare" && given.role == Role::Prepared &&
          given.name == taken.name && given.dtype == taken.dtype &&
          given.shape == taken.shape)
        return true;
  return false;
}

/// What the executor relies on, checked without the validator's code.
void checkBounds(const Manifest &m, size_t constantsBytes) {
  for (const Program &p : m.programs) {
    for (const Slot &slot : p.arguments)
      require(slot.role != Role::Prepared || isPrepared(m, slot));
    for (const Buffer &b : p.buffers) {
      bool argument = b.place == Buffer::Place::Argument;
      bool result = b.place == Buffer::Place::Result;
      size_t limit = argument ? p.arguments.size() : p.results.size();
      if (argument || result) {
        require(b.index >= 0 && static_cast<size_t>(b.index) < limit);
        continue;
      }
      auto end = static_cast<__int128>(
          b.place == Buffer::Place::Arena  ? p.arenaBytes
          : b.place == Buffer::Place::Host ? p.hostBytes
                                           : int64_t(constantsBytes));
      require(b.offset >= 0 && b.bytes >= 0 && b.offset % 64 == 0 &&
              static_cast<__int128>(b.offset) + b.bytes <= end);
    }
    for (const Launch &l : p.launches) {
      if (l.isCopy())
        require(l.buffers.size() == 2 &&
                isOnHost(p, p.buffers[l.buffers[0]]) !=
                    isOnHost(p, p.buffers[l.buffers[1]]));
      else
        require(l.kernel >= 0 &&
                static_cast<size_t>(l.kernel) < m.kernels.size());
      require(l.work >= 0 && l.grain >= 1);
      for (int64_t b : l.buffers)
        require(b >= 0 && static_cast<size_t>(b) < p.buffers.size());
      for (int64_t w : l.writes)
        require(p.buffers[l.buffers[w]].place != Buffer::Place::Constant);
    }
  }
}

/// Bulk copies stay in their buffers.
void checkMaps(const Kernel &kernel, const Launch &launch, const Program &p) {
  for (const TensorMap &map : kernel.tensorMaps) {
    require(map.buffer >= 0 &&
            static_cast<size_t>(map.buffer) < launch.buffers.size());
    require(map.offset >= 0 && map.offset % 16 == 0 && map.elementBytes() > 0);
    require(!map.sizes.empty() && map.sizes.size() <= 5 &&
            map.strides.size() + 1 == map.sizes.size() &&
            map.box.size() == map.sizes.size());
    __int128 end = map.offset + map.elementBytes();
    for (size_t d = 0; d < map.sizes.size(); ++d) {
      require(map.sizes[d] >= 1 && map.sizes[d] < int64_t(1) << 32 &&
              map.box[d] >= 1 && map.box[d] <= 256);
      int64_t stride = d ? map.strides[d - 1] : map.elementBytes();
      require(stride > 0 && (d == 0 || stride % 16 == 0));
      end += static_cast<__int128>(map.sizes[d] - 1) * stride;
    }
    const Buffer &buffer = p.buffers[launch.buffers[map.buffer]];
    int64_t bytes = buffer.bytes;
    if (buffer.place == Buffer::Place::Argument ||
        buffer.place == Buffer::Place::Result) {
      const Slot &slot = buffer.place == Buffer::Place::Argument
                             ? p.arguments[buffer.index]
                             : p.results[buffer.index];
      bytes = tensorBytes(slot.dtype, slot.shape).value_or(0);
    }
    require(end <= bytes);
  }
}

/// Bytes of a buffer.
int64_t bytesOf(const Program &p, const Buffer &b) {
  if (b.place == Buffer::Place::Argument)
    return *tensorBytes(p.arguments[b.index].dtype, p.arguments[b.index].shape);
  if (b.place == Buffer::Place::Result)
    return *tensorBytes(p.results[b.index].dtype, p.results[b.index].shape);
  return b.bytes;
}

/// The last elements that a library's product touches, and its workspace.
void checkLibrary(const Program &p, const Launch &l) {
  const LibraryCall &call = *l.library;
  if (call.workspace)
    require(p.buffers.at(*call.workspace).place == Buffer::Place::Arena);
  auto last = [&](size_t operand, __int128 element) {
    const Buffer &b = p.buffers[l.buffers.at(call.operands.at(operand))];
    require((element + 1) * byteSize(call.dtype) <= bytesOf(p, b));
  };
  if (!call.isMatmul())
    return;
  int64_t batch = call.sizes.at(0), m = call.sizes.at(1), n = call.sizes.at(2),
          k = call.sizes.at(3);
  auto corner = [&](size_t operand, int64_t rows, int64_t columns) {
    last(operand, __int128(batch - 1) * call.batchStrides.at(operand) +
                      __int128(rows - 1) * call.lds.at(operand) + columns - 1);
  };
  corner(0, call.transposes.at(0) ? k : m, call.transposes.at(0) ? m : k);
  corner(1, call.transposes.at(1) ? n : k, call.transposes.at(1) ? k : n);
  corner(2, m, n);
  if (call.operands.size() > 3)
    last(3, n - 1);
}

/// What a device is given.
void checkExtents(const Manifest &m) {
  if (m.target.kind != "cuda")
    return;
  auto product = [](const std::vector<int64_t> &sizes) {
    require(sizes.size() == 3);
    __int128 all = 1;
    for (int64_t size : sizes) {
      require(size >= 1 && size <= INT32_MAX);
      all *= size;
    }
    return all;
  };
  for (const Kernel &k : m.kernels)
    require(product(k.block) <= 1024 && k.sharedBytes >= 0 &&
            k.sharedBytes <= 227 * 1024);
  for (const Program &p : m.programs)
    for (const Launch &l : p.launches) {
      if (l.isCopy())
        continue;
      require(product(l.grid) == l.work);
      checkMaps(m.kernels[l.kernel], l, p);
      if (l.library)
        checkLibrary(p, l);
    }
}

void check(const Manifest &manifest, size_t constantsBytes) {
  checkBounds(manifest, constantsBytes);
  checkExtents(manifest);
  Result<std::string> text = toJson(manifest);
  require(text.ok());
  Result<Manifest> again = fromJson(*text);
  require(again.ok() && *again == manifest);
}

/// Puts the sizes and checksums of a damaged file right, where there is room.
void repair(std::vector<std::byte> &file) {
  ArtifactHeader header;
  if (file.size() < sizeof(header))
    return;
  std::memcpy(&header, file.data(), sizeof(header));
  std::memcpy(header.magic, artifactMagic, sizeof(header.magic));
  header.version = artifactVersion;
  header.fileBytes = file.size();
  header.zero = 0;
  size_t room = (file.size() - sizeof(header)) / sizeof(SectionEntry);
  header.sectionCount = std::min<uint32_t>(
      header.sectionCount, static_cast<uint32_t>(std::min<size_t>(room, 64)));
  for (uint32_t i = 0; i < header.sectionCount; ++i) {
    auto *place = file.data() + sizeof(header) + i * sizeof(SectionEntry);
    SectionEntry entry;
    std::memcpy(&entry, place, sizeof(entry));
    if (entry.offset <= file.size() &&
        entry.bytes <= file.size() - entry.offset)
      entry.crc = checksum(file.data() + entry.offset, entry.bytes);
    std::memcpy(place, &entry, sizeof(entry));
  }
  header.tableCrc = checksum(file.data() + sizeof(header),
                             header.sectionCount * sizeof(SectionEntry));
  std::memcpy(file.data(), &header, sizeof(header));
}

void readAndCheck(std::span<const std::byte> file) {
  Result<ArtifactReader> reader = ArtifactReader::fromMemory(file);
  if (!reader) {
    require(!reader.status().message().empty());
    return;
  }
  for (const ArtifactReader::Section &section : reader->sections())
    checksum(section.bytes.data(), section.bytes.size());
  std::span<const Manifest> manifests = reader->manifests();
  for (size_t i = 0; i < manifests.size(); ++i) {
    const Manifest &manifest = manifests[i];
    require(reader->choose(manifest.target.kind));
    reader->choose(i);
    (void)reader->code("object.cpu");
    check(reader->manifest(), reader->constants().size());
    // Every target is of the same model.
    require(manifest.values.size() == manifests[0].values.size());
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto bytes = std::as_bytes(std::span(data, size));
  if (size && data[0] == '{') {
    Result<Manifest> manifest =
        fromJson({reinterpret_cast<const char *>(data), size});
    if (manifest && validate(*manifest, 4096).ok())
      check(*manifest, 4096);
    return 0;
  }
  readAndCheck(bytes);
  std::vector<std::byte> repaired(bytes.begin(), bytes.end());
  repair(repaired);
  readAndCheck(repaired);
  return 0;
}
