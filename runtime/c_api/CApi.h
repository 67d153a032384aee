//===- CApi.h - what the files of the C API share -------------------------===//
//
// Internal to the C API. Each of its functions checks its pointers, calls the
// C++ runtime, and keeps the message for the calling thread. Exceptions of the
// standard library (memory, threads) end here. Structs that may grow are copied
// in and out by the size that the caller was compiled with.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_C_API_CAPI_H
#define TANDEM_RUNTIME_C_API_CAPI_H

#include "runtime/artifact/Text.h"
#include "runtime/graph/Hooks.h"
#include "runtime/model/Model.h"
#include "runtime/tandem.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>

struct tdm_model {
  tandem::runtime::Model model;
};
struct tdm_tensor {
  tandem::runtime::Tensor tensor;
  /// Where its gradient goes; of a leaf, none before the first use.
  tandem::graph::Edge edge = {};
  std::shared_ptr<tandem::graph::Retained> retained = {};
  bool isPlace = false; ///< it stands for its edge alone
};
struct tdm_context {
  tandem::runtime::Context context;
};

namespace tandem::capi {

inline thread_local std::string lastError;

/// Runs `fn`, which returns a Status, and keeps its message: names in it, which
/// are the caller's or a file's, have no control characters there. The last one
/// stays until then: it may be an argument.
template <typename Fn> tdm_status call(Fn fn) {
  Status status;
  try {
    status = fn();
    lastError = artifact::hasControls(status.message())
                    ? artifact::forScreen(status.message())
                    : status.message();
  } catch (const std::bad_alloc &) {
    status = Status::failed("out of memory");
    lastError.assign("out of memory"); // fits without allocating
  } catch (const std::exception &error) {
    status = Status::failed("");
    lastError.assign(error.what());
  } catch (...) { // of a callback
    status = Status::failed("");
    lastError.assign("an exception of an unknown type");
  }
  return static_cast<tdm_status>(status.code());
}

/// No struct of any version is larger: a size beyond is no size.
inline constexpr size_t mostStruct = 4096;

inline Status checkSize(const char *name, size_t size, size_t known) {
  // A struct with a size_t has whole ones of them: no field is cut.
  if (size >= 2 * sizeof(size_t) && size <= mostStruct &&
      size % sizeof(size_t) == 0)
    return Status::success();
  return Status::usage("expected 'struct_size' of '" + std::string(name) +
                       "' to be its size, " + std::to_string(known) +
                       ", but got " + std::to_string(size) +
                       " (begin with TDM_..._INIT)");
}

inline Status newer(const char *name, size_t size, size_t known) {
  return Status::unsupported(
      "'" + std::string(name) + "' has " + std::to_string(size) +
      " bytes, of which this library (" TANDEM_VERSION ") knows " +
      std::to_string(known) + ", and what follows is set");
}

inline Status null(const char *what) {
  bool isVowel =
      std::string_view("aeiou").find(what[0]) != std::string_view::npos;
  return Status::usage((isVowel ? "expected an " : "expected a ") +
                       std::string(what) + " but got null");
}

/// Fails if the list or one of its names, or unless `mayBeNull` a tensor, is
/// null.
inline Status checkList(const tdm_argument *list, size_t count,
                        const char *what, bool mayBeNull = false) {
  if (count && !list)
    return null(what);
  for (size_t i = 0; i < count; ++i)
    if (!list[i].name || (!list[i].tensor && !mayBeNull))
      return Status::usage(
          std::string(what) + " number " + std::to_string(i) +
          (list[i].name ? " ('" + std::string(list[i].name) + "')" : "") +
          ": expected a name and a tensor but got null");
  return Status::success();
}

/// What this library knows of a caller's struct, whose first member is the size
/// that it was compiled with: a copy, in which what a shorter struct lacks is
/// zero. Fails if the size is none, or if a longer struct has something in what
/// this library does not know.
template <typename T>
Status takeStruct(const char *name, const T &given, T &known) {
  // In parts: of a shorter struct nothing else may be read.
  size_t size = given.struct_size;
  if (Status status = checkSize(name, size, sizeof(T)); !status)
    return status;
  const auto *bytes = reinterpret_cast<const unsigned char *>(&given);
  for (size_t i = sizeof(T); i < size; ++i)
    if (bytes[i])
      return newer(name, size, sizeof(T));
  known = T();
  std::memcpy(&known, bytes, std::min(size, sizeof(T)));
  return Status::success();
}

/// Fills a caller's struct as far as it goes; what it has beyond stays.
template <typename T> Status giveStruct(const char *name, T known, T &place) {
  size_t size = place.struct_size;
  if (Status status = checkSize(name, size, sizeof(T)); !status)
    return status;
  known.struct_size = size;
  std::memcpy(&place, &known, std::min(size, sizeof(T)));
  return Status::success();
}

/// Wraps hooks of a C program.
std::shared_ptr<const runtime::SavedHooks>
hooksFrom(const tdm_saved_hooks &hooks);

/// Hands a tensor over.
inline Status give(Result<runtime::Tensor> tensor, tdm_tensor **out) {
  if (!tensor)
    return std::move(tensor).status();
  *out = new tdm_tensor{std::move(*tensor)};
  return Status::success();
}

} // namespace tandem::capi

#endif
