//===- Png.cpp - PNG by libpng --------------------------------------------===//
//
// libpng ends a call that failed by longjmp: what is alive then has no
// destructor, and is freed behind setjmp.
//
//===----------------------------------------------------------------------===//
#include "runtime/images/Images.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <png.h>

namespace tandem::images {

namespace {
struct Source {
  const uint8_t *next, *end;
  Reason *reason;
};
} // namespace

static void fail(png_structp png, png_const_charp text) {
  auto *source = static_cast<Source *>(png_get_error_ptr(png));
  std::snprintf(source->reason->text, sizeof source->reason->text, "%s", text);
  png_longjmp(png, 1);
}

/// What libpng only warns of, as a chunk that it does not need, is no matter.
static void ignore(png_structp, png_const_charp) {}

static void read(png_structp png, png_bytep to, size_t bytes) {
  auto *source = static_cast<Source *>(png_get_io_ptr(png));
  if (size_t(source->end - source->next) < bytes)
    png_error(png, "the file ends too early");
  std::memcpy(to, source->next, bytes);
  source->next += bytes;
}

/// Reads what stands before the pixels. Null after an error.
static png_structp open(Source &source, png_infop *info) {
  png_structp png =
      png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, fail, ignore);
  *info = png ? png_create_info_struct(png) : nullptr;
  if (!*info) {
    png_destroy_read_struct(&png, nullptr, nullptr);
    std::snprintf(source.reason->text, sizeof source.reason->text,
                  "there is no memory for it");
    return nullptr;
  }
  if (setjmp(png_jmpbuf(png))) {
    png_destroy_read_struct(&png, info, nullptr);
    return nullptr;
  }
  png_set_read_fn(png, &source, read);
  png_set_user_limits(png, png_uint_32(kLongestSide),
                      png_uint_32(kLongestSide));
  // Texts and profiles are not needed.
  png_set_chunk_cache_max(png, 16);
  png_set_chunk_malloc_max(png, 1 << 20);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, 0);
  png_read_info(png, *info);
  return png;
}

int pngSize(const uint8_t *file, size_t bytes, int64_t *height, int64_t *width,
            Reason *reason) {
  Source source = {file, file + bytes, reason};
  png_infop info;
  png_structp png = open(source, &info);
  if (!png)
    return -1;
  *height = png_get_image_height(png, info);
  *width = png_get_image_width(png, info);
  png_destroy_read_struct(&png, &info, nullptr);
  return 0;
}

/// Makes 8 bits of each of `channels` of everything but a colour that is to be
/// gray.
static int transform(png_structp png, png_infop info, int channels) {
  int kind = png_get_color_type(png, info);
  png_set_strip_16(png);
  if (kind == PNG_COLOR_TYPE_PALETTE)
    png_set_palette_to_rgb(png);
  if (kind == PNG_COLOR_TYPE_GRAY)
    png_set_expand_gray_1_2_4_to_8(png);
  png_set_strip_alpha(png);
  bool isGray = !(kind & PNG_COLOR_MASK_COLOR);
  if (isGray && channels == 3)
    png_set_gray_to_rgb(png);
  int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  return passes;
}

/// In place, of `pixels` pixels; with the rounding of ITU-R 601 in 16 bits.
static void toGray(uint8_t *row, int64_t pixels, uint8_t *to) {
  for (int64_t i = 0; i < pixels; ++i)
    to[i] = uint8_t((row[3 * i] * 19595U + row[3 * i + 1] * 38470U +
                     row[3 * i + 2] * 7471U + 0x8000U) >>
                    16);
}

int decodePng(const uint8_t *file, size_t bytes, int channels, uint8_t *pixels,
              size_t, Reason *reason) {
  Source source = {file, file + bytes, reason};
  png_infop info;
  png_structp png = open(source, &info);
  if (!png)
    return -1;
  uint8_t *volatile wide = nullptr;
  if (setjmp(png_jmpbuf(png))) {
    std::free(wide);
    png_destroy_read_struct(&png, &info, nullptr);
    return -1;
  }
  int passes = transform(png, info, channels);
  int64_t height = png_get_image_height(png, info),
          width = png_get_image_width(png, info);
  bool becomesGray = channels == 1 && png_get_channels(png, info) == 3;
  int each = becomesGray ? 3 : channels;
  if (int64_t(png_get_rowbytes(png, info)) != width * each)
    png_error(png, "its pixels are of a kind that is not known");
  // Of several passes each writes into what the ones before it left.
  if (becomesGray) {
    wide = static_cast<uint8_t *>(
        std::malloc(size_t(width) * 3 * size_t(passes > 1 ? height : 1)));
    if (!wide)
      png_error(png, "there is no memory for it");
  }
  for (int pass = 0; pass < passes; ++pass)
    for (int64_t y = 0; y < height; ++y) {
      uint8_t *row = becomesGray ? wide + (passes > 1 ? y * width * 3 : 0)
                                 : pixels + y * width * channels;
      png_read_row(png, row, nullptr);
      if (becomesGray && pass + 1 == passes)
        toGray(row, width, pixels + y * width);
    }
  png_read_end(png, nullptr);
  std::free(wide);
  png_destroy_read_struct(&png, &info, nullptr);
  return 0;
}

} // namespace tandem::images
