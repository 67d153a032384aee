//===- NvJitLink.cpp - the library that assembles PTX ---------------------===//
#include "compiler/emit/NvJitLink.h"

#include <cstdlib>
#include <dlfcn.h>
#include <vector>

using namespace tandem;

static constexpr int kInputPtx = 2;
static constexpr int kUnrecognizedArch = 16, kUnsupportedArch = 17;

/// Its functions carry the version in their names.
static void *find(void *library, const std::string &function, unsigned major,
                  unsigned minor) {
  std::string name = "__" + function + "_" + std::to_string(major) + "_" +
                     std::to_string(minor);
  if (void *address = dlsym(library, name.c_str()))
    return address;
  return dlsym(library, function.c_str());
}

bool NvJitLink::load(void *library) {
  unsigned major = 0, minor = 0;
  auto version = reinterpret_cast<int (*)(unsigned *, unsigned *)>(
      dlsym(library, "nvJitLinkVersion"));
  if (!version || version(&major, &minor) != 0)
    return false;
  name_ = "nvJitLink " + std::to_string(major) + "." + std::to_string(minor);
  auto get = [&](const char *function, auto &target) {
    target = reinterpret_cast<std::remove_reference_t<decltype(target)>>(
        ::find(library, function, major, minor));
    return target != nullptr;
  };
  return get("nvJitLinkCreate", create) && get("nvJitLinkDestroy", destroy) &&
         get("nvJitLinkAddData", addData) &&
         get("nvJitLinkComplete", complete) &&
         get("nvJitLinkGetLinkedCubinSize", cubinSize) &&
         get("nvJitLinkGetLinkedCubin", cubin) &&
         get("nvJitLinkGetErrorLogSize", logSize) &&
         get("nvJitLinkGetErrorLog", log);
}

const NvJitLink *NvJitLink::open() {
  std::vector<std::string> names;
  std::string file = "libnvJitLink.so";
  for (const char *major : {".14", ".13", ".12", ""})
    names.push_back(file + major);
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"})
    if (const char *folder = std::getenv(variable); folder && *folder)
      for (const char *lib : {"/lib64/", "/lib/"})
        names.push_back(folder + (lib + file));
  names.push_back("/usr/local/cuda/lib64/" + file);
  for (const std::string &name : names)
    if (void *library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      static NvJitLink loaded;
      if (loaded.load(library))
        return &loaded;
    }
  return nullptr;
}

const NvJitLink *NvJitLink::find() {
  static const NvJitLink *found = open();
  return found;
}

NvJitLink::Outcome NvJitLink::assemble(const std::string &ptx,
                                       const std::string &arch) const {
  Outcome outcome;
  std::string archOption = "-arch=" + arch;
  const char *options[] = {archOption.c_str(), "-O3"};
  Handle handle = nullptr;
  int result = create(&handle, 2, options);
  if (result == 0) {
    // The size counts the zero at the end.
    result =
        addData(handle, kInputPtx, ptx.c_str(), ptx.size() + 1, "kernels.ptx");
    if (result == 0)
      result = complete(handle);
  }
  size_t size = 0;
  if (result == 0 && cubinSize(handle, &size) == 0) {
    outcome.cubin.resize(size);
    result = cubin(handle, outcome.cubin.data());
  }
  if (result != 0) {
    outcome.cubin.clear();
    if (handle && logSize(handle, &size) == 0 && size > 0) {
      outcome.log.resize(size);
      log(handle, outcome.log.data());
      outcome.log.resize(outcome.log.find_last_not_of(" \n\0") + 1);
    }
    if (outcome.log.empty())
      outcome.log = "error " + std::to_string(result);
    outcome.isTooOld =
        result == kUnrecognizedArch || result == kUnsupportedArch ||
        outcome.log.find("Unsupported .version") != std::string::npos;
  }
  if (handle)
    destroy(&handle);
  return outcome;
}
