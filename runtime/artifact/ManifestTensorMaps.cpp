//===- ManifestTensorMaps.cpp - tensors that bulk copies see --------------===//
//
// What cuTensorMapEncodeTiled asks for (without interleaving, elements one
// apart), so that no artifact that is loaded is refused when it first runs; and
// that a copy inside of the tensor is inside of its buffer.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/ManifestRules.h"

#include <algorithm>

namespace tandem::artifact {

namespace {
/// Kernels have 4 KiB of parameters on every driver, of which a map takes 128
/// bytes.
constexpr size_t mostMaps = 16;
constexpr size_t mostDims = 5;
constexpr int64_t unit = 16;

class Checker {
public:
  Checker(std::string at, ManifestProblems &problems)
      : at(std::move(at)), problems(problems) {}

  void check(const TensorMap &map) {
    int64_t bytes = map.elementBytes();
    if (!bytes)
      problems.add(at + "/element",
                   "expected 'i8', 'f16', 'bf16', 'f32' or 'tf32' but got '" +
                       map.element + "'");
    if (map.sizes.empty() || map.sizes.size() > mostDims)
      problems.add(at + "/sizes", "expected 1 to 5 dimensions but got " +
                                      std::to_string(map.sizes.size()));
    if (map.strides.size() + 1 != map.sizes.size())
      problems.add(at + "/strides",
                   "expected one for each dimension but the first");
    if (map.box.size() != map.sizes.size())
      problems.add(at + "/box", "expected one size for each dimension");
    int64_t s = map.swizzle;
    if (s != 0 && s != 32 && s != 64 && s != 128)
      problems.add(at + "/swizzle",
                   "expected 0, 32, 64 or 128 but got " + std::to_string(s));
    if (map.box.empty())
      return;
    int64_t row = map.box[0] * bytes;
    if (row % unit != 0 || (s > 0 && row > s))
      problems.add(at + "/box/0",
                   "expected a multiple of 16 bytes" +
                       (s > 0 ? " of at most " + std::to_string(s) : "") +
                       " but got " + std::to_string(row));
  }

private:
  std::string at;
  ManifestProblems &problems;
};
} // namespace

int64_t TensorMap::elementBytes() const {
  if (element == "i8")
    return 1;
  if (element == "f16" || element == "bf16")
    return 2;
  return element == "f32" || element == "tf32" ? 4 : 0;
}

void checkTensorMaps(const Kernel &kernel, bool isCuda, const std::string &at,
                     ManifestProblems &problems) {
  size_t most = isCuda ? mostMaps : 0;
  if (kernel.tensorMaps.size() > most)
    problems.add(at, "expected at most " + std::to_string(most) +
                         " tensor maps but got " +
                         std::to_string(kernel.tensorMaps.size()));
  for (size_t i = 0; i < kernel.tensorMaps.size(); ++i)
    Checker(child(at, static_cast<int64_t>(i)), problems)
        .check(kernel.tensorMaps[i]);
}

void checkMappedBuffers(const Kernel &kernel,
                        const std::vector<int64_t> &bufferBytes,
                        const std::string &at, ManifestProblems &problems) {
  for (const TensorMap &map : kernel.tensorMaps) {
    if (map.buffer < 0 ||
        map.buffer >= static_cast<int64_t>(bufferBytes.size())) {
      problems.add(at, "expected a buffer " + std::to_string(map.buffer) +
                           ", of which '" + kernel.symbol +
                           "' has a tensor map, but got " +
                           std::to_string(bufferBytes.size()) + " buffers");
      continue;
    }
    // Each is in its range (Manifest.def): no product leaves 128 bits.
    __int128 end = map.offset;
    for (size_t d = 0; d < map.sizes.size(); ++d) {
      __int128 last = map.sizes[d] - 1;
      int64_t stride = d == 0                    ? map.elementBytes()
                       : d <= map.strides.size() ? map.strides[d - 1]
                                                 : 0;
      end += last * stride;
    }
    end += map.elementBytes();
    if (end > bufferBytes[static_cast<size_t>(map.buffer)])
      problems.add(
          child(at, map.buffer),
          "expected a buffer that holds the tensor of a map of '" +
              kernel.symbol + "' but got " +
              std::to_string(bufferBytes[static_cast<size_t>(map.buffer)]) +
              " bytes");
  }
}

} // namespace tandem::artifact
