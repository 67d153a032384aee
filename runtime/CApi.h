//===- CApi.h - what the files of the C API share -------------------------===//
//
// Internal to the C API. Each of its functions checks its pointers, calls the
// C++ runtime, and keeps the message for the calling thread. Exceptions of the
// standard library (memory, threads) end here.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_CAPI_H
#define TANDEM_RUNTIME_CAPI_H

#include "runtime/Model.h"
#include "runtime/tandem.h"

#include <exception>
#include <new>
#include <string>
#include <string_view>

struct tdm_model {
  tandem::runtime::Model model;
};
struct tdm_tensor {
  tandem::runtime::Tensor tensor;
};
struct tdm_context {
  tandem::runtime::Context context;
};

namespace tandem::capi {

inline thread_local std::string lastError;

/// Runs `fn`, which returns a Status, and keeps its message.
template <typename Fn> tdm_status call(Fn fn) {
  lastError.clear();
  Status status;
  try {
    status = fn();
    lastError = status.message();
  } catch (const std::bad_alloc &) {
    status = Status::failed("out of memory");
    lastError.assign("out of memory"); // fits without allocating
  } catch (const std::exception &error) {
    status = Status::failed("");
    lastError.assign(error.what());
  }
  return static_cast<tdm_status>(status.code());
}

inline Status null(const char *what) {
  bool isVowel =
      std::string_view("aeiou").find(what[0]) != std::string_view::npos;
  return Status::usage((isVowel ? "expected an " : "expected a ") +
                       std::string(what) + " but got null");
}

/// Hands a tensor over.
inline Status give(Result<runtime::Tensor> tensor, tdm_tensor **out) {
  if (!tensor)
    return std::move(tensor).status();
  *out = new tdm_tensor{std::move(*tensor)};
  return Status::success();
}

} // namespace tandem::capi

#endif
