//===- ImageFuzz.cpp - any bytes as an image ------------------------------===//
//
// What is accepted has a size within the limits, and decodes to so many bytes
// or says why not.
//
//===----------------------------------------------------------------------===//
#include "runtime/images/Images.h"
#include "tests/fuzz/Fuzz.h"

#include <cstring>

using namespace tandem;
using namespace tandem::fuzz;

extern "C" const images::Decoder *tandem_images();

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const images::Decoder &decoder = *tandem_images();
  images::Reason reason = {};
  int64_t height = 0, width = 0;
  if (decoder.size(data, size, &height, &width, &reason)) {
    require(reason.text[0] != 0 && std::strlen(reason.text) < sizeof reason);
    return 0;
  }
  require(height >= 1 && width >= 1 && height * width <= images::kMostPixels);
  // Large ones take long and show nothing else.
  if (height * width > 1 << 16)
    return 0;
  for (int channels : {1, 3}) {
    std::vector<uint8_t> pixels(size_t(height * width * channels));
    if (decoder.decode(data, size, channels, pixels.data(), pixels.size(),
                       &reason))
      require(reason.text[0] != 0 && std::strlen(reason.text) < sizeof reason);
  }
  return 0;
}
