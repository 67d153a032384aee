//===- CpuFeatures.cpp - what this processor can do -----------------------===//
//
// Reads cpuid directly, since the compilers' built-in knows different features
// in different versions. Bits are those of Intel's SDM volume 2 (CPUID) and
// AMD's APM volume 3, appendix E; names are LLVM's (X86.td). For aarch64 Linux
// tells (Documentation/arch/arm64/elf_hwcaps.rst).
//
//===----------------------------------------------------------------------===//
#include "runtime/device/CpuFeatures.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <system_error>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <cerrno>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tandem::runtime {

namespace {
/// Features that are not available, and what is in the way.
struct Missing {
  std::vector<std::string> lacking; ///< the processor, or this runtime's table
  std::vector<std::string> refused; ///< by the system
  int error = 0;                    ///< its reason, an errno
};
} // namespace

#if defined(__x86_64__)

namespace {

enum Register : uint8_t { EAX, EBX, ECX, EDX };
/// The registers that the system has to save: none beyond SSE, 256, 512 bits,
/// or the matrix tiles.
enum Saved : uint8_t { SSE, YMM, ZMM, TILE };

struct Feature {
  std::string_view name;
  uint32_t leaf, subleaf;
  Register reg;
  uint8_t bit;
  Saved saved;
};

constexpr Feature table[] = {
    {"64bit", 0x80000001, 0, EDX, 29, SSE},
    {"cmov", 1, 0, EDX, 15, SSE},
    {"cx8", 1, 0, EDX, 8, SSE},
    {"fxsr", 1, 0, EDX, 24, SSE},
    {"mmx", 1, 0, EDX, 23, SSE},
    {"sse", 1, 0, EDX, 25, SSE},
    {"sse2", 1, 0, EDX, 26, SSE},
    {"x87", 1, 0, EDX, 0, SSE},
    {"sse3", 1, 0, ECX, 0, SSE},
    {"pclmul", 1, 0, ECX, 1, SSE},
    {"ssse3", 1, 0, ECX, 9, SSE},
    {"fma", 1, 0, ECX, 12, YMM},
    {"cx16", 1, 0, ECX, 13, SSE},
    {"sse4.1", 1, 0, ECX, 19, SSE},
    {"sse4.2", 1, 0, ECX, 20, SSE},
    {"crc32", 1, 0, ECX, 20, SSE},
    {"movbe", 1, 0, ECX, 22, SSE},
    {"popcnt", 1, 0, ECX, 23, SSE},
    {"aes", 1, 0, ECX, 25, SSE},
    {"xsave", 1, 0, ECX, 26, SSE},
    {"avx", 1, 0, ECX, 28, YMM},
    {"f16c", 1, 0, ECX, 29, YMM},
    {"rdrnd", 1, 0, ECX, 30, SSE},
    {"fsgsbase", 7, 0, EBX, 0, SSE},
    {"bmi", 7, 0, EBX, 3, SSE},
    {"avx2", 7, 0, EBX, 5, YMM},
    {"bmi2", 7, 0, EBX, 8, SSE},
    {"ermsb", 7, 0, EBX, 9, SSE},
    {"invpcid", 7, 0, EBX, 10, SSE},
    {"rtm", 7, 0, EBX, 11, SSE},
    {"avx512f", 7, 0, EBX, 16, ZMM},
    {"avx512dq", 7, 0, EBX, 17, ZMM},
    {"rdseed", 7, 0, EBX, 18, SSE},
    {"adx", 7, 0, EBX, 19, SSE},
    {"avx512ifma", 7, 0, EBX, 21, ZMM},
    {"clflushopt", 7, 0, EBX, 23, SSE},
    {"clwb", 7, 0, EBX, 24, SSE},
    {"avx512cd", 7, 0, EBX, 28, ZMM},
    {"sha", 7, 0, EBX, 29, SSE},
    {"avx512bw", 7, 0, EBX, 30, ZMM},
    {"avx512vl", 7, 0, EBX, 31, ZMM},
    {"avx512vbmi", 7, 0, ECX, 1, ZMM},
    {"pku", 7, 0, ECX, 4, SSE},
    {"waitpkg", 7, 0, ECX, 5, SSE},
    {"avx512vbmi2", 7, 0, ECX, 6, ZMM},
    {"shstk", 7, 0, ECX, 7, SSE},
    {"gfni", 7, 0, ECX, 8, SSE},
    {"vaes", 7, 0, ECX, 9, YMM},
    {"vpclmulqdq", 7, 0, ECX, 10, YMM},
    {"avx512vnni", 7, 0, ECX, 11, ZMM},
    {"avx512bitalg", 7, 0, ECX, 12, ZMM},
    {"avx512vpopcntdq", 7, 0, ECX, 14, ZMM},
    {"rdpid", 7, 0, ECX, 22, SSE},
    {"cldemote", 7, 0, ECX, 25, SSE},
    {"movdiri", 7, 0, ECX, 27, SSE},
    {"movdir64b", 7, 0, ECX, 28, SSE},
    {"avx512vp2intersect", 7, 0, EDX, 8, ZMM},
    {"serialize", 7, 0, EDX, 14, SSE},
    {"amx-bf16", 7, 0, EDX, 22, TILE},
    {"avx512fp16", 7, 0, EDX, 23, ZMM},
    {"amx-tile", 7, 0, EDX, 24, TILE},
    {"amx-int8", 7, 0, EDX, 25, TILE},
    {"sgx", 7, 0, EBX, 2, SSE},
    {"enqcmd", 7, 0, ECX, 29, SSE},
    {"uintr", 7, 0, EDX, 5, SSE},
    {"tsxldtrk", 7, 0, EDX, 16, SSE},
    {"ptwrite", 0x14, 0, EBX, 4, SSE},
    {"cmpccxadd", 7, 1, EAX, 7, SSE},
    {"hreset", 7, 1, EAX, 22, SSE},
    {"amx-complex", 7, 1, EDX, 8, TILE},
    {"prefetchi", 7, 1, EDX, 14, SSE},
    {"avxvnni", 7, 1, EAX, 4, YMM},
    {"avx512bf16", 7, 1, EAX, 5, ZMM},
    {"amx-fp16", 7, 1, EAX, 21, TILE},
    {"avxifma", 7, 1, EAX, 23, YMM},
    {"avxvnniint8", 7, 1, EDX, 4, YMM},
    {"avxneconvert", 7, 1, EDX, 5, YMM},
    {"avxvnniint16", 7, 1, EDX, 10, YMM},
    {"xsaveopt", 0xd, 1, EAX, 0, SSE},
    {"xsavec", 0xd, 1, EAX, 1, SSE},
    {"xsaves", 0xd, 1, EAX, 3, SSE},
    {"sahf", 0x80000001, 0, ECX, 0, SSE},
    {"lzcnt", 0x80000001, 0, ECX, 5, SSE},
    {"sse4a", 0x80000001, 0, ECX, 6, SSE},
    {"prfchw", 0x80000001, 0, ECX, 8, SSE},
    {"xop", 0x80000001, 0, ECX, 11, YMM},
    {"fma4", 0x80000001, 0, ECX, 16, YMM},
    {"tbm", 0x80000001, 0, ECX, 21, SSE},
    {"mwaitx", 0x80000001, 0, ECX, 29, SSE},
    {"clzero", 0x80000008, 0, EBX, 0, SSE},
    {"rdpru", 0x80000008, 0, EBX, 4, SSE},
    {"wbnoinvd", 0x80000008, 0, EBX, 9, SSE},
};

/// Returns the system's mask of saved registers (XCR0).
uint64_t savedRegisters() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27)))
    return 0;
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t(high) << 32) | low;
}

