//===- Failures.cpp - failures that were asked for ------------------------===//
#include "cuda/emulator/Failures.h"

#include <charconv>
#include <utility>

using namespace tandem::emulator;

bool Failures::addOne(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos)
    return false;
  const std::string_view kind = text.substr(0, colon);
  uint64_t n = 0;
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data() + colon + 1, end, n);
  if (error != std::errc() || stop != end || n == 0)
    return false;
  for (auto [name, number] :
       {std::pair("driver", &driverVersion), std::pair("init", &initResult),
        std::pair("blas", &blasVersion), std::pair("dnn", &dnnVersion),
        std::pair("nccl", &ncclVersion)})
    if (kind == name) {
      if (n > 1000000)
        return false;
      *number = static_cast<int>(n);
      return true;
    }
  constexpr std::string_view names[kKinds] = {"alloc",   "refuse", "launch",
                                              "lost",    "module", "algorithm",
                                              "library", "fill"};
  for (int i = 0; i < kKinds; ++i)
    if (kind == names[i]) {
      left[i] = n;
      return true;
    }
  return false;
}

bool Failures::add(std::string_view text) {
  for (;;) {
    const size_t comma = text.find(',');
    if (!addOne(text.substr(0, comma)))
      return false;
    if (comma == std::string_view::npos)
      return true;
    text.remove_prefix(comma + 1);
  }
}
