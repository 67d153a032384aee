//===- EntryModules.cpp - modules, kernels and their launches -------------===//
#include "cuda/emulator/Entry.h"
#include "cuda/emulator/Limits.h"
#include "cuda/emulator/Modules.h"

#include <cstring>

using namespace tandem::emulator;

namespace tandem::cuda::driver {

/// Writes a log where the caller wants it.
static void giveLog(const std::string &log, bool isError, unsigned count,
                    CUjit_option *options, void **values) {
  const CUjit_option buffer =
      isError ? CU_JIT_ERROR_LOG_BUFFER : CU_JIT_INFO_LOG_BUFFER;
  const CUjit_option size = isError ? CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
                                    : CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES;
  char *text = nullptr;
  size_t room = 0;
  void **used = nullptr;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == buffer)
      text = static_cast<char *>(values[i]);
    if (options[i] == size) {
      room = reinterpret_cast<uintptr_t>(values[i]);
      used = &values[i];
    }
  }
  if (!text || !room)
    return;
  const size_t length = std::min(log.size(), room - 1);
  std::memcpy(text, log.data(), length);
  text[length] = 0;
  *used = reinterpret_cast<void *>(length);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                            CUjit_option *options, void **values) {
  return withDevice([&](Machine &m, Device &) {
    if (!module || !image || (count && (!options || !values)))
      return CUDA_ERROR_INVALID_VALUE;
    if (CUresult result = m.captureUnsafe())
      return result;
    m.report.log("host: load module");
    CUresult result = CUDA_SUCCESS;
    std::string log;
    std::unique_ptr<Module> loaded;
    if (m.failures.strikes(Failures::Module)) {
      result = CUDA_ERROR_INVALID_IMAGE;
      log = "this failure was asked for";
    } else {
      loaded = loadModule(m, image, result, log);
    }
    giveLog(log, /*isError=*/!loaded, count, options, values);
    giveLog("", /*isError=*/loaded != nullptr, count, options, values);
    if (loaded)
      *module = reinterpret_cast<CUmodule>(&m.modules.add(std::move(loaded)));
    return result;
  });
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

CUresult cuModuleUnload(CUmodule handle) {
  return withDriver([&](Machine &m) {
    Module *module = m.modules.find(handle);
    if (!module)
      return CUDA_ERROR_INVALID_HANDLE;
    // Kernels that are queued have what they need of it.
    for (const auto &[name, function] : module->functions)
      m.functions.remove(*function);
    m.modules.remove(*module);
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule handle,
                             const char *name) {
  return withDevice([&](Machine &m, Device &) {
    if (!function || !name)
      return CUDA_ERROR_INVALID_VALUE;
    Module *module = m.modules.find(handle);
    if (!module)
      return CUDA_ERROR_INVALID_HANDLE;
    Function *found = findFunction(m, *module, name);
    if (!found)
      return CUDA_ERROR_NOT_FOUND;
    *function = reinterpret_cast<CUfunction>(found);
    return CUDA_SUCCESS;
  });
}

// Images have no globals that are visible from outside.
CUresult cuModuleGetGlobal_v2(CUdeviceptr *, size_t *, CUmodule handle,
                              const char *name) {
  return withDevice([&](Machine &m, Device &) {
    if (!m.modules.find(handle))
      return CUDA_ERROR_INVALID_HANDLE;
    return name ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
                            CUfunction handle) {
  return withDevice([&](Machine &m, Device &) {
    Function *function = m.functions.find(handle);
    if (!function)
      return CUDA_ERROR_INVALID_HANDLE;
    if (!value)
      return CUDA_ERROR_INVALID_VALUE;
    const int version = m.traits.major * 10 + m.traits.minor;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = kThreadsPerBlock;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(function->sharedBytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 32;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = version;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = static_cast<int>(function->dynamicLimit);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = 0;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = -1;
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute,
                            int value) {
  return withDevice([&](Machine &m, Device &) {
    Function *function = m.functions.find(handle);
    if (!function)
      return CUDA_ERROR_INVALID_HANDLE;
    if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
      return value >= -1 && value <= 100 ? CUDA_SUCCESS
                                         : CUDA_ERROR_INVALID_VALUE;
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
        value < 0 ||
        function->sharedBytes + size_t(value) > kSharedPerBlockOptIn)
      return CUDA_ERROR_INVALID_VALUE;
    function->dynamicLimit = size_t(value);
    return CUDA_SUCCESS;
  });
}

/// How many blocks of a kernel run on one multiprocessor at a time.
static int blocksAtOnce(const Function &function, int blockSize,
                        size_t dynamicBytes) {
  const unsigned threads = (unsigned(blockSize) + 31) / 32 * 32;
  const size_t shared = function.sharedBytes + dynamicBytes + kSharedReserved;
  return static_cast<int>(std::min<size_t>(
      {kBlocksPerMultiprocessor, kThreadsPerMultiprocessor / threads,
       kSharedPerMultiprocessor / shared}));
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                     CUfunction handle,
                                                     int blockSize,
                                                     size_t dynamicBytes) {
  return withDevice([&](Machine &m, Device &) {
    Function *function = m.functions.find(handle);
    if (!function)
      return CUDA_ERROR_INVALID_HANDLE;
    if (!blocks || blockSize <= 0 || blockSize > int(kThreadsPerBlock))
      return CUDA_ERROR_INVALID_VALUE;
    *blocks = blocksAtOnce(*function, blockSize, dynamicBytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize,
                                          CUfunction handle,
                                          CUoccupancyB2DSize dynamicBytesOf,
                                          size_t dynamicBytes, int limit) {
  return withDevice([&](Machine &m, Device &) {
    Function *function = m.functions.find(handle);
    if (!function)
      return CUDA_ERROR_INVALID_HANDLE;
    if (!minGridSize || !blockSize || limit < 0)
      return CUDA_ERROR_INVALID_VALUE;
    int most =
        limit ? std::min(limit, int(kThreadsPerBlock)) : int(kThreadsPerBlock);
    int best = 0, bestBlocks = 0;
    for (int size = most / 32 * 32; size > 0; size -= 32) {
      const int blocks =
          blocksAtOnce(*function, size,
                       dynamicBytesOf ? dynamicBytesOf(size) : dynamicBytes);
      if (blocks * size > bestBlocks * best) {
        best = size;
        bestBlocks = blocks;
      }
    }
    *blockSize = best;
    *minGridSize = bestBlocks * m.traits.multiprocessors;
    return CUDA_SUCCESS;
  });
}

CUresult cuLaunchKernel(CUfunction handle, unsigned gridX, unsigned gridY,
                        unsigned gridZ, unsigned blockX, unsigned blockY,
                        unsigned blockZ, unsigned sharedBytes, CUstream stream,
                        void **parameters, void **extra) {
  return withStream(stream, [&](Machine &m, Stream &on) {
    Function *function = m.functions.find(handle);
    if (!function)
      return CUDA_ERROR_INVALID_HANDLE;
    if (extra)
      return CUDA_ERROR_NOT_SUPPORTED;
    Command command;
    const LaunchShape shape{
        {gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes};
    if (CUresult result = makeLaunch(m, *function, shape, parameters, command))
      return result;
    return m.push(on, std::move(command));
  });
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data) {
  return withStream(stream, [&](Machine &m, Stream &on) {
    if (!function)
      return CUDA_ERROR_INVALID_VALUE;
    return m.push(on, hostCommand(function, data));
  });
}

} // namespace tandem::cuda::driver
