//===- Module.cpp - code, loaded by the driver ----------------------------===//
//
// See Module.h.
//
//===----------------------------------------------------------------------===//
#include "cuda/Module.h"

#include <array>
#include <cstring>
#include <string_view>

namespace tandem::cuda {

using namespace driver;

namespace {

/// Returns ", version 8.3" of PTX; nothing of other code.
std::string ptxVersion(const void *image) {
  constexpr std::string_view key = ".version ";
  // PTX ends in a zero; a cubin begins with bytes that are no text.
  const std::string_view text(
      static_cast<const char *>(image),
      ::strnlen(static_cast<const char *>(image), 4096));
  const size_t at = text.find(key);
  if (at == std::string_view::npos)
    return "";
  const std::string_view rest = text.substr(at + key.size(), 8);
  return ", version " +
         std::string(rest.substr(0, rest.find_first_not_of("0123456789.")));
}

} // namespace

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
  if (result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
    message += "; the driver, for CUDA " + context.driver().versionText() +
               ", is older than the code's PTX" + ptxVersion(image) +
               ": expected a later driver, or code as a cubin";
  std::string said(log.data(), ::strnlen(log.data(), log.size()));
  while (!said.empty() && (said.back() == '\n' || said.back() == ' '))
    said.pop_back();
  if (!said.empty())
    message += "; the driver's compiler says: " + said;
  return Status::failed(message);
}

} // namespace tandem::cuda
