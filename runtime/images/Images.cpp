//===- Images.cpp - decoders by what a file begins with -------------------===//
#include "runtime/images/Images.h"

#include <cstdio>

namespace tandem::images {

static int refuse(Reason *reason, const char *text) {
  std::snprintf(reason->text, sizeof reason->text, "%s", text);
  return -1;
}

bool isPng(const uint8_t *file, size_t bytes) {
  return bytes > 3 && file[0] == 0x89 && file[1] == 'P' && file[2] == 'N' &&
         file[3] == 'G';
}

bool isJpeg(const uint8_t *file, size_t bytes) {
  return bytes > 2 && file[0] == 0xff && file[1] == 0xd8 && file[2] == 0xff;
}

static int sizeOf(const uint8_t *file, size_t bytes, int64_t *height,
                  int64_t *width, Reason *reason) {
  int failed = isPng(file, bytes) ? pngSize(file, bytes, height, width, reason)
               : isJpeg(file, bytes)
                   ? jpegSize(file, bytes, height, width, reason)
                   : refuse(reason, "it is neither a PNG nor a JPEG");
  if (failed)
    return failed;
  if (*height >= 1 && *width >= 1 && *height <= kLongestSide &&
      *width <= kLongestSide && *height * *width <= kMostPixels)
    return 0;
  std::snprintf(
      reason->text, sizeof reason->text,
      "expected at most %lld pixels and sides of at most %lld, but "
      "it has %lld rows of %lld",
      static_cast<long long>(kMostPixels), static_cast<long long>(kLongestSide),
      static_cast<long long>(*height), static_cast<long long>(*width));
  return -1;
}

static int decode(const uint8_t *file, size_t bytes, int channels,
                  uint8_t *pixels, size_t room, Reason *reason) {
  int64_t height = 0, width = 0;
  if (sizeOf(file, bytes, &height, &width, reason))
    return -1;
  if ((channels != 1 && channels != 3) ||
      room != size_t(height) * size_t(width) * size_t(channels))
    return refuse(reason, "it has another size than was said");
  return isPng(file, bytes)
             ? decodePng(file, bytes, channels, pixels, room, reason)
             : decodeJpeg(file, bytes, channels, pixels, room, reason);
}

static constexpr Decoder decoder = {kVersion, sizeOf, decode};

#ifndef TANDEM_IMAGES_PNG
int pngSize(const uint8_t *, size_t, int64_t *, int64_t *, Reason *reason) {
  return refuse(reason, "this build reads no PNG");
}
int decodePng(const uint8_t *, size_t, int, uint8_t *, size_t, Reason *reason) {
  return refuse(reason, "this build reads no PNG");
}
#endif
#ifndef TANDEM_IMAGES_JPEG
int jpegSize(const uint8_t *, size_t, int64_t *, int64_t *, Reason *reason) {
  return refuse(reason, "this build reads no JPEG");
}
int decodeJpeg(const uint8_t *, size_t, int, uint8_t *, size_t,
               Reason *reason) {
  return refuse(reason, "this build reads no JPEG");
}
#endif

} // namespace tandem::images

extern "C" __attribute__((visibility("default")))
const tandem::images::Decoder *
tandem_images() {
  return &tandem::images::decoder;
}
