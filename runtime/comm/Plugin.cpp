//===- Plugin.cpp - libraries that connect processes ----------------------===//
#include "runtime/comm/Plugin.h"

#include <dlfcn.h>
#include <vector>

namespace tandem::comm {

namespace {

/// The folder of the library, or program, that this code is in; with '/'.
std::string ownFolder() {
  Dl_info found = {};
  if (!::dladdr(reinterpret_cast<void *>(&ownFolder), &found) ||
      !found.dli_fname)
    return "";
  std::string path = found.dli_fname;
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

} // namespace

Result<void *> openPlugin(const std::string &what, const std::string &name,
                          const char *symbol) {
  std::vector<std::string> files{name};
  if (name.find('/') == std::string::npos) {
    std::string file = "libtandem-" + name + ".so", folder = ownFolder();
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
