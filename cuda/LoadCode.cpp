//===- LoadCode.cpp - loads an artifact's code on a GPU -------------------===//
//
// Which code fits: a cubin runs on devices of its major compute capability from
// its minor one on, PTX is compiled for any later device; code for "sm_90a" and
// the like runs on that one alone. Of several variants the one for just this
// device is taken, else a cubin before PTX, and of equals the latest. The
// emulator's devices run the section "emulation" (before 0.2 "emulation.cuda").
//
//===----------------------------------------------------------------------===//
#include "cuda/CudaCode.h"
#include "cuda/CudaDevice.h"
#include "cuda/Module.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <tuple>

namespace tandem::cuda {

using namespace driver;
using artifact::ArtifactReader;
using artifact::Kernel;
using runtime::DeviceKind;

namespace {

/// What "sm_90a" says; 0 if it is no such text.
struct Arch {
  int capability = 0; ///< 90
  bool isExact = false;
};

Arch parseArch(const std::string &text) {
  Arch arch;
  size_t at = text.rfind("sm_", 0) == 0 ? 3 : text.size();
  for (; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]));
       ++at)
    arch.capability = std::min(arch.capability * 10 + (text[at] - '0'), 10000);
  arch.isExact = at < text.size();
  return arch;
}

bool fitsPtx(Arch arch, int device) {
  if (arch.capability == 0)
    return false;
  return arch.isExact ? device == arch.capability : device >= arch.capability;
}

bool fitsCubin(Arch arch, int device) {
  return fitsPtx(arch, device) && device / 10 == arch.capability / 10;
}

std::span<const std::byte> emulationOf(const ArtifactReader &reader) {
  auto image = reader.code("emulation");
  return image.empty() ? reader.section("emulation.cuda") : image;
}

/// How well the code of the reader's target suits a device: the larger, the
/// better, part by part; nothing if it does not run there.
using Suits = std::tuple<bool, bool, int, bool>;
std::optional<Suits> suits(const ArtifactReader &reader, int device,
                           bool isEmulated) {
  Arch arch = parseArch(reader.manifest().target.arch);
  bool isBuilt = isEmulated
                     ? !emulationOf(reader).empty()
                     : !reader.code("cubin").empty() && fitsCubin(arch, device);
  bool runs = isBuilt || (!isEmulated && !reader.code("ptx").empty());
  // A program that only changes handles has no code.
  bool hasNone = reader.manifest().kernels.empty();
  if (!fitsPtx(arch, device) || !(runs || hasNone))
    return std::nullopt;
  return Suits(device == arch.capability, isBuilt, arch.capability,
               arch.isExact);
}

/// Kernels may have this much shared memory without asking.
constexpr int64_t plainSharedBytes = 48 * 1024;

} // namespace

/// Where there is one variant, or none that fits, the loader says what is
/// wrong.
Status CudaDevice::choose(ArtifactReader &reader,
                          const std::string &variant) const {
  if (!variant.empty())
    return Backend::choose(reader, variant);
  std::optional<Suits> best;
  size_t found = 0, cudas = 0;
  std::string archs;
  ArtifactReader one = reader;
  for (size_t i = 0; i < reader.manifests().size(); ++i) {
    const artifact::Target &target = reader.manifests()[i].target;
    if (target.kind != "cuda")
      continue;
    ++cudas;
    archs += (archs.empty() ? "'" : ", '") + target.arch + "'";
    one.choose(i);
    std::optional<Suits> how =
        suits(one, context->capability(), device().kind == DeviceKind::CudaEmu);
    if (how && (!best || *how > *best)) {
      best = how;
      found = i;
    }
  }
  if (best)
    reader.choose(found);
  else if (cudas > 1)
    return Status::noDevice("expected a device for one of " + archs +
                            " but got " + context->name() + ", " +
                            context->arch());
  return Status::success();
}

CudaCode::CudaCode(DeviceParts device, ArtifactReader its)
    : device(device), context(device.context), reader(std::move(its)),
      manifest(reader.manifest()), tags(manifest) {
  for (const artifact::Program &program : manifest.programs) {
    Program one;
    one.program = &program;
    programs.push_back(std::move(one));
  }
  // A block's share of a GPU's memory and arithmetic, and the cost of an event,
  // in round numbers: they only decide what is worth a stream of its own.
  concurrency = {context.multiprocessors(), 25e9, 300e9, 10e-6, 3};
  for (const Kernel &kernel : manifest.kernels)
    scratchBytes = std::max(scratchBytes, kernel.scratchBytes);
}

