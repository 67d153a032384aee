//===- Modules.h - code and kernels ---------------------------------------===//
//
// A module is an emulation image (KernelEmulator.h), or PTX whose kernels have
// twins written for the host.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_MODULES_H
#define TANDEM_CUDA_EMULATOR_MODULES_H

#include "cuda/emulator/Control.h"
#include "cuda/emulator/KernelEmulator.h"
#include "cuda/emulator/Operation.h"

#include <map>
#include <string>

namespace tandem::emulator {

class Machine;

/// A kernel for the host, in the place of one in PTX.
struct Twin {
  std::vector<size_t> parameterBytes;
  TandemEmulatorKernel kernel = nullptr;
};

/// What a CUfunction points to.
struct Function {
  std::string name;
  std::shared_ptr<const Image> image; ///< null: `twin`
  const Kernel *kernel = nullptr;
  Twin twin;
  std::vector<size_t> parameterBytes;
  size_t sharedBytes = 0;  ///< static
  size_t dynamicLimit = 0; ///< of dynamic shared memory
};

/// What a CUmodule points to.
struct Module {
  std::shared_ptr<const Image> image;
  std::map<std::string, Twin> twins;
  std::map<std::string, Function *> functions; ///< those asked for; owned here
};

/// Sets the twin of the kernels called `name`.
void setTwin(const std::string &name, Twin twin);

/// Returns the module of an image or PTX text, or null: then `result` and `log`
/// say why.
std::unique_ptr<Module> loadModule(const Machine &machine, const void *image,
                                   driver::CUresult &result, std::string &log);
/// Returns a kernel of a module, or null.
Function *findFunction(Machine &machine, Module &module,
                       const std::string &name);

/// How a kernel is launched.
struct LaunchShape {
  Dim3 grid, block;
  size_t dynamicShared = 0;
};

/// Sets `command` to a launch of the kernel with its parameters as they are
/// now; or returns what is wrong with it.
driver::CUresult makeLaunch(Machine &machine, const Function &function,
                            const LaunchShape &shape, void **parameters,
                            Command &command);

/// Returns a call of a function of the host.
Command hostCommand(driver::CUhostFn function, void *data);

} // namespace tandem::emulator

#endif
