//===- Assemble.h - PTX to machine code, with what is installed -----------===//
//
// The driver compiles PTX when an artifact is loaded; what a CUDA toolkit can
// assemble beforehand is loaded at once. libnvJitLink is opened at run time;
// else the program `ptxas` is run: from PATH, from CUDA_HOME, CUDA_PATH or
// CUDA_ROOT, or from /usr/local/cuda. The environment's TANDEM_PTXAS names the
// only one to use; empty: none. Functions may be called from any thread.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_EMIT_ASSEMBLE_H
#define TANDEM_COMPILER_EMIT_ASSEMBLE_H

#include "runtime/artifact/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

/// What came of an attempt to assemble.
struct Assembly {
  std::string cubin; ///< empty: none
  std::string by;    ///< "nvJitLink 13.0", "/usr/local/cuda/bin/ptxas"
  /// Why there is none: there is no assembler, or none that is new enough.
  std::string problem;
  bool isTooOld = false;
};

/// Assembles a text for `arch` ("sm_90"). Fails only if an assembler that knows
/// the architecture and the version of PTX refuses the text.
Result<Assembly> assemble(const std::string &ptx, const std::string &arch);

/// What a kernel takes, as ptxas reports it.
struct KernelResources {
  std::string kernel;
  int64_t registers = 0;   ///< of a thread
  int64_t sharedBytes = 0; ///< that the kernel declares itself
  int64_t stackBytes = 0;  ///< of a thread
  int64_t spillStoreBytes = 0, spillLoadBytes = 0;
  /// What it says of products of warpgroups and of registers that are set:
  /// "(C7510) Potential Performance Loss: ...".
  std::vector<std::string> remarks = {};
};

/// Returns the path of ptxas, or "".
std::string findPtxas();

/// Fails with Usage if TANDEM_PTXAS names something that cannot be run.
Status checkNamedPtxas();

/// Returns what each kernel of a text takes, in the text's order. Unsupported
/// if there is no ptxas.
Result<std::vector<KernelResources>> resourcesOf(const std::string &ptx,
                                                 const std::string &arch);

} // namespace tandem

#endif
