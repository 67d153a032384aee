//===- Plugin.cpp - libraries that connect processes ----------------------===//
#include "runtime/comm/Plugin.h"

#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <fstream>
#include <vector>

namespace tandem::comm {

// The dynamic linker knows a program by the word that it was called with, and a
// library by that of dlopen: neither says a folder, or one that the current
// folder has nothing to do with any more. The kernel knows which file is mapped
// where.
std::string ownFolder() {
  static const char within = 0; // of no other library, as a function may be
  auto here = reinterpret_cast<uintptr_t>(&within);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2 ||
        here < begin || here >= end)
      continue;
    size_t path = line.find('/');
    return path == std::string::npos
               ? ""
               : line.substr(path, line.rfind('/') + 1 - path);
  }
  return "";
}

Result<void *> openPlugin(const std::string &what, const std::string &name,
                          const char *symbol) {
  std::vector<std::string> files{name};
  if (name.find('/') == std::string::npos) {
    std::string file = "libtandem-" + name + ".so", folder = ownFolder();
    files = {file};
    if (!folder.empty())
      files = {folder + file, folder + "../lib/" + file, file};
  }
  std::string reasons;
  for (const std::string &file : files) {
    void *handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char *reason = ::dlerror();
      reasons += (reasons.empty() ? "" : "; ") +
                 std::string(reason ? reason : file.c_str());
      continue;
    }
    if (void *found = ::dlsym(handle, symbol))
      return found;
    ::dlclose(handle);
    return Status::unsupported("'" + file + "' is no " + what +
                               ": it has no '" + symbol + "'");
  }
  return Status::unsupported("the " + what + " '" + name +
                             "' cannot be opened: " + reasons);
}

} // namespace tandem::comm
