//===- CacheFolder.cpp - where a user keeps what saves time ---------------===//
#include "compiler/CacheFolder.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"

#include <cstdlib>

std::string tandem::inCacheFolder(const char *name) {
  llvm::SmallString<128> path;
  if (const char *cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    path = cache;
  else if (const char *home = std::getenv("HOME"); home && *home)
    llvm::sys::path::append(path, home, ".cache");
  else
    return "";
  llvm::sys::path::append(path, "tandem", name);
  return path.str().str();
}
