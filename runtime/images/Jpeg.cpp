//===- Jpeg.cpp - JPEG by libjpeg-turbo -----------------------------------===//
//
// libjpeg ends a call that failed by what its error manager does, here longjmp:
// what is alive then has no destructor. What libjpeg warns of, as data that end
// too early, is an error: half an image is none.
//
//===----------------------------------------------------------------------===//
#include "runtime/images/Images.h"

#include <csetjmp>
#include <cstdio>
#include <jpeglib.h>

namespace tandem::images {

namespace {
struct Errors {
  jpeg_error_mgr manager; ///< the first: libjpeg knows no more
  std::jmp_buf place;
  Reason *reason;
};

/// More scans than any encoder writes take hours.
constexpr int kMostScans = 500;
} // namespace

static Errors &errorsOf(j_common_ptr jpeg) {
  return *reinterpret_cast<Errors *>(jpeg->err);
}

[[noreturn]] static void stop(j_common_ptr jpeg) {
  char text[JMSG_LENGTH_MAX];
  jpeg->err->format_message(jpeg, text);
  Reason *reason = errorsOf(jpeg).reason;
  std::snprintf(reason->text, sizeof reason->text, "%.*s",
                int(sizeof reason->text - 1), text);
  std::longjmp(errorsOf(jpeg).place, 1);
}

static void onMessage(j_common_ptr jpeg, int level) {
  if (level < 0)
    stop(jpeg);
}

static void onProgress(j_common_ptr jpeg) {
  auto *decoder = reinterpret_cast<j_decompress_ptr>(jpeg);
  if (decoder->input_scan_number <= kMostScans)
    return;
  Reason *reason = errorsOf(jpeg).reason;
  std::snprintf(reason->text, sizeof reason->text, "it has more than %d scans",
                kMostScans);
  std::longjmp(errorsOf(jpeg).place, 1);
}

/// The rest of `decoder` is jpeg_create_decompress's.
static void begin(jpeg_decompress_struct &decoder, Errors &errors,
                  Reason *reason) {
  decoder.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = stop;
  errors.manager.emit_message = onMessage;
  errors.reason = reason;
}

static void readHeader(jpeg_decompress_struct &decoder, const uint8_t *file,
                       size_t bytes) {
  jpeg_create_decompress(&decoder);
  // A progressive image is in memory as 2 bytes a coefficient.
  decoder.mem->max_memory_to_use = long(1) << 30;
  jpeg_mem_src(&decoder, file, static_cast<unsigned long>(bytes));
  jpeg_read_header(&decoder, TRUE);
}

int jpegSize(const uint8_t *file, size_t bytes, int64_t *height, int64_t *width,
             Reason *reason) {
  jpeg_decompress_struct decoder = {};
  Errors errors;
  begin(decoder, errors, reason);
  if (setjmp(errors.place)) {
    jpeg_destroy_decompress(&decoder);
    return -1;
  }
  readHeader(decoder, file, bytes);
  *height = decoder.image_height;
  *width = decoder.image_width;
  jpeg_destroy_decompress(&decoder);
  return 0;
}

int decodeJpeg(const uint8_t *file, size_t bytes, int channels, uint8_t *pixels,
               size_t, Reason *reason) {
  jpeg_decompress_struct decoder = {};
  Errors errors;
  jpeg_progress_mgr progress = {};
  begin(decoder, errors, reason);
  if (setjmp(errors.place)) {
    jpeg_destroy_decompress(&decoder);
    return -1;
  }
  readHeader(decoder, file, bytes);
  progress.progress_monitor = onProgress;
  decoder.progress = &progress;
  if (decoder.num_components != 1 && decoder.num_components != 3) {
    std::snprintf(reason->text, sizeof reason->text,
                  "expected a gray or an RGB image, but it has %d channels",
                  decoder.num_components);
    jpeg_destroy_decompress(&decoder);
    return -1;
  }
  decoder.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&decoder);
  size_t stride = size_t(decoder.output_width) * size_t(channels);
  while (decoder.output_scanline < decoder.output_height) {
    JSAMPROW row = pixels + decoder.output_scanline * stride;
    jpeg_read_scanlines(&decoder, &row, 1);
  }
  jpeg_finish_decompress(&decoder);
  jpeg_destroy_decompress(&decoder);
  return 0;
}

} // namespace tandem::images
