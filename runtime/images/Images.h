//===- Images.h - what libtandem-images.so gives --------------------------===//
//
// Decodes PNG by libpng and JPEG by libjpeg-turbo, whichever was there when it
// was built. It is opened at run time, so that the runtime needs neither.
// Functions may be called from several threads at once; none throws, prints or
// ends the process, whatever the bytes are. Memory is bounded by the limits.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_IMAGES_IMAGES_H
#define TANDEM_RUNTIME_IMAGES_IMAGES_H

#include <cstddef>
#include <cstdint>

namespace tandem::images {

/// An image has at most so many pixels, and as long a side.
inline constexpr int64_t kMostPixels = int64_t(1) << 26;
inline constexpr int64_t kLongestSide = 32768;

/// Why something failed, a sentence without its end; ends with 0.
struct Reason {
  char text[200];
};

inline constexpr int kVersion = 1;

/// What the library's function "tandem_images" returns.
struct Decoder {
  int version; ///< kVersion
  /// Reads the size of an image without decoding it; returns 0, or -1 and why.
  int (*size)(const uint8_t *file, size_t bytes, int64_t *height,
              int64_t *width, Reason *reason);
  /// Decodes into `pixels`, height * width * channels bytes, row by row, the
  /// channels of a pixel side by side: 1 (gray, by ITU-R 601's weights of an
  /// image with colours) or 3 (red, green, blue). Transparency is dropped, and
  /// of 16 bits the upper 8 are kept. Returns 0, or -1 and why.
  int (*decode)(const uint8_t *file, size_t bytes, int channels,
                uint8_t *pixels, size_t room, Reason *reason);
};

// Each format's own. They return 0, or -1 and why.
bool isPng(const uint8_t *file, size_t bytes);
bool isJpeg(const uint8_t *file, size_t bytes);
int pngSize(const uint8_t *file, size_t bytes, int64_t *height, int64_t *width,
            Reason *reason);
int jpegSize(const uint8_t *file, size_t bytes, int64_t *height, int64_t *width,
             Reason *reason);
int decodePng(const uint8_t *file, size_t bytes, int channels, uint8_t *pixels,
              size_t room, Reason *reason);
int decodeJpeg(const uint8_t *file, size_t bytes, int channels, uint8_t *pixels,
               size_t room, Reason *reason);

} // namespace tandem::images

#endif
