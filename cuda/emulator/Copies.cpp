//===- Copies.cpp - copies and fills as commands --------------------------===//
//
// Memory that the emulator knows (of a device, or pinned) is checked and
// compared with other uses; pageable memory is the caller's, and used while the
// caller waits.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/Copies.h"

#include "cuda/emulator/Execution.h"
#include "cuda/emulator/Machine.h"

#include <cstring>

using namespace tandem::emulator;
using namespace tandem::cuda::driver;

namespace {
/// Bytes from the first to after the last of one side.
size_t extent(const CopyShape &shape, bool isTo) {
  if (!shape.width || !shape.height || !shape.depth)
    return 0;
  const size_t pitch = isTo ? shape.toPitch : shape.fromPitch;
  const size_t slice = isTo ? shape.toSlice : shape.fromSlice;
  return (shape.depth - 1) * slice + (shape.height - 1) * pitch + shape.width;
}

/// What one side of a copy is.
struct Ground {
  bool isKnown = false;  ///< to the emulator: not pageable
  bool isDevice = false; ///< device memory
  Device *device = nullptr;
  const Allocation *memory = nullptr;
};

/// Looks at one side; false if it is not what the caller says it is.
bool look(Machine &machine, uintptr_t at, size_t bytes, Side side,
          Ground &ground) {
  if (!bytes)
    return true;
  const Allocation *in = machine.memory.find(at);
  const Allocation *dead = in && in->freedBy ? in : machine.memory.findDead(at);
  if (dead && (!in || in->freedBy)) {
    machine.report.error("a copy uses freed memory " +
                         std::to_string(dead->number) + " at byte " +
                         std::to_string(at - dead->begin) + ", freed by " +
                         dead->freedBy->text());
    return false;
  }
  if (!in)
    return side != Side::Device && at != 0;
  ground = {true, in->kind == MemoryKind::Device, in->device, in};
  return in->contains(at, bytes);
}

/// True of two devices where neither has access to what is copied there.
bool isThroughHost(const Ground &to, const Ground &from) {
  return to.isDevice && from.isDevice && !hasAccess(*to.device, *from.memory) &&
         !hasAccess(*from.device, *to.memory);
}

const char *nameOf(const Ground &to, const Ground &from) {
  if (to.isDevice && from.isDevice)
    return to.device == from.device  ? "copy on device"
           : isThroughHost(to, from) ? "copy between devices through the host"
                                     : "copy between devices";
  if (to.isDevice)
    return "copy to device";
  return from.isDevice ? "copy to host" : "copy on host";
}

template <typename F> void forEachRow(const CopyShape &shape, F &&body) {
  for (size_t z = 0; z < shape.depth; ++z)
    for (size_t y = 0; y < shape.height; ++y)
      body(shape.to + z * shape.toSlice + y * shape.toPitch,
           shape.from + z * shape.fromSlice + y * shape.fromPitch);
}

void runCopy(const CopyShape &shape, bool toKnown, bool fromKnown,
             Execution &execution) {
  forEachRow(shape, [&](uintptr_t to, uintptr_t from) {
    if (fromKnown && !execution.read(from, shape.width))
      return;
    if (toKnown && !execution.write(to, shape.width))
      return;
    std::memmove(reinterpret_cast<void *>(to),
                 reinterpret_cast<const void *>(from), shape.width);
  });
}

/// A microsecond, and the bytes at 25 GB/s to or from the host, 2 TB/s else.
uint64_t duration(size_t bytes, bool isOverBus) {
  return 1000 + (isOverBus ? bytes / 25 : bytes / 2000);
}

/// A copy whose sides have been looked at.
Command copyCommand(const CopyShape &shape, const Ground &to,
                    const Ground &from) {
  Command command;
  command.kind = Command::Kind::Copy;
  const size_t bytes = shape.width * shape.height * shape.depth;
  command.what =
      std::string(nameOf(to, from)) + ", " + std::to_string(bytes) + " bytes";
  command.duration = duration(bytes, !to.isDevice || !from.isDevice ||
                                         isThroughHost(to, from));
  command.run = [shape, toKnown = to.isKnown,
                 fromKnown = from.isKnown](Execution &execution) {
    runCopy(shape, toKnown, fromKnown, execution);
  };
  return command;
}
} // namespace

CUDA_MEMCPY3D tandem::emulator::as3D(const CUDA_MEMCPY2D &copy) {
  CUDA_MEMCPY3D result = {};
  result.srcXInBytes = copy.srcXInBytes;
  result.srcY = copy.srcY;
  result.srcMemoryType = copy.srcMemoryType;
  result.srcHost = copy.srcHost;
  result.srcDevice = copy.srcDevice;
  result.srcPitch = copy.srcPitch;
  result.dstXInBytes = copy.dstXInBytes;
  result.dstY = copy.dstY;
  result.dstMemoryType = copy.dstMemoryType;
  result.dstHost = copy.dstHost;
  result.dstDevice = copy.dstDevice;
  result.dstPitch = copy.dstPitch;
  result.WidthInBytes = copy.WidthInBytes;
  result.Height = copy.Height;
  result.Depth = 1;
  return result;
}

