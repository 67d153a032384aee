//===- Roofs.cpp - what the machine can do --------------------------------===//
#include "tools/bench/cpu/Roofs.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace tandem;
using namespace tandem::bench;

namespace {

/// Steps of every chain in a call of one thread.
constexpr int64_t kSteps = 400000;
/// Chains that do not wait for each other: more than an instruction's latency
/// times the units that execute it, fewer than registers.
constexpr int kChains = 12;

// The empty asm keeps the compiler from dropping or combining steps.
#define TANDEM_CHAIN(STEP, c)                                                  \
  x##c = STEP(x##c, a, b);                                                     \
  asm volatile("" : "+v"(x##c))
#define TANDEM_FMA_LOOP(NAME, TYPE, SET, STEP, ...)                            \
  __attribute__((noinline, ##__VA_ARGS__)) void NAME() {                       \
    TYPE a = SET(0.999F), b = SET(1e-3F);                                      \
    TYPE x0 = b, x1 = b, x2 = b, x3 = b, x4 = b, x5 = b, x6 = b, x7 = b,       \
         x8 = b, x9 = b, x10 = b, x11 = b;                                     \
    for (int64_t i = 0; i < kSteps; ++i) {                                     \
      TANDEM_CHAIN(STEP, 0);                                                   \
      TANDEM_CHAIN(STEP, 1);                                                   \
      TANDEM_CHAIN(STEP, 2);                                                   \
      TANDEM_CHAIN(STEP, 3);                                                   \
      TANDEM_CHAIN(STEP, 4);                                                   \
      TANDEM_CHAIN(STEP, 5);                                                   \
      TANDEM_CHAIN(STEP, 6);                                                   \
      TANDEM_CHAIN(STEP, 7);                                                   \
      TANDEM_CHAIN(STEP, 8);                                                   \
      TANDEM_CHAIN(STEP, 9);                                                   \
      TANDEM_CHAIN(STEP, 10);                                                  \
      TANDEM_CHAIN(STEP, 11);                                                  \
    }                                                                          \
  }

#if defined(__x86_64__)
// What `dpbf16` multiplies is of no interest: the bits are those of 1e-3F.
#define TANDEM_DOT(x, a, b)                                                    \
  _mm512_dpbf16_ps(x, reinterpret_cast<__m512bh>(a),                           \
                   reinterpret_cast<__m512bh>(b))
TANDEM_FMA_LOOP(fma512, __m512, _mm512_set1_ps, _mm512_fmadd_ps,
                target("avx512f"))
TANDEM_FMA_LOOP(fma256, __m256, _mm256_set1_ps, _mm256_fmadd_ps,
                target("avx2,fma"))
TANDEM_FMA_LOOP(dot512, __m512, _mm512_set1_ps, TANDEM_DOT,
                target("avx512f,avx512bf16"))
#endif

using Vector = float __attribute__((vector_size(16)));
#define TANDEM_SPREAD(value) (Vector{} + (value))
#define TANDEM_CONTRACTED(x, a, b) ((x) * (a) + (b))
TANDEM_FMA_LOOP(fma128, Vector, TANDEM_SPREAD, TANDEM_CONTRACTED)

struct FmaLoop {
  void (*run)();
  double lanes; ///< products of an instruction
};

using Clock = std::chrono::steady_clock;

double rate(const FmaLoop &loop) {
  loop.run();
  auto begin = Clock::now();
  loop.run();
  std::chrono::duration<double> spent = Clock::now() - begin;
  return loop.lanes / spent.count();
}

FmaLoop widest(DType dtype) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (dtype == DType::BF16 && __builtin_cpu_supports("avx512bf16")) {
    // Some processors have products of bf16 that are slower than those of f32.
    static const FmaLoop dot{dot512, 32}, fma{fma512, 16};
    static const bool isDotFaster = rate(dot) > rate(fma);
    return isDotFaster ? dot : fma;
  }
  if (__builtin_cpu_supports("avx512f"))
    return {fma512, 16};
  if (__builtin_cpu_supports("fma"))
    return {fma256, 8};
#endif
  (void)dtype;
  return {fma128, 4};
}

/// Runs `body(part)` on as many threads at once; returns the seconds from when
/// the last was there until the last was done.
template <typename Body> double together(int threads, const Body &body) {
  std::atomic<int> missing = threads;
  std::vector<Clock::time_point> begins(threads), ends(threads);
  auto enter = [&](int part) {
    --missing;
    while (missing > 0)
      ;
    begins[part] = Clock::now();
    body(part);
    ends[part] = Clock::now();
  };
  std::vector<std::thread> others;
  for (int part = 1; part < threads; ++part)
    others.emplace_back(enter, part);
  enter(0);
  for (std::thread &other : others)
    other.join();
  std::chrono::duration<double> spent =
      *std::max_element(ends.begin(), ends.end()) -
      *std::max_element(begins.begin(), begins.end());
  return spent.count();
}

template <typename Body>
Contender parallel(std::string name, int threads, Body body) {
  Contender contender;
  contender.name = std::move(name);
  contender.group = Contender::Roof;
  contender.sample = [=] { return together(threads, body); };
  return contender;
}

std::shared_ptr<std::vector<char>> memory(double bytes) {
  return std::make_shared<std::vector<char>>(static_cast<size_t>(bytes), 1);
}

} // namespace

double bench::roofFlops(DType dtype) {
  return 2.0 * widest(dtype).lanes * kChains * kSteps;
}

Contender bench::fmaRoof(int threads, DType dtype) {
  auto run = widest(dtype).run;
  return parallel("roof", threads, [run](int) { run(); });
}

Contender bench::copyOf(double bytes, int threads) {
  auto from = memory(bytes / 2), to = memory(bytes / 2);
  return parallel("copy", threads, [=](int64_t part) {
    size_t begin = from->size() * part / threads;
    size_t end = from->size() * (part + 1) / threads;
    std::memcpy(to->data() + begin, from->data() + begin, end - begin);
  });
}

Contender bench::triad(int64_t elements, int threads) {
  auto array = [&](float value) {
    return std::make_shared<std::vector<float>>(elements, value);
  };
  auto a = array(0), b = array(1), c = array(2);
  return parallel("triad", threads, [=](int64_t part) {
    float *to = a->data();
    const float *x = b->data(), *y = c->data();
    int64_t end = elements * (part + 1) / threads;
    for (int64_t i = elements * part / threads; i < end; ++i)
      to[i] = x[i] + 3.0F * y[i];
  });
}
