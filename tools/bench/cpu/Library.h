//===- Library.h - a library that is opened while running -----------------===//
//
// Tandem neither builds nor runs with the libraries that it is compared with:
// they are looked for when the benchmark runs, and left out where they are not
// there. Their functions are declared where they are used, as in their headers.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_BENCH_CPU_LIBRARY_H
#define TANDEM_TOOLS_BENCH_CPU_LIBRARY_H

#include <string>
#include <vector>

namespace tandem::bench {

class Library {
public:
  /// Opens the first of `names` that is there.
  explicit Library(const std::vector<std::string> &names);

  bool isOpen() const { return handle != nullptr; }
  const std::string &error() const { return problem; }

  /// Sets `function` to the one of this name; false if there is none.
  template <typename Function>
  bool find(const char *name, Function *&function) const {
    function = reinterpret_cast<Function *>(symbol(name));
    return function != nullptr;
  }

private:
  void *symbol(const char *name) const;
  void *handle = nullptr;
  std::string problem;
};

/// Threads of the libraries' OpenMP spin for about a millisecond after a call:
/// through the calls of one turn, but not through the next one's. To be called
/// before a library is opened.
void limitSpinning();

} // namespace tandem::bench

#endif
