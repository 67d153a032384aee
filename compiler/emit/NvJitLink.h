//===- NvJitLink.h - the library that assembles PTX -----------------------===//
//
// Opened at run time: nothing of it is needed to build or to start. Its
// functions are declared here by their published C interface.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_EMIT_NVJITLINK_H
#define TANDEM_COMPILER_EMIT_NVJITLINK_H

#include <cstddef>
#include <string>

namespace tandem {

class NvJitLink {
public:
  /// Returns the library, or null if there is none. It stays open.
  static const NvJitLink *find();

  /// Returns "nvJitLink 13.0".
  const std::string &name() const { return name_; }

  struct Outcome {
    std::string cubin; ///< empty if that failed
    std::string log;   ///< of the failure
    bool isTooOld = false;
  };
  Outcome assemble(const std::string &ptx, const std::string &arch) const;

private:
  using Handle = void *;
  static const NvJitLink *open();
  bool load(void *library);

  std::string name_;
  int (*create)(Handle *, unsigned, const char **) = nullptr;
  int (*destroy)(Handle *) = nullptr;
  int (*addData)(Handle, int, const void *, size_t, const char *) = nullptr;
  int (*complete)(Handle) = nullptr;
  int (*cubinSize)(Handle, size_t *) = nullptr;
  int (*cubin)(Handle, void *) = nullptr;
  int (*logSize)(Handle, size_t *) = nullptr;
  int (*log)(Handle, char *) = nullptr;
};

} // namespace tandem

#endif
