//===- ImageFit.cpp - images of the size that a model takes ---------------===//
//
// As torchvision's Resize and CenterCrop of an image of Pillow 13, to the bit.
//
//===----------------------------------------------------------------------===//
#include "tools/commands/ImageFit.h"

#include "runtime/images/Images.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

namespace tandem::commands {
namespace {

/// Of the weights, which add up to 1 in this fixed point.
constexpr int precision = 22;

/// The pixels along one side that a new one is the mean of.
struct Window {
  int64_t first = 0;
  std::vector<int32_t> weights;
};

std::vector<Window> windowsOf(int64_t from, int64_t to) {
  std::vector<Window> windows(static_cast<size_t>(to));
  double scale = double(from) / double(to), wide = std::max(scale, 1.0);
  for (int64_t i = 0; i < to; ++i) {
    Window &window = windows[size_t(i)];
    double center = (double(i) + 0.5) * scale;
    window.first = std::max(int64_t(0), int64_t(center - wide + 0.5));
    int64_t end = std::min(from, int64_t(center + wide + 0.5));
    std::vector<double> weights;
    double sum = 0;
    for (int64_t x = window.first; x < end; ++x) {
      double distance = std::abs((double(x) - center + 0.5) / wide);
      weights.push_back(std::max(0.0, 1 - distance));
      sum += weights.back();
    }
    for (double weight : weights)
      window.weights.push_back(
          int32_t(0.5 + weight / sum * double(int32_t(1) << precision)));
  }
  return windows;
}

/// One side at a time: `lines` of `from` pixels, `step` bytes apart, become
/// those of `to`.
void resizeLines(const uint8_t *in, uint8_t *out, int64_t lines, int64_t inLine,
                 int64_t outLine, int64_t step, int64_t channels,
                 const std::vector<Window> &windows) {
  for (int64_t line = 0; line < lines; ++line)
    for (size_t i = 0; i < windows.size(); ++i)
      for (int64_t c = 0; c < channels; ++c) {
        const Window &window = windows[i];
        int32_t sum = 1 << (precision - 1);
        const uint8_t *pixel = in + line * inLine + window.first * step + c;
        for (int32_t weight : window.weights) {
          sum += *pixel * weight;
          pixel += step;
        }
        out[line * outLine + int64_t(i) * step + c] =
            uint8_t(std::clamp(sum >> precision, 0, 255));
      }
}

/// Returns the image with rows of `width` pixels.
Image resizedRows(const Image &image, int64_t width) {
  int64_t channels = image.channels;
  Image made{image.height, width, channels, {}};
  made.pixels.resize(size_t(image.height * width * channels));
  resizeLines(image.pixels.data(), made.pixels.data(), image.height,
              image.width * channels, width * channels, channels, channels,
              windowsOf(image.width, width));
  return made;
}

/// Returns the image with columns of `height` pixels.
Image resizedColumns(const Image &image, int64_t height) {
  // A pixel of a column is a whole row apart from the next.
  int64_t row = image.width * image.channels;
  Image made{height, image.width, image.channels, {}};
  made.pixels.resize(size_t(height * row));
  resizeLines(image.pixels.data(), made.pixels.data(), 1, 0, 0, row, row,
              windowsOf(image.height, height));
  return made;
}

Image middleOf(const Image &image, int64_t height, int64_t width) {
  // Halves go to the even number, as Python rounds.
  auto top = int64_t(std::nearbyint(double(image.height - height) / 2));
  auto left = int64_t(std::nearbyint(double(image.width - width) / 2));
  Image cut{height, width, image.channels, {}};
  int64_t bytes = width * image.channels;
  cut.pixels.resize(size_t(height * bytes));
  for (int64_t y = 0; y < height; ++y)
    std::memcpy(cut.pixels.data() + y * bytes,
                image.pixels.data() +
                    ((top + y) * image.width + left) * image.channels,
                size_t(bytes));
  return cut;
}

std::string sizeText(int64_t height, int64_t width) {
  return std::to_string(height) + " rows of " + std::to_string(width);
}

} // namespace

Image resized(const Image &image, int64_t height, int64_t width) {
  // Each pass rounds to bytes, so that their order shows in the bits: Pillow
  // since 13 begins with the side that loses far more lines.
  int64_t lost = image.height - height;
  if (lost > 0 && lost > (image.width - width) * 2)
    return resizedRows(resizedColumns(image, height), width);
  return resizedColumns(resizedRows(image, width), height);
}

Result<ImageFit> ImageFit::parse(std::string_view text) {
  ImageFit fit;
  if (text.empty())
    return fit;
  if (text == "crop") {
    fit.kind = Kind::Crop;
    return fit;
  }
  if (text == "resize") {
    fit.kind = Kind::Stretch;
    return fit;
  }
  constexpr std::string_view option = "resize=";
  const char *end = text.data() + text.size();
  if (text.starts_with(option)) {
    auto [stop, error] =
        std::from_chars(text.data() + option.size(), end, fit.side);
    if (error == std::errc() && stop == end && fit.side >= 1 &&
        fit.side <= 16384) {
      fit.kind = Kind::Shorter;
      return fit;
    }
  }
  return Status::usage("expected 'labels', 'crop', 'resize' or 'resize=N' with "
                       "N from 1 to 16384 behind the folder, but got '" +
                       std::string(text) + "'");
}

Result<Image> ImageFit::apply(Image image, int64_t height,
                              int64_t width) const {
  if (kind == Kind::Stretch)
    return resized(image, height, width);
  if (kind == Kind::Shorter) {
    int64_t shorter = std::min(image.height, image.width);
    // As Python's int(side * longer / shorter).
    auto longOf = [&](int64_t longer) {
      return int64_t(double(side * longer) / double(shorter));
    };
    bool isWide = image.height < image.width;
    int64_t toHeight = isWide ? side : longOf(image.height);
    int64_t toWidth = isWide ? longOf(image.width) : side;
    if (toHeight > images::kMostPixels / toWidth)
      return Status::usage("it has " + sizeText(image.height, image.width) +
                           ", and with a shorter side of " +
                           std::to_string(side) + " more than 2^26 pixels");
    image = resized(image, toHeight, toWidth);
  }
  if (image.height == height && image.width == width)
    return image;
  std::string is = "it has " + sizeText(image.height, image.width) +
                   (kind == Kind::Shorter ? " when it is resized" : "");
  if (kind == Kind::None)
    return Status::usage("expected " + sizeText(height, width) + ", but " + is +
                         "; ':crop', ':resize' or ':resize=N' behind the "
                         "folder makes it fit");
  if (image.height < height || image.width < width)
    return Status::usage("expected at least " + sizeText(height, width) +
                         ", but " + is);
  return middleOf(image, height, width);
}

} // namespace tandem::commands
