//===- Module.cpp - code, loaded by the driver ----------------------------===//
//
// See Module.h.
//
//===----------------------------------------------------------------------===//
#include "cuda/Module.h"

#include <array>
#include <cstring>

namespace tandem::cuda {

using namespace driver;

Result<CUmodule> loadModule(const Context &context, const void *image,
                            const std::string &called) {
  std::array<char, 8192> log = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  // The driver takes numbers as pointers here.
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size() - 1)};
  CUmodule module = nullptr;
  CUresult result =
      context.call().moduleLoadDataEx(&module, image, 2, options, values);
  if (result == CUDA_SUCCESS)
    return module;
  Status status = context.check(result, "cuModuleLoadDataEx");
  std::string message = "cannot load " + called + ": " + status.message();
  std::string said(log.data(), ::strnlen(log.data(), log.size()));
  while (!said.empty() && (said.back() == '\n' || said.back() == ' '))
    said.pop_back();
  if (!said.empty())
    message += "; the driver's compiler says: " + said;
  return Status::failed(message);
}

} // namespace tandem::cuda