Result<std::unique_ptr<runtime::DeviceCode>>
CudaCode::load(DeviceParts device, const ArtifactReader &reader,
               const runtime::LoadOptions &options) {
  std::unique_ptr<CudaCode> code(new CudaCode(device, reader));
  Result<CUstream> home = device.streams.at(0);
  Status status = home.status();
  if (status.ok()) {
    code->home = *home;
    status = code->loadModules();
  }
  if (status.ok())
    status = code->loadKernels();
  if (status.ok() && options.useLibraries)
    status = code->prepareCalls();
  if (status.ok())
    status = code->loadConstants();
  if (status.ok())
    status = code->reserveMemory();
  if (!status)
    return std::move(status).in("cannot load '" + code->manifest.model +
                                "' on device '" +
                                toString(device.context.device()) + "'");
  return std::unique_ptr<runtime::DeviceCode>(std::move(code));
}

CudaCode::~CudaCode() {
  Context::Scope scope(context);
  programs.clear();
  Context::Relaxed relaxed(context); // what ends here is in nobody's capture
  if (!finishRuns())
    return; // what may be in use stays
  ranks.reset();
  if (word)
    device.memory.release(word, home, {});
  if (recorder)
    context.call().streamDestroy(recorder);
  for (auto &[key, memory] : scratch)
    device.memory.release(memory, key.first == ofCaptures ? home : key.first,
                          {});
  if (constants)
    device.memory.release(constants, home, {});
  for (CUmodule module : modules)
    context.call().moduleUnload(module);
}

/// Waits for all runs; false where that cannot be. Events say when they end: to
/// wait for the whole device would end the captures of others. Only a graph
/// that a caller has captured runs nobody knows where.
bool CudaCode::finishRuns() {
  bool areDone = true;
  if (wasCaptured) {
    std::lock_guard<std::mutex> lock(context.recording());
    areDone =
        context.check(context.call().ctxSynchronize(), "cuCtxSynchronize").ok();
  } else {
    // Where a stream records, it is something else, and behind runs of this.
    for (CUstream stream : usedStreams)
      areDone &=
          !context.isCapturing(stream) && device.events.await(stream).ok();
  }
  return areDone || context.isLost();
}

Status CudaCode::loadModules() {
  const artifact::Target &target = manifest.target;
  if (target.kind != "cuda")
    return Status::unsupported("expected code for 'cuda' but got code for '" +
                               target.kind + "'");
  // A program that only changes handles has no code.
  if (manifest.kernels.empty())
    return Status::success();
  auto load = [&](std::span<const std::byte> image, const char *kind) {
    Result<CUmodule> module =
        loadModule(context, image.data(), "the " + std::string(kind));
    if (!module)
      return std::move(module).status();
    modules.push_back(*module);
    loaded = kind;
    return Status::success();
  };
  if (context.device().kind == DeviceKind::CudaEmu) {
    if (auto image = emulationOf(reader); !image.empty())
      return load(image, "emulation image");
    return Status::noDevice("the artifact has no image for the emulator: "
                            "expected the section 'emulation'");
  }
  Arch arch = parseArch(target.arch);
  int found = context.capability();
  Status refused;
  if (auto cubin = reader.code("cubin");
      !cubin.empty() && fitsCubin(arch, found)) {
    refused = load(cubin, "cubin");
    if (refused.ok() || context.isLost())
      return refused;
  }
  auto ptx = reader.code("ptx");
  if (!ptx.empty() && fitsPtx(arch, found)) {
    if (ptx.back() != std::byte(0))
      return Status::failed("the artifact's PTX does not end with a zero");
    return load(ptx, "PTX");
  }
  if (!refused)
    return refused;
  return Status::noDevice("expected a device for '" + target.arch +
                          "' code but got " + context.name() + ", " +
                          context.arch());
}

std::string CudaCode::description() const {
  size_t marked = 0, prepared = 0;
  for (const Program &program : programs)
    for (size_t i = 0; i < program.program->launches.size(); ++i) {
      marked += program.program->launches[i].library.has_value();
      prepared += i < program.calls.size() && program.calls[i] != nullptr;
    }
  std::string text = loaded;
  if (marked)
    text += ", " + std::to_string(prepared) + " of " + std::to_string(marked) +
            " calls of libraries";
  return text;
}

