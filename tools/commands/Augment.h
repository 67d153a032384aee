//===- Augment.h - images that are another each pass ----------------------===//
//
// Rows of an input are images [..., H, W] or [H, W, C]. What becomes of one
// follows from the seed, the pass and the row alone, not from the batch or the
// rank, so that a training that is resumed sees the same, and inputs that
// belong together, an image and its mask, are moved together.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_AUGMENT_H
#define TANDEM_TOOLS_COMMANDS_AUGMENT_H

#include "runtime/artifact/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::commands {

/// What is done to the images of an input.
struct Augmentation {
  std::string name;
  std::string text;   ///< as the user wrote it: "flip,crop=4"
  bool flips = false; ///< half of them, at random, mirrored left to right
  int64_t pad = 0;    ///< zeros around, of which a window of the size is cut

  /// Takes "NAME:flip,crop=N" apart; fails with Usage.
  static Result<Augmentation> parse(std::string_view text);

  /// Changes the image `row`, of pixels of `bytes` bytes, in place. `draw`
  /// are random bits; `scratch` has room for it.
  void apply(std::span<std::byte> row, int64_t height, int64_t width,
             int64_t bytes, uint64_t draw,
             std::vector<std::byte> &scratch) const;
};

/// Returns the random bits of a row in a pass.
uint64_t drawOf(uint64_t seed, int64_t epoch, int64_t row);

} // namespace tandem::commands

#endif
