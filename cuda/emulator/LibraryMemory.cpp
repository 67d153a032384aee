//===- LibraryMemory.cpp - what the emulated libraries have in common -----===//
#include "cuda/emulator/LibraryMemory.h"

#include "cuda/emulator/Entry.h"
#include "runtime/tensor/Half.h"

#include <cstring>

using namespace tandem::emulator;
using namespace tandem::cuda::driver;
using namespace tandem::cuda::library;

namespace {

template <typename T> T read(uintptr_t base, size_t index) {
  T value;
  std::memcpy(&value, reinterpret_cast<const char *>(base) + index * sizeof(T),
              sizeof(T));
  return value;
}

template <typename T> void write(uintptr_t base, size_t index, T value) {
  std::memcpy(reinterpret_cast<char *>(base) + index * sizeof(T), &value,
              sizeof(T));
}

} // namespace

std::optional<Element> tandem::emulator::elementOf(cudaDataType_t type) {
  switch (type) {
  case CUDA_R_32F:
    return Element::F32;
  case CUDA_R_64F:
    return Element::F64;
  case CUDA_R_16F:
    return Element::F16;
  case CUDA_R_16BF:
    return Element::BF16;
  }
  return std::nullopt;
}

std::optional<Element> tandem::emulator::elementOf(cudnnDataType_t type) {
  switch (type) {
  case CUDNN_DATA_FLOAT:
    return Element::F32;
  case CUDNN_DATA_DOUBLE:
    return Element::F64;
  case CUDNN_DATA_HALF:
    return Element::F16;
  case CUDNN_DATA_BFLOAT16:
    return Element::BF16;
  }
  return std::nullopt;
}

size_t tandem::emulator::bytesOf(Element element) {
  return element == Element::F64 ? 8 : element == Element::F32 ? 4 : 2;
}

double tandem::emulator::load(Element element, uintptr_t base, size_t index) {
  switch (element) {
  case Element::F32:
    return static_cast<double>(read<float>(base, index));
  case Element::F64:
    return read<double>(base, index);
  case Element::F16:
    return static_cast<double>(
        runtime::floatFromF16(read<uint16_t>(base, index)));
  case Element::BF16:
    return static_cast<double>(
        runtime::floatFromBF16(read<uint16_t>(base, index)));
  }
  return 0;
}

void tandem::emulator::store(Element element, uintptr_t base, size_t index,
                             double value) {
  auto rounded = static_cast<float>(value);
  switch (element) {
  case Element::F32:
    return write(base, index, rounded);
  case Element::F64:
    return write(base, index, value);
  case Element::F16:
    return write(base, index, runtime::f16FromFloat(rounded));
  case Element::BF16:
    return write(base, index, runtime::bf16FromFloat(rounded));
  }
}

CUresult
tandem::emulator::pushLibraryCall(CUstream stream, const char *name,
                                  double flops,
                                  std::function<void(Execution &)> run) {
  return withStream(stream, [&](Machine &m, Stream &on) {
    if (m.failures.strikes(Failures::Library))
      return CUDA_ERROR_LAUNCH_FAILED;
    Command command;
    command.kind = Command::Kind::Kernel;
    command.what = std::string("library call '") + name + "'";
    // Two microseconds, and a nanosecond for each thousand operations.
    command.duration = 2000 + static_cast<uint64_t>(flops / 1000);
    command.run = std::move(run);
    return m.push(on, std::move(command));
  });
}

bool tandem::emulator::useWorkspace(Execution &execution, uintptr_t begin,
                                    size_t bytes) {
  if (!execution.write(begin, bytes))
    return false;
  std::memset(reinterpret_cast<void *>(begin), 0xA5, bytes);
  return true;
}
