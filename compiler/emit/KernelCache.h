//===- KernelCache.h - code of kernels, kept between compilations ---------===//
//
// A folder with a file for each kernel, whose name is the hash of all that its
// code follows from (KernelKeys.h). It is there to save time and for nothing
// else: a compilation gives the same bytes with it and without it, and goes on
// whatever is wrong with it.
//
// Entries appear by renaming, so readers need no lock, and two processes that
// write the same entry write the same bytes. Each ends with a hash of its
// bytes; one that is damaged, or another kernel's, is removed and compiled
// again. The folder is the user's alone (SECURITY.md).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_EMIT_KERNELCACHE_H
#define TANDEM_COMPILER_EMIT_KERNELCACHE_H

#include "runtime/artifact/Status.h"

#include "ir/KernelFunctions.h"

#include "llvm/ADT/StringMap.h"

#include <memory>
#include <mutex>
#include <string>

namespace tandem {

/// A kernel's code, which defines it by the name `kernelSymbol`: an object file
/// with machine code, or by `deviceSymbol` PTX.
struct CompiledKernel {
  CompiledFacts facts;
  bool usesTiles = false; ///< of matrices (Target.h, withoutTiles)
  std::string object;
  // Of a GPU.
  std::string launch;  ///< `tandem.kernel` of its function, as text
  std::string bitcode; ///< the module that PTX was made of, where it is wanted
};

inline constexpr const char *kernelSymbol = "tandem.kernel";
/// An identifier of PTX that nothing else there contains.
inline constexpr const char *deviceSymbol = "__tandem_kernel__";

/// May be used by several threads at once.
class KernelCache {
public:
  /// The cache in `folder`, which is made if it is not there. `limit` is the
  /// most bytes that it keeps, after `trim`.
  KernelCache(std::string folder, uint64_t limit);

  /// Returns the entry of a key, or null. What the first call for a key says
  /// counts for the whole compilation, and what it returns lives as long as
  /// the cache.
  const CompiledKernel *find(llvm::StringRef key);
  void store(llvm::StringRef key, const CompiledKernel &kernel);
  /// Removes those entries that were used longest ago until the others fit.
  void trim();

  /// From here on nothing is read or written, for a reason.
  void close(const std::string &why);

  /// Why nothing is read or written; empty if nothing is wrong.
  std::string problem() const;
  /// "48 of 50 kernels were in 'caches/kernels', 2 are new".
  std::string summary() const;

private:
  std::string pathOf(llvm::StringRef key) const;
  std::unique_ptr<CompiledKernel> read(llvm::StringRef key);
  void fail(const std::string &why);

  const std::string folder;
  const uint64_t limit;
  bool isReadable = false, isWritable = false;
  mutable std::mutex mutex;
  std::string why;
  llvm::StringMap<std::unique_ptr<CompiledKernel>> asked;
  size_t found = 0, stored = 0, damaged = 0;
};

/// The bytes that a text says, "2GiB"; nothing if it says none.
std::optional<uint64_t> cacheBytes(llvm::StringRef text);

/// Where the cache is if nobody says: TANDEM_KERNEL_CACHE, else
/// $XDG_CACHE_HOME or $HOME/.cache, there tandem/kernels. "off" if there is no
/// such folder to name.
std::string defaultKernelCache();

} // namespace tandem

#endif
