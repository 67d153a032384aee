//===- ImageLayout.h - how an input has images ----------------------------===//
//
// One rule for what reads images and what changes them, by the sizes of the
// input alone.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_IMAGELAYOUT_H
#define TANDEM_TOOLS_COMMANDS_IMAGELAYOUT_H

#include <cstdint>
#include <optional>
#include <span>

namespace tandem::commands {

struct ImageLayout {
  int64_t height, width, channels;
  bool hasPlanes; ///< a channel's pixels lie together
};

/// Returns the layout of rows [N, C, H, W] or else [N, H, W, C], with 1 or 3
/// channels, or [N, H, W]; nothing for others.
inline std::optional<ImageLayout>
imageLayoutOf(std::span<const int64_t> shape) {
  auto isChannels = [](int64_t n) { return n == 1 || n == 3; };
  if (shape.size() == 4 && isChannels(shape[1]))
    return ImageLayout{shape[2], shape[3], shape[1], true};
  if (shape.size() == 4 && isChannels(shape[3]))
    return ImageLayout{shape[1], shape[2], shape[3], false};
  if (shape.size() == 3)
    return ImageLayout{shape[1], shape[2], 1, true};
  return std::nullopt;
}

} // namespace tandem::commands

#endif