CUresult tandem::emulator::shapeOf(const CUDA_MEMCPY3D &copy, CopyShape &shape,
                                   Side &to, Side &from) {
  // A pitch of zero says that rows follow each other.
  auto side = [&](CUmemorytype type, const void *host, CUdeviceptr device,
                  size_t x, size_t y, size_t z, size_t &pitch, size_t height,
                  size_t &slice, uintptr_t &at, Side &result) {
    if (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_DEVICE &&
        type != CU_MEMORYTYPE_UNIFIED)
      return false;
    if (!pitch)
      pitch = copy.WidthInBytes;
    if (copy.Height > 1 && pitch < copy.WidthInBytes)
      return false;
    slice = pitch * (height ? height : copy.Height);
    at = (type == CU_MEMORYTYPE_HOST ? reinterpret_cast<uintptr_t>(host)
                                     : static_cast<uintptr_t>(device)) +
         x + y * pitch + z * slice;
    result = type == CU_MEMORYTYPE_HOST     ? Side::Host
             : type == CU_MEMORYTYPE_DEVICE ? Side::Device
                                            : Side::Any;
    return true;
  };
  shape.width = copy.WidthInBytes;
  shape.height = copy.Height;
  shape.depth = copy.Depth;
  shape.toPitch = copy.dstPitch;
  shape.fromPitch = copy.srcPitch;
  const bool ok = side(copy.dstMemoryType, copy.dstHost, copy.dstDevice,
                       copy.dstXInBytes, copy.dstY, copy.dstZ, shape.toPitch,
                       copy.dstHeight, shape.toSlice, shape.to, to) &&
                  side(copy.srcMemoryType, copy.srcHost, copy.srcDevice,
                       copy.srcXInBytes, copy.srcY, copy.srcZ, shape.fromPitch,
                       copy.srcHeight, shape.fromSlice, shape.from, from);
  return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult tandem::emulator::makeCopy(Machine &machine, const CopyShape &shape,
                                    Side to, Side from, Command &command) {
  Ground toGround, fromGround;
  if (!look(machine, shape.to, extent(shape, true), to, toGround) ||
      !look(machine, shape.from, extent(shape, false), from, fromGround))
    return CUDA_ERROR_INVALID_VALUE;
  command = copyCommand(shape, toGround, fromGround);
  return CUDA_SUCCESS;
}

CUresult tandem::emulator::copyOn(Machine &machine, Stream &stream,
                                  const CopyShape &shape, Side to, Side from) {
  Ground toGround, fromGround;
  if (!look(machine, shape.to, extent(shape, true), to, toGround) ||
      !look(machine, shape.from, extent(shape, false), from, fromGround))
    return CUDA_ERROR_INVALID_VALUE;
  if (!extent(shape, true))
    return CUDA_SUCCESS;
  const bool isPageable = !toGround.isKnown || !fromGround.isKnown;
  if (stream.capture && isPageable) {
    // It would be read or written when the graph is replayed.
    stream.capture->isInvalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (fromGround.isKnown && toGround.isKnown)
    return machine.push(stream, copyCommand(shape, toGround, fromGround));
  if (toGround.isKnown) {
    // The bytes as they are now, row after row.
    auto staged = std::make_shared<std::vector<std::byte>>();
    CopyShape fromStage = shape;
    fromStage.fromPitch = shape.width;
    fromStage.fromSlice = shape.width * shape.height;
    staged->reserve(shape.width * shape.height * shape.depth);
    forEachRow(shape, [&](uintptr_t, uintptr_t row) {
      const auto *bytes = reinterpret_cast<const std::byte *>(row);
      staged->insert(staged->end(), bytes, bytes + shape.width);
    });
    fromStage.from = reinterpret_cast<uintptr_t>(staged->data());
    Command command = copyCommand(shape, toGround, fromGround);
    command.run = [fromStage, staged](Execution &execution) {
      runCopy(fromStage, true, false, execution);
    };
    return machine.push(stream, std::move(command));
  }
  if (CUresult result =
          machine.push(stream, copyCommand(shape, toGround, fromGround)))
    return result;
  return machine.await(stream.last, *stream.device);
}

CUresult tandem::emulator::makeFill(Machine &machine, const FillShape &shape,
                                    Command &command) {
  if (shape.elementBytes != 1 && shape.elementBytes != 2 &&
      shape.elementBytes != 4)
    return CUDA_ERROR_INVALID_VALUE;
  const size_t row = shape.width * shape.elementBytes;
  if (shape.to % shape.elementBytes || (shape.height > 1 && shape.pitch < row))
    return CUDA_ERROR_INVALID_VALUE;
  const size_t bytes =
      row && shape.height ? (shape.height - 1) * shape.pitch + row : 0;
  Ground ground;
  if (!look(machine, shape.to, bytes, Side::Device, ground))
    return CUDA_ERROR_INVALID_VALUE;
  command.kind = Command::Kind::Memset;
  command.what = "memset, " + std::to_string(row * shape.height) + " bytes";
  command.duration = duration(row * shape.height, false);
  command.run = [shape, row](Execution &execution) {
    for (size_t y = 0; y < shape.height; ++y) {
      const uintptr_t at = shape.to + y * shape.pitch;
      if (!execution.write(at, row))
        return;
      auto *bytes = reinterpret_cast<std::byte *>(at);
      if (shape.elementBytes == 1) {
        std::memset(bytes, static_cast<int>(shape.value), row);
        continue;
      }
      for (size_t i = 0; i < row; i += shape.elementBytes)
        std::memcpy(bytes + i, &shape.value, shape.elementBytes);
    }
  };
  return CUDA_SUCCESS;
}