Status CudaCode::loadKernels() {
  const Functions &call = context.call();
  std::string problems;
  for (const Kernel &kernel : manifest.kernels) {
    LoadedKernel loaded;
    auto problem = [&](const std::string &text) {
      problems += (problems.empty() ? "" : "; ") +
                  ("kernel '" + kernel.symbol) + "': " + text;
    };
    int64_t threads = 1;
    for (size_t d = 0; d < kernel.block.size() && d < 3; ++d) {
      loaded.block[d] = static_cast<unsigned>(kernel.block[d]);
      threads *= kernel.block[d];
    }
    loaded.sharedBytes = static_cast<unsigned>(kernel.sharedBytes);
    CUresult result = CUDA_ERROR_NOT_FOUND;
    for (CUmodule module : modules)
      if (result == CUDA_ERROR_NOT_FOUND)
        result = call.moduleGetFunction(&loaded.function, module,
                                        kernel.symbol.c_str());
    int own = 0, most = 0;
    if (!result)
      result = call.funcGetAttribute(&own, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                                     loaded.function);
    if (!result)
      result = call.funcGetAttribute(
          &most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, loaded.function);
    if (result) {
      problem(context.check(result, "cuModuleGetFunction").message());
      if (context.isLost())
        break;
      continue;
    }
    if (threads > most)
      problem("expected at most " + std::to_string(most) +
              " threads of a block but got " + std::to_string(threads));
    if (int64_t all = own + kernel.sharedBytes; all > context.maxSharedBytes())
      problem("expected at most " + std::to_string(context.maxSharedBytes()) +
              " bytes of shared memory but got " + std::to_string(all));
    else if (all > plainSharedBytes && kernel.sharedBytes > 0)
      if (CUresult set = call.funcSetAttribute(
              loaded.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
              static_cast<int>(kernel.sharedBytes)))
        problem(context.check(set, "cuFuncSetAttribute").message());
    kernels.push_back(loaded);
  }
  return problems.empty() ? Status::success() : Status::failed(problems);
}

/// Prepares what libraries may compute. Where one cannot, whatever the cause,
/// the kernel runs.
Status CudaCode::prepareCalls() {
  for (Program &program : programs) {
    const std::vector<artifact::Launch> &launches = program.program->launches;
    auto isMarked = [](const artifact::Launch &launch) {
      return launch.library.has_value();
    };
    if (std::none_of(launches.begin(), launches.end(), isMarked))
      continue;
    program.calls.resize(launches.size());
    program.ofLibrary = std::make_unique<bool[]>(launches.size());
    for (size_t i = 0; i < launches.size(); ++i) {
      if (!isMarked(launches[i]))
        continue;
      const artifact::LibraryCall &call = *launches[i].library;
      int64_t bytes =
          call.workspace ? program.program->buffers[*call.workspace].bytes : 0;
      Result<std::unique_ptr<PreparedCall>> prepared =
          device.libraries.prepare(call, bytes);
      if (context.isLost())
        return context.lostStatus();
      if (!prepared)
        continue;
      program.calls[i] = std::move(*prepared);
      program.ofLibrary[i] = true;
      if (Status status = needRecorder(); !status)
        return status;
    }
  }
  return Status::success();
}

Status CudaCode::needRecorder() {
  if (recorder)
    return Status::success();
  Context::Relaxed relaxed(context);
  return context.check(
      context.call().streamCreate(&recorder, CU_STREAM_NON_BLOCKING),
      "cuStreamCreate");
}

Status CudaCode::loadConstants() {
  auto bytes = reader.constants();
  if (bytes.empty())
    return Status::success();
  auto size = static_cast<int64_t>(bytes.size());
  Result<void *> memory = allocate(size, home, "constants");
  if (!memory)
    return std::move(memory).status();
  constants = static_cast<char *>(*memory);
  if (Status status =
          device.staging.upload(constants, bytes.data(), size, home);
      !status)
    return status;
  // Every other stream finds them there.
  return context.check(context.call().streamSynchronize(home),
                       "cuStreamSynchronize");
}

/// Makes what runs must not make while a graph is captured.
Status CudaCode::reserveMemory() {
  size_t awaited = 0;
  bool hasCopies = false, hasRanks = false;
  for (const artifact::Program &program : manifest.programs) {
    awaited = std::max(awaited, program.launches.size());
    hasCopies |= std::any_of(
        program.launches.begin(), program.launches.end(),
        [](const artifact::Launch &launch) { return launch.isCopy(); });
    hasRanks |= std::any_of(
        program.launches.begin(), program.launches.end(),
        [](const artifact::Launch &launch) { return launch.isCollective(); });
  }
  int count = tags.streams();
  int all = count + concurrency.extraStreams;
  if (hasCopies || hasRanks)
    all += CommandList::copyStreams;
  if (hasRanks)
    all += CommandList::rankStreams;
  if (all > 1) {
    if (Result<CUstream> last = device.streams.at(all - 2); !last)
      return std::move(last).status();
    if (Status status = device.events.reserve(awaited + 1); !status)
      return status;
  }
  if (scratchBytes == 0)
    return Status::success();
  for (int number = 0; number < count; ++number) {
    Result<void *> memory = addScratch({ofCaptures, number}, home);
    if (!memory)
      return std::move(memory).status();
  }
  return context.check(context.call().streamSynchronize(home),
                       "cuStreamSynchronize");
}

} // namespace tandem::cuda
