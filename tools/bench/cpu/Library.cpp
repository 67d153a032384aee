//===- Library.cpp --------------------------------------------------------===//
#include "tools/bench/cpu/Library.h"

#include <cstdlib>
#include <dlfcn.h>

using namespace tandem;
using namespace tandem::bench;

Library::Library(const std::vector<std::string> &names) {
  for (const std::string &name : names) {
    handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle)
      return;
    if (problem.empty())
      problem = dlerror();
  }
}

void *Library::symbol(const char *name) const {
  return handle ? dlsym(handle, name) : nullptr;
}

void bench::limitSpinning() { setenv("GOMP_SPINCOUNT", "20000", 0); }
