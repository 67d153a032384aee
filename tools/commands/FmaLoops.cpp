//===- FmaLoops.cpp - loops that do nothing but multiply and add ----------===//
//
// Twelve independent chains cover the latency (four or five cycles) of two
// units, and fit the sixteen registers of the smallest vector sets. The
// instructions are written out: no option of the compiler makes others of them.
//
//===----------------------------------------------------------------------===//
#include "tools/commands/FmaLoops.h"

#include "runtime/device/CpuFeatures.h"

#include <chrono>
#include <string>
#include <vector>

namespace tandem::commands {

namespace {

using artifact::DType;

constexpr int chains = 12;
/// Of tiles: a product's latency is some three times what it keeps the unit.
constexpr int tileChains = 4;

/// An iteration multiplies and adds in `chains` registers of type `Vector`.
#define TANDEM_FMA_LOOP(name, attribute, bytes, constraint, instruction)       \
  attribute void name(int64_t iterations) {                                    \
    typedef float Vector __attribute__((vector_size(bytes)));                  \
    Vector x0{}, x1{}, x2{}, x3{}, x4{}, x5{}, x6{}, x7{}, x8{}, x9{}, x10{},  \
        x11{}, a{}, b{};                                                       \
    for (; iterations > 0; --iterations) {                                     \
      TANDEM_FMA(x0, constraint, instruction);                                 \
      TANDEM_FMA(x1, constraint, instruction);                                 \
      TANDEM_FMA(x2, constraint, instruction);                                 \
      TANDEM_FMA(x3, constraint, instruction);                                 \
      TANDEM_FMA(x4, constraint, instruction);                                 \
      TANDEM_FMA(x5, constraint, instruction);                                 \
      TANDEM_FMA(x6, constraint, instruction);                                 \
      TANDEM_FMA(x7, constraint, instruction);                                 \
      TANDEM_FMA(x8, constraint, instruction);                                 \
      TANDEM_FMA(x9, constraint, instruction);                                 \
      TANDEM_FMA(x10, constraint, instruction);                                \
      TANDEM_FMA(x11, constraint, instruction);                                \
    }                                                                          \
  }
#define TANDEM_FMA(x, constraint, instruction)                                 \
  __asm__ volatile(instruction                                                 \
                   : "+" constraint(x)                                         \
                   : constraint(a), constraint(b))

#if defined(__x86_64__)

TANDEM_FMA_LOOP(wideF32, __attribute__((target("avx512f"))), 64, "v",
                "vfmadd231ps %2, %1, %0")
TANDEM_FMA_LOOP(wideF64, __attribute__((target("avx512f"))), 64, "v",
                "vfmadd231pd %2, %1, %0")
TANDEM_FMA_LOOP(wideBF16, __attribute__((target("avx512f,avx512bf16"))), 64,
                "v", "vdpbf16ps %2, %1, %0")
TANDEM_FMA_LOOP(halfF32, __attribute__((target("avx2,fma"))), 32, "x",
                "vfmadd231ps %2, %1, %0")
TANDEM_FMA_LOOP(halfF64, __attribute__((target("avx2,fma"))), 32, "x",
                "vfmadd231pd %2, %1, %0")
TANDEM_FMA_LOOP(leastF32, , 16, "x", "mulps %2, %0\n\taddps %1, %0")
TANDEM_FMA_LOOP(leastF64, , 16, "x", "mulpd %2, %0\n\taddpd %1, %0")

/// Products of whole matrix tiles. No compiler uses tiles by itself, so that
/// they need not be named as changed.
__attribute__((target("amx-tile,amx-bf16"))) void
tilesBF16(int64_t iterations) {
  constexpr int tiles = 8, rows = 16, rowBytes = 64;
  struct alignas(64) {
    uint8_t palette = 1, firstRow = 0, none[14] = {};
    uint16_t bytes[16] = {};
    uint8_t lines[16] = {};
  } shapes;
  static_assert(sizeof(shapes) == 64, "is what ldtilecfg reads");
  for (int i = 0; i < tiles; ++i) {
    shapes.bytes[i] = rowBytes;
    shapes.lines[i] = rows;
  }
  __asm__ volatile("ldtilecfg %0\n\ttilezero %%tmm0\n\ttilezero %%tmm1\n\t"
                   "tilezero %%tmm2\n\ttilezero %%tmm3\n\ttilezero %%tmm4\n\t"
                   "tilezero %%tmm5" ::"m"(shapes));
  for (; iterations > 0; --iterations)
    __asm__ volatile("tdpbf16ps %tmm5, %tmm4, %tmm0\n\t"
                     "tdpbf16ps %tmm5, %tmm4, %tmm1\n\t"
                     "tdpbf16ps %tmm5, %tmm4, %tmm2\n\t"
                     "tdpbf16ps %tmm5, %tmm4, %tmm3");
  __asm__ volatile("tilerelease");
}

#elif defined(__aarch64__)

TANDEM_FMA_LOOP(leastF32, , 16, "w", "fmla %0.4s, %1.4s, %2.4s")
TANDEM_FMA_LOOP(leastF64, , 16, "w", "fmla %0.2d, %1.2d, %2.2d")

#else

/// Whatever this compiler makes of it.
template <typename T> void plain(int64_t iterations) {
  constexpr int lanes = 16 / sizeof(T);
  T x[chains][lanes] = {};
  volatile T given = 0;
  T a = given, b = given;
  for (; iterations > 0; --iterations)
    for (auto &chain : x)
      for (T &element : chain)
        element = element * a + b;
  for (auto &chain : x)
    for (T &element : chain)
      given = element;
}
constexpr auto leastF32 = plain<float>, leastF64 = plain<double>;

#endif
#undef TANDEM_FMA
#undef TANDEM_FMA_LOOP

/// A multiply-add of `lanes` in each chain.
constexpr double flopsOf(int lanes) { return 2.0 * chains * lanes; }

/// Flops a second, in about a millisecond.
[[maybe_unused]] double rate(const FmaLoop &loop) {
  constexpr int64_t iterations = 100000;
  loop.run(iterations); // wakes the wide registers
  auto begin = std::chrono::steady_clock::now();
  loop.run(iterations);
  std::chrono::duration<double> spent =
      std::chrono::steady_clock::now() - begin;
  return loop.flops * iterations / spent.count();
}

[[maybe_unused]] bool has(const std::vector<std::string> &features) {
  return runtime::missingCpuFeatures(features).empty();
}

} // namespace

FmaLoop widestFmaLoop(DType dtype) {
#if defined(__x86_64__)
  if (dtype == DType::BF16 && has({"amx-tile", "amx-bf16"}))
    return {"amx-bf16", 2.0 * tileChains * 16 * 16 * 32, tilesBF16};
  if (dtype == DType::BF16 && has({"avx512f", "avx512bf16"})) {
    // Some processors have products of bf16 that are slower than those of f32.
    static const FmaLoop products{"avx512bf16", 2 * flopsOf(16), wideBF16},
        singles = widestFmaLoop(DType::F32);
    static const bool isFaster = rate(products) > rate(singles);
    return isFaster ? products : singles;
  }
  bool isDouble = dtype == DType::F64;
  if (has({"avx512f"}))
    return isDouble ? FmaLoop{"avx512f", flopsOf(8), wideF64}
                    : FmaLoop{"avx512f", flopsOf(16), wideF32};
  if (has({"avx2", "fma"}))
    return isDouble ? FmaLoop{"avx2", flopsOf(4), halfF64}
                    : FmaLoop{"avx2", flopsOf(8), halfF32};
#endif
  return dtype == DType::F64 ? FmaLoop{"128 bits", flopsOf(2), leastF64}
                             : FmaLoop{"128 bits", flopsOf(4), leastF32};
}

} // namespace tandem::commands
