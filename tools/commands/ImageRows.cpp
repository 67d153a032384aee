//===- ImageRows.cpp - encoded images as rows of bytes --------------------===//
#include "tools/commands/ImageRows.h"

#include "runtime/comm/Plugin.h"
#include "runtime/images/Images.h"
#include "tools/commands/ImageFit.h"
#include "tools/commands/ImageLayout.h"
#include "tools/commands/KeptRows.h"

#include <cstring>

namespace tandem::commands {
namespace {

Result<const images::Decoder *> openDecoder() {
  return comm::openTable<images::Decoder>("decoder of images", "images",
                                          "tandem_images", images::kVersion);
}

Result<ImageLayout> layoutOf(const artifact::Value &value) {
  if (auto layout = imageLayoutOf(value.shape))
    return *layout;
  return Status::usage("expected an input of images, [N, C, H, W] or [N, H, W, "
                       "C] with 1 or 3 channels or [N, H, W], but it is " +
                       runtime::describe(value.dtype, value.shape));
}

Result<Image> decode(const images::Decoder &decoder, const FileSource &files,
                     int64_t i, int64_t channels) {
  auto file = files.read(i);
  if (!file)
    return std::move(file).status();
  auto *data = reinterpret_cast<const uint8_t *>(file->data());
  images::Reason reason = {};
  Image image;
  image.channels = channels;
  if (decoder.size(data, file->size(), &image.height, &image.width, &reason))
    return Status::usage(reason.text);
  image.pixels.resize(size_t(image.height * image.width * channels));
  if (decoder.decode(data, file->size(), int(channels), image.pixels.data(),
                     image.pixels.size(), &reason))
    return Status::usage(reason.text);
  return image;
}

void place(const Image &image, const ImageLayout &layout, uint8_t *to) {
  int64_t pixels = layout.height * layout.width;
  if (!layout.hasPlanes) {
    std::memcpy(to, image.pixels.data(), image.pixels.size());
    return;
  }
  for (int64_t c = 0; c < layout.channels; ++c)
    for (int64_t i = 0; i < pixels; ++i)
      to[c * pixels + i] = image.pixels[size_t(i * layout.channels + c)];
}

class ImageRows : public RowSource {
public:
  ImageRows(const images::Decoder &decoder,
            std::shared_ptr<const FileSource> files, ImageFit fit,
            ImageLayout layout)
      : decoder_(decoder), files_(std::move(files)), fit_(fit),
        layout_(layout) {}

  /// Keeps what is decoded from here on.
  void keep() {
    kept_ = std::make_unique<KeptRows>("images", files_->count(),
                                       layout_.height * layout_.width *
                                           layout_.channels);
  }

  Status read(int64_t row, std::span<std::byte> to) const override {
    if (kept_ && kept_->read(row, to))
      return Status::success();
    auto image = decode(decoder_, *files_, row, layout_.channels);
    if (image)
      image = fit_.apply(*std::move(image), layout_.height, layout_.width);
    if (!image)
      return std::move(image).status().in(nameOf(row));
    place(*image, layout_, reinterpret_cast<uint8_t *>(to.data()));
    if (kept_)
      kept_->write(row, 1, to);
    return Status::success();
  }
  std::string nameOf(int64_t row) const override { return files_->nameOf(row); }
  uint32_t digest() const override { return files_->digest(); }

private:
  const images::Decoder &decoder_;
  std::shared_ptr<const FileSource> files_;
  ImageFit fit_;
  ImageLayout layout_;
  std::unique_ptr<KeptRows> kept_;
};

} // namespace

Status takeImages(NamedArray &array, std::shared_ptr<const FileSource> files,
                  std::string_view text, const artifact::Value &value) {
  auto fit = ImageFit::parse(text);
  auto layout = layoutOf(value);
  if (!fit || !layout)
    return fit ? std::move(layout).status() : std::move(fit).status();
  auto decoder = openDecoder();
  if (!decoder)
    return std::move(decoder).status();
  array.array.dtype = artifact::DType::U8;
  array.array.shape = value.shape;
  array.array.shape[0] = files->count();
  auto rows =
      std::make_shared<ImageRows>(**decoder, std::move(files), *fit, *layout);
  if (Status status = takeRows(array, rows); !status)
    return status;
  if (array.rows)
    rows->keep();
  return Status::success();
}

} // namespace tandem::commands
