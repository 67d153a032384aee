//===- EntryDevices.cpp - the driver, devices and contexts ----------------===//
#include "cuda/emulator/Entry.h"
#include "cuda/emulator/Limits.h"

#include <cstdio>
#include <cstring>

using namespace tandem::emulator;

Device *tandem::emulator::deviceOf(driver::CUcontext context) {
  for (const auto &device : machine().devices)
    if (static_cast<void *>(device.get()) == context)
      return device.get();
  return nullptr;
}

namespace {
/// Returns a device by its ordinal, or null.
Device *deviceAt(Machine &m, int ordinal) {
  return ordinal >= 0 && size_t(ordinal) < m.devices.size()
             ? m.devices[size_t(ordinal)].get()
             : nullptr;
}
} // namespace

namespace tandem::cuda::driver {

CUresult cuInit(unsigned flags) {
  Machine &m = machine();
  std::lock_guard<std::recursive_mutex> guard(m.lock);
  if (flags)
    return CUDA_ERROR_INVALID_VALUE;
  if (m.failures.initResult)
    return static_cast<CUresult>(m.failures.initResult);
  if (m.traits.count == 0)
    return CUDA_ERROR_NO_DEVICE;
  m.started = true;
  // A device's default stream is there from the beginning.
  while (m.devices.size() < size_t(m.traits.count)) {
    m.devices.push_back(std::make_unique<Device>());
    Device &device = *m.devices.back();
    device.ordinal = static_cast<int>(m.devices.size()) - 1;
    device.legacy = &m.createStream(device, 0, /*isLegacy=*/true);
    device.defaultPool.device = &device;
    device.defaultPool.isDefault = true;
  }
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version) {
  Machine &m = machine();
  std::lock_guard<std::recursive_mutex> guard(m.lock);
  if (!version)
    return CUDA_ERROR_INVALID_VALUE;
  *version =
      m.failures.driverVersion ? m.failures.driverVersion : m.traits.version;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
  return withDriver([&](Machine &m) {
    if (!count)
      return CUDA_ERROR_INVALID_VALUE;
    *count = std::min(m.traits.count, static_cast<int>(m.devices.size()));
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  return withDriver([&](Machine &m) {
    if (!device)
      return CUDA_ERROR_INVALID_VALUE;
    if (!deviceAt(m, ordinal))
      return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  return withDriver([&](Machine &m) {
    if (!name || length <= 0)
      return CUDA_ERROR_INVALID_VALUE;
    if (!deviceAt(m, device))
      return CUDA_ERROR_INVALID_DEVICE;
    std::snprintf(name, size_t(length), "%s", m.traits.name.c_str());
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
  return withDriver([&](Machine &m) {
    if (!uuid)
      return CUDA_ERROR_INVALID_VALUE;
    if (!deviceAt(m, device))
      return CUDA_ERROR_INVALID_DEVICE;
    std::memcpy(uuid->bytes, "tandem emulator", sizeof(uuid->bytes));
    uuid->bytes[15] = static_cast<char>(device);
    return CUDA_SUCCESS;
  });
}

static int attributeOf(const Machine &m, CUdevice_attribute attribute,
                       int ordinal) {
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    return kThreadsPerBlock;
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    return kBlockX;
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
    return kBlockY;
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
    return kBlockZ;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
    return kGridX;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    return kGridY;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
    return kGridZ;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
    return kSharedPerBlock;
  case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
    return 32;
  case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
  case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
    return 65536;
  case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
    return 1980000; // kHz
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    return m.traits.multiprocessors;
  case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
    return 3201000; // kHz
  case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
    return 6144; // bits
  case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
    return 60 << 20;
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
    return kThreadsPerMultiprocessor;
  case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
    return 3;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    return m.traits.major;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    return m.traits.minor;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
    return kSharedPerMultiprocessor;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    return kSharedPerBlockOptIn;
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
    return kBlocksPerMultiprocessor;
  case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
    return ordinal + 1;
  case CU_DEVICE_ATTRIBUTE_INTEGRATED:
  case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
    return 0;
  case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
  case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
  case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
  case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    return 1;
  case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    return m.traits.hasPools;
  case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    return m.traits.canRegister;
  }
  return 0;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                              CUdevice device) {
  return withDriver([&](Machine &m) {
    if (!value)
      return CUDA_ERROR_INVALID_VALUE;
    if (!deviceAt(m, device))
      return CUDA_ERROR_INVALID_DEVICE;
    *value = attributeOf(m, attribute, device);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  return withDriver([&](Machine &m) {
    if (!bytes)
      return CUDA_ERROR_INVALID_VALUE;
    if (!deviceAt(m, device))
      return CUDA_ERROR_INVALID_DEVICE;
    *bytes = m.traits.memory;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
  return withDriver([&](Machine &m) {
    if (!can)
      return CUDA_ERROR_INVALID_VALUE;
    if (!deviceAt(m, device) || !deviceAt(m, peer))
      return CUDA_ERROR_INVALID_DEVICE;
    *can = device != peer && m.traits.hasPeers;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  return withDriver([&](Machine &m) {
    if (!context)
      return CUDA_ERROR_INVALID_VALUE;
    Device *found = deviceAt(m, device);
    if (!found)
      return CUDA_ERROR_INVALID_DEVICE;
    ++found->retained;
    *context = contextOf(*found);
    return CUDA_SUCCESS;
  });
}

// Memory and streams of a context that nobody retains stay until they are
// freed: whoever releases the context first has leaked them, and tests see it.
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return withDriver([&](Machine &m) {
    Device *found = deviceAt(m, device);
    if (!found)
      return CUDA_ERROR_INVALID_DEVICE;
    if (!found->retained)
      return CUDA_ERROR_INVALID_CONTEXT;
    if (--found->retained == 0) {
      m.scheduler.drain();
      found->peers.clear();
      found->error = CUDA_SUCCESS;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags,
                                    int *active) {
  return withDriver([&](Machine &m) {
    Device *found = deviceAt(m, device);
    if (!found)
      return CUDA_ERROR_INVALID_DEVICE;
    if (flags)
      *flags = CU_CTX_SCHED_AUTO;
    if (active)
      *active = found->retained > 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetCurrent(CUcontext *context) {
  return withDriver([&](Machine &) {
    if (!context)
      return CUDA_ERROR_INVALID_VALUE;
    Device *device = Machine::current();
    *context = device ? contextOf(*device) : nullptr;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return withDriver([&](Machine &) {
    auto &contexts = Machine::thread().contexts;
    if (!context) {
      if (!contexts.empty())
        contexts.pop_back();
      return CUDA_SUCCESS;
    }
    Device *device = deviceOf(context);
    if (!device || !device->retained)
      return CUDA_ERROR_INVALID_CONTEXT;
    if (contexts.empty())
      contexts.push_back(device);
    else
      contexts.back() = device;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  return withDriver([&](Machine &) {
    Device *device = deviceOf(context);
    if (!device || !device->retained)
      return CUDA_ERROR_INVALID_CONTEXT;
    Machine::thread().contexts.push_back(device);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  return withDriver([&](Machine &) {
    auto &contexts = Machine::thread().contexts;
    if (contexts.empty())
      return CUDA_ERROR_INVALID_CONTEXT;
    if (context)
      *context = contextOf(*contexts.back());
    contexts.pop_back();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetDevice(CUdevice *device) {
  return withDriver([&](Machine &) {
    if (!device)
      return CUDA_ERROR_INVALID_VALUE;
    Device *found = Machine::current();
    if (!found)
      return CUDA_ERROR_INVALID_CONTEXT;
    *device = found->ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSynchronize() {
  return withDevice([&](Machine &m, Device &device) {
    m.report.log("host: synchronize device");
    // Forbidden in every mode: captured work would be waited for.
    bool captures = false;
    for (const auto &stream : m.streams)
      if (stream->capture && stream->device == &device) {
        stream->capture->isInvalid = true;
        captures = true;
      }
    if (captures)
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (CUresult result = m.captureUnsafe())
      return result;
    return m.awaitDevice(device);
  });
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  return withDevice([&](Machine &m, Device &device) {
    if (flags)
      return CUDA_ERROR_INVALID_VALUE;
    Device *other = deviceOf(peer);
    if (!other || other == &device)
      return CUDA_ERROR_INVALID_CONTEXT;
    if (!m.traits.hasPeers)
      return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    auto &peers = device.peers;
    if (std::find(peers.begin(), peers.end(), other) != peers.end())
      return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    peers.push_back(other);
    return CUDA_SUCCESS;
  });
}

} // namespace tandem::cuda::driver
