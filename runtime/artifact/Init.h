//===- Init.h - how a parameter or state begins ---------------------------===//
//
// A part of the manifest (Manifest.h) by itself: the tracer's programs name
// initial values, and nothing else of a manifest.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_INIT_H
#define TANDEM_RUNTIME_ARTIFACT_INIT_H

#include <cstdint>
#include <string_view>

namespace tandem::artifact {

/// How a parameter or state begins.
struct Init {
  enum class Kind : uint8_t {
    Constant, ///< every element is `a`
    Uniform,  ///< uniform in [a, b)
    Normal,   ///< mean `a`, standard deviation `b`
    Counter,  ///< the workloads' generator: stream `stream`, scale `a`
    Seed      ///< i64 alone: the seed, then zeros
  };
  Kind kind = Kind::Constant;
  double a = 0, b = 0;
  int64_t stream = 0;

  static Init constant(double value) { return {Kind::Constant, value, 0, 0}; }
  static Init uniform(double low, double high) {
    return {Kind::Uniform, low, high, 0};
  }
  static Init normal(double mean, double std) {
    return {Kind::Normal, mean, std, 0};
  }
  static Init counter(int64_t stream, double scale) {
    return {Kind::Counter, scale, 0, stream};
  }
  static Init seed() { return {Kind::Seed, 0, 0, 0}; }
  bool operator==(const Init &) const = default;
};

/// Returns "constant", "uniform", ...
constexpr std::string_view spelling(Init::Kind kind) {
  constexpr std::string_view names[] = {"constant", "uniform", "normal",
                                        "counter", "seed"};
  return names[static_cast<int>(kind)];
}

} // namespace tandem::artifact

#endif
