//===- CacheFolder.h - where a user keeps what saves time -----------------===//
#ifndef TANDEM_COMPILER_CACHEFOLDER_H
#define TANDEM_COMPILER_CACHEFOLDER_H

#include <string>

namespace tandem {

/// $XDG_CACHE_HOME/tandem/`name`, or $HOME/.cache/tandem/`name`; empty if there
/// is no such folder to name.
std::string inCacheFolder(const char *name);

} // namespace tandem

#endif
