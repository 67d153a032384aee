//===- EntryMemory.cpp - memory, pools and pointers -----------------------===//
#include "cuda/emulator/Entry.h"
#include "cuda/emulator/Execution.h"

#include <cstdio>
#include <fstream>

using namespace tandem::emulator;

namespace {
using namespace tandem::cuda::driver;

uintptr_t address(CUdeviceptr pointer) {
  return static_cast<uintptr_t>(pointer);
}

/// Returns the allocation that begins at `at` and that nobody has freed, or
/// null.
Allocation *liveAt(Machine &m, uintptr_t at) {
  Allocation *found = m.memory.find(at);
  return found && found->begin == at && !found->freedBy ? found : nullptr;
}

OriginPtr freedBy(const std::string &what, const std::string &where) {
  return std::make_shared<Origin>(Origin{what, where, "frees", 0});
}

Pool *poolOf(Machine &m, CUmemoryPool handle) {
  for (const auto &device : m.devices)
    if (static_cast<void *>(&device->defaultPool) == handle)
      return &device->defaultPool;
  return m.pools.find(handle);
}

CUresult allocateAsync(Machine &m, CUdeviceptr *pointer, size_t bytes,
                       Pool &pool, Stream &on) {
  if (!pointer)
    return CUDA_ERROR_INVALID_VALUE;
  if (on.capture) {
    // The driver would make a node of it; a step's graph must have none.
    on.capture->isInvalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  Allocation *made = nullptr;
  if (CUresult result =
          m.allocate(*pool.device, bytes, MemoryKind::Device, &pool, made))
    return result;
  *pointer = made->begin;
  Command command;
  command.kind = Command::Kind::Allocate;
  command.what = "allocation of " + std::to_string(bytes) + " bytes";
  command.run = [at = made->begin, bytes](Execution &execution) {
    execution.claim(at, bytes);
    if (const Allocation *live = execution.machine.memory.find(at))
      Memory::poison(*live);
  };
  return m.push(on, std::move(command));
}
} // namespace

namespace tandem::cuda::driver {

CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  return withDevice([&](Machine &m, Device &device) {
    if (!free || !total)
      return CUDA_ERROR_INVALID_VALUE;
    *total = m.traits.memory;
    *free = m.traits.memory - std::min(m.traits.memory, device.used);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
  return withDevice([&](Machine &m, Device &device) {
    if (!pointer)
      return CUDA_ERROR_INVALID_VALUE;
    if (CUresult result = m.captureUnsafe())
      return result;
    m.report.log("host: allocate " + std::to_string(bytes) + " bytes");
    Allocation *made = nullptr;
    if (CUresult result =
            m.allocate(device, bytes, MemoryKind::Device, nullptr, made))
      return result;
    Memory::poison(*made);
    *pointer = made->begin;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  return withDriver([&](Machine &m) {
    if (!pointer)
      return CUDA_SUCCESS;
    Allocation *allocation = liveAt(m, address(pointer));
    if (!allocation || allocation->kind != MemoryKind::Device)
      return CUDA_ERROR_INVALID_VALUE;
    if (CUresult result = m.captureUnsafe())
      return result;
    m.report.log("host: free");
    ++m.report.counts.frees;
    // The driver waits for all work of the device, but of memory in stream
    // order it takes for granted that nothing uses it.
    Device &device = *allocation->device;
    const CUresult result =
        allocation->pool ? device.error : m.awaitDevice(device);
    m.hostAccess(allocation->begin, allocation->bytes, /*isWrite=*/true,
                 "frees");
    allocation->freedBy = freedBy("a free by the host", "");
    m.release(*allocation);
    return result;
  });
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes,
                                 CUdeviceptr pointer) {
  return withDevice([&](Machine &m, Device &) {
    const Allocation *allocation = m.memory.find(address(pointer));
    if (!allocation || allocation->freedBy)
      return CUDA_ERROR_NOT_FOUND;
    if (base)
      *base = allocation->begin;
    if (bytes)
      *bytes = allocation->bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned /*flags*/) {
  return withDevice([&](Machine &m, Device &device) {
    if (!pointer)
      return CUDA_ERROR_INVALID_VALUE;
    if (CUresult result = m.captureUnsafe())
      return result;
    m.report.log("host: allocate " + std::to_string(bytes) + " pinned bytes");
    Allocation *made = nullptr;
    if (CUresult result =
            m.allocate(device, bytes, MemoryKind::Pinned, nullptr, made))
      return result;
    Memory::poison(*made);
    *pointer = reinterpret_cast<void *>(made->begin);
    return CUDA_SUCCESS;
  });
}

// Whether the driver waits here is not said: queued work must have ended.
CUresult cuMemFreeHost(void *pointer) {
  return withDriver([&](Machine &m) {
    if (!pointer)
      return CUDA_SUCCESS;
    Allocation *allocation = liveAt(m, reinterpret_cast<uintptr_t>(pointer));
    if (!allocation || allocation->kind != MemoryKind::Pinned)
      return CUDA_ERROR_INVALID_VALUE;
    // Nor whether it disturbs captures, as the allocation does.
    if (CUresult result = m.captureUnsafe())
      return result;
    m.report.log("host: free pinned");
    ++m.report.counts.hostFrees;
    m.hostAccess(allocation->begin, allocation->bytes, /*isWrite=*/true,
                 "frees");
    allocation->freedBy = freedBy("a free by the host", "");
    m.release(*allocation);
    return CUDA_SUCCESS;
  });
}

/// True if all of it may be written, as the system's list of mappings says.
static bool isWritable(uintptr_t begin, size_t bytes) {
  std::ifstream maps("/proc/self/maps");
  uintptr_t from = begin;
  for (std::string line; from < begin + bytes && std::getline(maps, line);) {
    unsigned long low = 0, high = 0;
    char mode[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &low, &high, mode) == 3 &&
        low <= from && from < high && mode[1] == 'w')
      from = high;
  }
  return from >= begin + bytes;
}

CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags) {
  return withDevice([&](Machine &m, Device &device) {
    const auto at = reinterpret_cast<uintptr_t>(pointer);
    if (!at || !bytes)
      return CUDA_ERROR_INVALID_VALUE;
    if (!m.traits.canRegister)
      return CUDA_ERROR_NOT_SUPPORTED;
    if (!(flags & CU_MEMHOSTREGISTER_READ_ONLY) && !isWritable(at, bytes))
      return CUDA_ERROR_INVALID_VALUE;
    if (CUresult result = m.captureUnsafe())
      return result;
    for (const auto &[begin, other] : m.memory.allocations())
      if (begin < at + bytes && other.end() > at)
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    m.memory.enroll(at, bytes, &device);
    m.shadow.forget(at, at + bytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostUnregister(void *pointer) {
  return withDriver([&](Machine &m) {
    Allocation *allocation = liveAt(m, reinterpret_cast<uintptr_t>(pointer));
    if (!allocation || allocation->kind != MemoryKind::Registered)
      return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    m.hostAccess(allocation->begin, allocation->bytes, /*isWrite=*/true,
                 "frees");
    m.release(*allocation);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *devicePointer, void *pointer,
                                      unsigned flags) {
  return withDevice([&](Machine &m, Device &) {
    const auto at = reinterpret_cast<uintptr_t>(pointer);
    const Allocation *allocation = m.memory.find(at);
    if (!devicePointer || flags || !allocation ||
        allocation->kind == MemoryKind::Device)
      return CUDA_ERROR_INVALID_VALUE;
    *devicePointer = at;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream) {
  return withStream(stream, [&](Machine &m, Stream &on) {
    return allocateAsync(m, pointer, bytes, on.device->defaultPool, on);
  });
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes,
                                 CUmemoryPool pool, CUstream stream) {
  return withStream(stream, [&](Machine &m, Stream &on) {
    Pool *found = poolOf(m, pool);
    return found ? allocateAsync(m, pointer, bytes, *found, on)
                 : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  return withDriver([&](Machine &m) {
    if (!pointer)
      return CUDA_SUCCESS;
    Stream *on = m.stream(stream);
    if (!on)
      return CUDA_ERROR_INVALID_HANDLE;
    Allocation *allocation = liveAt(m, address(pointer));
    if (!allocation || allocation->kind != MemoryKind::Device)
      return CUDA_ERROR_INVALID_VALUE;
    if (on->capture) {
      on->capture->isInvalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    ++m.report.counts.frees;
    const std::string what =
        "free of memory " + std::to_string(allocation->number);
    if (CUresult error = on->device->error) {
      // Nothing uses it any more.
      m.scheduler.drain();
      m.release(*allocation);
      return error;
    }
    allocation->freedBy = freedBy(what, on->name);
    Command command;
    command.kind = Command::Kind::Free;
    command.what = what;
    command.run = [at = allocation->begin](Execution &execution) {
      Allocation &dying = *execution.machine.memory.find(at);
      execution.claim(at, dying.bytes);
      dying.freedBy = execution.operation.origin;
      execution.machine.release(dying);
    };
    return m.push(*on, std::move(command));
  });
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
  return withDriver([&](Machine &m) {
    if (!pool)
      return CUDA_ERROR_INVALID_VALUE;
    if (device < 0 || size_t(device) >= m.devices.size())
      return CUDA_ERROR_INVALID_DEVICE;
    *pool =
        reinterpret_cast<CUmemoryPool>(&m.devices[size_t(device)]->defaultPool);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties) {
  return withDriver([&](Machine &m) {
    if (!pool || !properties || properties->allocType != 1 ||
        properties->location.type != 1)
      return CUDA_ERROR_INVALID_VALUE;
    if (!m.traits.hasPools)
      return CUDA_ERROR_NOT_SUPPORTED;
    const int ordinal = properties->location.id;
    if (ordinal < 0 || size_t(ordinal) >= m.devices.size())
      return CUDA_ERROR_INVALID_DEVICE;
    auto made = std::make_unique<Pool>();
    made->device = m.devices[size_t(ordinal)].get();
    made->maxBytes = properties->maxSize;
    *pool = reinterpret_cast<CUmemoryPool>(&m.pools.add(std::move(made)));
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  return withDriver([&](Machine &m) {
    Pool *pool = m.pools.find(handle);
    if (!pool)
      return CUDA_ERROR_INVALID_VALUE;
    // Its memory lives until it is freed, as the device's own.
    m.scheduler.drain();
    m.memory.leave(*pool);
    m.pools.remove(*pool);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle,
                               CUmemPool_attribute attribute, void *value) {
  return withDriver([&](Machine &m) {
    Pool *pool = poolOf(m, handle);
    if (!pool || !value)
      return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool->flags[attribute] = *static_cast<int *>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      pool->threshold = *static_cast<uint64_t *>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (*static_cast<uint64_t *>(value))
        return CUDA_ERROR_INVALID_VALUE;
      pool->usedHigh = pool->used;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      break;
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}

// Nothing is kept beyond what is used.
CUresult cuMemPoolGetAttribute(CUmemoryPool handle,
                               CUmemPool_attribute attribute, void *value) {
  return withDriver([&](Machine &m) {
    Pool *pool = poolOf(m, handle);
    if (!pool || !value)
      return CUDA_ERROR_INVALID_VALUE;
    auto &wide = *static_cast<uint64_t *>(value);
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *static_cast<int *>(value) = pool->flags[attribute];
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      wide = pool->threshold;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      wide = pool->used;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      wide = pool->usedHigh;
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle,
                            const CUmemAccessDesc *descriptions, size_t count) {
  return withDriver([&](Machine &m) {
    Pool *pool = poolOf(m, handle);
    if (!pool || (count && !descriptions))
      return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) {
      const CUmemAccessDesc &one = descriptions[i];
      if (one.location.type != 1 || (one.flags != 0 && one.flags != 3))
        return CUDA_ERROR_INVALID_VALUE;
      if (one.location.id < 0 || size_t(one.location.id) >= m.devices.size())
        return CUDA_ERROR_INVALID_DEVICE;
      const Device *user = m.devices[size_t(one.location.id)].get();
      if (user != pool->device && one.flags && !m.traits.hasPeers)
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
      std::erase(pool->users, user);
      if (one.flags)
        pool->users.push_back(user);
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t /*bytesToKeep*/) {
  return withDriver([&](Machine &m) {
    return poolOf(m, handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

/// Writes an attribute of memory; of none if `in` is null.
static CUresult attributeOf(const Allocation *in, CUpointer_attribute attribute,
                            CUdeviceptr pointer, void *value) {
  auto set = [&](auto result) {
    *static_cast<decltype(result) *>(value) = result;
    return CUDA_SUCCESS;
  };
  const bool isDevice = in && in->kind == MemoryKind::Device;
  switch (attribute) {
  case CU_POINTER_ATTRIBUTE_CONTEXT:
    return set(in ? contextOf(*in->device) : CUcontext());
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    return set(unsigned(!in        ? CUmemorytype()
                        : isDevice ? CU_MEMORYTYPE_DEVICE
                                   : CU_MEMORYTYPE_HOST));
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    return set(in ? pointer : CUdeviceptr());
  case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    if (isDevice)
      return CUDA_ERROR_INVALID_VALUE;
    return set(in ? reinterpret_cast<void *>(address(pointer)) : nullptr);
  case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    return set(static_cast<unsigned long long>(in ? in->number : 0));
  case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    return set(0u);
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    return set(in ? in->device->ordinal : -2);
  case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    return set(CUdeviceptr(in ? in->begin : 0));
  case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    return set(in ? in->bytes : 0);
  case CU_POINTER_ATTRIBUTE_MAPPED:
    return set(unsigned(in != nullptr));
  case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    return set(in ? reinterpret_cast<CUmemoryPool>(in->pool) : nullptr);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute,
                               CUdeviceptr pointer) {
  return withDriver([&](Machine &m) {
    const Allocation *in = m.memory.find(address(pointer));
    if (!value || !in || in->freedBy)
      return CUDA_ERROR_INVALID_VALUE;
    return attributeOf(in, attribute, pointer, value);
  });
}

// Of memory that is not known it says so in the attributes.
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes,
                                void **values, CUdeviceptr pointer) {
  return withDriver([&](Machine &m) {
    if (!count || !attributes || !values)
      return CUDA_ERROR_INVALID_VALUE;
    const Allocation *in = m.memory.find(address(pointer));
    if (in && in->freedBy)
      in = nullptr;
    for (unsigned i = 0; i < count; ++i)
      if (attributeOf(in, attributes[i], pointer, values[i]) &&
          attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER)
        *static_cast<void **>(values[i]) = nullptr;
    return CUDA_SUCCESS;
  });
}

} // namespace tandem::cuda::driver