bool isAvailable(const Feature &feature, uint64_t saved) {
  constexpr uint64_t masks[] = {0, 0x6, 0xe6, 0x60000};
  uint64_t mask = masks[feature.saved];
  unsigned r[4];
  if ((saved & mask) != mask ||
      !__get_cpuid_count(feature.leaf, feature.subleaf, &r[0], &r[1], &r[2],
                         &r[3]))
    return false;
  return r[feature.reg] >> feature.bit & 1;
}

/// Asks for the tiles' 8 KiB in what Linux saves of a thread; returns 0, or why
/// not. Asking again is nothing. Documentation/arch/x86/xstate.rst of Linux.
int askForTiles() {
#if defined(__linux__)
  constexpr int requestPermission = 0x1023, tileData = 18;
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0 ? 0 : errno;
#else
  return 0;
#endif
}

Missing missingOf(const std::vector<std::string> &features) {
  uint64_t saved = savedRegisters();
  Missing missing;
  for (const std::string &name : features) {
    auto found = std::find_if(std::begin(table), std::end(table),
                              [&](const Feature &f) { return f.name == name; });
    if (found == std::end(table) || !isAvailable(*found, saved)) {
      missing.lacking.push_back(name);
    } else if (found->saved == TILE) {
      if (int error = askForTiles()) {
        missing.refused.push_back(name);
        missing.error = error;
      }
    }
  }
  return missing;
}

} // namespace

