//===- ImageFit.h - images of the size that a model takes -----------------===//
#ifndef TANDEM_TOOLS_COMMANDS_IMAGEFIT_H
#define TANDEM_TOOLS_COMMANDS_IMAGEFIT_H

#include "runtime/artifact/Status.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace tandem::commands {

/// Rows of pixels, whose channels lie side by side.
struct Image {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;
};

/// How an image gets the size of the model's.
struct ImageFit {
  enum class Kind {
    None,    ///< it has to have it
    Crop,    ///< its middle is cut out
    Shorter, ///< its shorter side becomes `side`, then its middle is cut out
    Stretch  ///< both sides become the model's
  };
  Kind kind = Kind::None;
  int64_t side = 0;

  /// Reads "", "crop", "resize" or "resize=N"; fails with Usage.
  static Result<ImageFit> parse(std::string_view text);
  /// Returns the image in that size; fails with what the image's is.
  Result<Image> apply(Image image, int64_t height, int64_t width) const;
};

/// Returns the image in another size, as the bilinear filter of Pillow 13 gives
/// it: of an image that becomes smaller every pixel counts.
Image resized(const Image &image, int64_t height, int64_t width);

} // namespace tandem::commands

#endif
