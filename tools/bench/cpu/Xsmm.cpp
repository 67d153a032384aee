//===- Xsmm.cpp - small matrix products of libxsmm ------------------------===//
//
// libxsmm is column-major: its y is ours transposed, so that its first factor
// is our rhs. It has kernels, and leaves tiles and threads to its user.
//
//===----------------------------------------------------------------------===//
#include "tools/bench/cpu/Xsmm.h"
#include "tools/bench/cpu/Library.h"

using namespace tandem;
using namespace tandem::bench;

namespace {

enum { kTransposeA = 1, kTransposeB = 2 }; // libxsmm_gemm_flags

using Kernel = void(const float *a, const float *b, float *c, ...);

struct Xsmm {
  explicit Xsmm(const std::string &path)
      : library({path.empty() ? "libxsmm.so" : path}),
        openMp({"libgomp.so.1"}) {
    isComplete = library.find("libxsmm_init", init) &&
                 library.find("libxsmm_smmdispatch", dispatch) &&
                 openMp.find("GOMP_parallel", parallel) &&
                 openMp.find("omp_get_thread_num", threadNumber);
    if (isComplete)
      init();
  }
  Library library, openMp;
  void (*init)();
  Kernel *(*dispatch)(int m, int n, int k, const int *lda, const int *ldb,
                      const int *ldc, const float *alpha, const float *beta,
                      const int *flags, const int *prefetch);
  void (*parallel)(void (*body)(void *), void *data, unsigned threads,
                   unsigned flags);
  int (*threadNumber)();
  bool isComplete;
};

std::string place;

const Xsmm &xsmmLibrary() {
  static Xsmm library(place);
  return library;
}

/// The tiles of all products of a batch.
struct Tiles {
  Product p;
  int64_t rows, columns; ///< of a tile; they divide the result's
  Kernel *kernel;
  Tensor lhs, rhs, y;
  int threads;

  int64_t count() const { return p.batch * (p.m / rows) * (p.n / columns); }

  void run(int64_t tile) {
    int64_t column = tile % (p.n / columns) * columns;
    tile /= p.n / columns;
    int64_t row = tile % (p.m / rows) * rows, b = tile / (p.m / rows);
    const float *left =
        lhs.data<float>() + b * p.m * p.k + (p.transposeLhs ? row : row * p.k);
    const float *right = rhs.data<float>() + b * p.k * p.n +
                         (p.transposeRhs ? column * p.k : column);
    auto *to = static_cast<float *>(const_cast<void *>(y.data()));
    kernel(right, left, to + b * p.m * p.n + row * p.n + column);
  }

  static void part(void *data) {
    auto &tiles = *static_cast<Tiles *>(data);
    int thread = xsmmLibrary().threadNumber();
    int64_t count = tiles.count();
    int64_t end = count * (thread + 1) / tiles.threads;
    for (int64_t tile = count * thread / tiles.threads; tile < end; ++tile)
      tiles.run(tile);
  }
};

} // namespace

void bench::setXsmm(const std::string &path) { place = path; }

std::string bench::xsmmProblem() {
  const Xsmm &xsmm = xsmmLibrary();
  return xsmm.isComplete ? "" : "no libxsmm: " + xsmm.library.error();
}

Peer bench::xsmm(const Product &p) {
  return [p](const std::vector<Tensor> &inputs,
             const std::vector<Tensor> &outputs, int threads) {
    std::vector<Contender> all;
    const Xsmm &xsmm = xsmmLibrary();
    if (!xsmm.isComplete)
      return all;
    for (int64_t rows : {32, 64, 128, 256})
      for (int64_t columns : {32, 64, 128, 256}) {
        if (p.m % rows || p.n % columns)
          continue;
        int lda = static_cast<int>(p.transposeRhs ? p.k : p.n);
        int ldb = static_cast<int>(p.transposeLhs ? p.m : p.k);
        int ldc = static_cast<int>(p.n);
        int flags = (p.transposeRhs ? kTransposeA : 0) |
                    (p.transposeLhs ? kTransposeB : 0);
        const float alpha = 1, beta = 0;
        Kernel *kernel =
            xsmm.dispatch(static_cast<int>(columns), static_cast<int>(rows),
                          static_cast<int>(p.k), &lda, &ldb, &ldc, &alpha,
                          &beta, &flags, nullptr);
        if (!kernel)
          continue;
        auto tiles =
            std::make_shared<Tiles>(Tiles{p, rows, columns, kernel, inputs[0],
                                          inputs[1], outputs[0], threads});
        Contender contender;
        contender.name =
            "libxsmm-" + std::to_string(rows) + "x" + std::to_string(columns);
        contender.outputs = outputs;
        contender.call = [tiles, &xsmm] {
          xsmm.parallel(Tiles::part, tiles.get(),
                        static_cast<unsigned>(tiles->threads), 0);
        };
        all.push_back(std::move(contender));
      }
    return all;
  };
}