#elif defined(__aarch64__)

namespace {

struct Feature {
  std::string_view name;
  uint64_t first;      ///< bits of AT_HWCAP that it is
  uint64_t second = 0; ///< of AT_HWCAP2
};

constexpr uint64_t bit(int n) { return uint64_t(1) << n; }

constexpr Feature table[] = {
    {"fp-armv8", bit(0)},
    {"neon", bit(1)},
    {"crc", bit(7)},
    {"lse", bit(8)},
    {"fullfp16", bit(9) | bit(10)},
    {"rdm", bit(12)},
    {"jsconv", bit(13)},
    {"complxnum", bit(14)},
    {"rcpc", bit(15)},
    {"sha3", bit(17) | bit(21)},
    {"dotprod", bit(20)},
    {"fp16fml", bit(23)},
    {"rcpc-immo", bit(26)},
    {"flagm", bit(27)},
    {"fptoint", 0, bit(8)},
    {"i8mm", 0, bit(13)},
    {"bf16", 0, bit(14)},
};

Missing missingOf(const std::vector<std::string> &features) {
  uint64_t first = ::getauxval(AT_HWCAP), second = ::getauxval(AT_HWCAP2);
  Missing missing;
  for (const std::string &name : features) {
    auto found = std::find_if(std::begin(table), std::end(table),
                              [&](const Feature &f) { return f.name == name; });
    if (found == std::end(table) || (~first & found->first) ||
        (~second & found->second))
      missing.lacking.push_back(name);
  }
  return missing;
}

} // namespace

#else

static Missing missingOf(const std::vector<std::string> &features) {
  return {features, {}, 0};
}

#endif

#if defined(__aarch64__)
/// This kind of processors; another kind, and what all code for that needs.
static constexpr const char *ownKind = "aarch64", *otherKind = "x86-64",
                            *ofOtherKind = "64bit";
#else
static constexpr const char *ownKind = "x86-64", *otherKind = "aarch64",
                            *ofOtherKind = "neon";
#endif

std::vector<std::string>
missingCpuFeatures(const std::vector<std::string> &features) {
  Missing missing = missingOf(features);
  std::vector<std::string> names = std::move(missing.lacking);
  names.insert(names.end(), missing.refused.begin(), missing.refused.end());
  return names;
}

std::string cpuProblem(const std::vector<std::string> &features) {
  if (std::find(features.begin(), features.end(), ofOtherKind) !=
      features.end())
    return std::string("needs ") + otherKind + ", but this processor is " +
           ownKind;
  auto joined = [](const std::vector<std::string> &names) {
    std::string text;
    for (const std::string &name : names)
      text += (text.empty() ? "'" : ", '") + name + "'";
    return text;
  };
  Missing missing = missingOf(features);
  std::string problem;
  if (!missing.lacking.empty())
    problem = "this processor lacks " + joined(missing.lacking);
  if (!missing.refused.empty())
    problem += std::string(problem.empty() ? "" : " and ") +
               "the system does not let this process use " +
               joined(missing.refused) + " (" +
               std::generic_category().message(missing.error) + ")";
  return problem;
}

} // namespace tandem::runtime
