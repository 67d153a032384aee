//===- OpenBlas.cpp - matrix products of OpenBLAS -------------------------===//
#include "tools/bench/cpu/OpenBlas.h"
#include "tools/bench/cpu/Library.h"

#include <cstdlib>

using namespace tandem;
using namespace tandem::bench;

namespace {

enum { kRowMajor = 101, kNoTranspose = 111, kTranspose = 112 }; // cblas.h

/// Where OpenBLAS does not know a processor, which is newer than itself, it
/// falls back to code without AVX. Its kernels of f32 are the same for all
/// processors with AVX-512.
void nameCore() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
  else if (__builtin_cpu_supports("fma"))
    setenv("OPENBLAS_CORETYPE", "Haswell", 0);
#endif
}

struct OpenBlas {
  explicit OpenBlas(const std::string &path)
      : library(path.empty() ? std::vector<std::string>{"libopenblas.so.0",
                                                        "libopenblas.so"}
                             : std::vector<std::string>{path}) {
    isComplete = library.find("cblas_sgemm", sgemm) &&
                 library.find("openblas_set_num_threads", setThreads);
  }
  Library library;
  void (*sgemm)(int order, int transposeA, int transposeB, int m, int n, int k,
                float alpha, const float *a, int lda, const float *b, int ldb,
                float beta, float *c, int ldc);
  void (*setThreads)(int threads);
  bool isComplete;
};

std::string place;

const OpenBlas &openBlasLibrary() {
  static OpenBlas library = (nameCore(), OpenBlas(place));
  return library;
}

} // namespace

void bench::setOpenBlas(const std::string &path) { place = path; }

std::string bench::openBlasProblem() {
  const OpenBlas &blas = openBlasLibrary();
  return blas.isComplete ? "" : "no OpenBLAS: " + blas.library.error();
}

Peer bench::openBlas(const Product &p) {
  return [p](const std::vector<Tensor> &inputs,
             const std::vector<Tensor> &outputs,
             int threads) -> std::vector<Contender> {
    const OpenBlas &blas = openBlasLibrary();
    if (!blas.isComplete)
      return {};
    blas.setThreads(threads);
    Contender contender;
    contender.name = "openblas";
    contender.outputs = outputs;
    auto y = contender.outputs[0];
    contender.call = [p, &blas, lhs = inputs[0], rhs = inputs[1], y]() mutable {
      auto *to = y.mutableData<float>();
      for (int64_t b = 0; b < p.batch; ++b)
        blas.sgemm(kRowMajor, p.transposeLhs ? kTranspose : kNoTranspose,
                   p.transposeRhs ? kTranspose : kNoTranspose,
                   static_cast<int>(p.m), static_cast<int>(p.n),
                   static_cast<int>(p.k), 1, lhs.data<float>() + b * p.m * p.k,
                   static_cast<int>(p.transposeLhs ? p.m : p.k),
                   rhs.data<float>() + b * p.k * p.n,
                   static_cast<int>(p.transposeRhs ? p.k : p.n), 0,
                   to + b * p.m * p.n, static_cast<int>(p.n));
    };
    return {contender};
  };
}
