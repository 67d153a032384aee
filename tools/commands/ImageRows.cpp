//===- ImageRows.cpp - encoded images as rows of bytes --------------------===//
#include "tools/commands/ImageRows.h"

#include "runtime/comm/Plugin.h"
#include "runtime/images/Images.h"
#include "tools/commands/ImageFit.h"
#include "tools/commands/Print.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sys/statvfs.h>
#include <unistd.h>

namespace tandem::commands {
namespace {

Result<const images::Decoder *> openDecoder() {
  return comm::openTable<images::Decoder>("decoder of images", "images",
                                          "tandem_images", images::kVersion);
}

/// How an input has images.
struct Layout {
  int64_t height, width, channels;
  bool hasPlanes; ///< a channel's pixels lie together
};

Result<Layout> layoutOf(const artifact::Value &value) {
  auto isChannels = [](int64_t n) { return n == 1 || n == 3; };
  const std::vector<int64_t> &shape = value.shape;
  if (shape.size() == 4 && isChannels(shape[1]))
    return Layout{shape[2], shape[3], shape[1], true};
  if (shape.size() == 4 && isChannels(shape[3]))
    return Layout{shape[1], shape[2], shape[3], false};
  if (shape.size() == 3)
    return Layout{shape[1], shape[2], 1, true};
  return Status::usage("expected an input of images, [N, C, H, W] or [N, H, W, "
                       "C] with 1 or 3 channels or [N, H, W], but it is " +
                       runtime::describe(value.dtype, shape));
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

void place(const Image &image, const Layout &layout, uint8_t *to) {
  int64_t pixels = layout.height * layout.width;
  if (!layout.hasPlanes) {
    std::memcpy(to, image.pixels.data(), image.pixels.size());
    return;
  }
  for (int64_t c = 0; c < layout.channels; ++c)
    for (int64_t i = 0; i < pixels; ++i)
      to[c * pixels + i] = image.pixels[size_t(i * layout.channels + c)];
}

/// Rows that were decoded, in a file without a name.
class Decoded {
public:
  /// Nothing is kept where the folder for temporary files has no room for all.
  Decoded(int64_t rows, int64_t each) : each_(each), has_(size_t(rows)) {
    const char *named = std::getenv("TMPDIR");
    std::string folder = named && *named ? named : "/tmp";
    struct statvfs room = {};
    if (::statvfs(folder.c_str(), &room) != 0 ||
        double(room.f_bavail) * double(room.f_frsize) <
            1.1 * double(rows) * double(each)) {
      note("'" + folder + "' has no room for " + bytesText(rows * each) +
           " of decoded images (TMPDIR names another folder): they are decoded "
           "in each pass");
      return;
    }
    std::string path = folder + "/tandem-images-XXXXXX";
    file_ = ::mkstemp(path.data());
    if (file_ >= 0)
      ::unlink(path.c_str());
  }
  Decoded(const Decoded &) = delete;
  ~Decoded() {
    if (file_ >= 0)
      ::close(file_);
  }

  /// Returns whether the row is there and was read.
  bool read(int64_t row, std::span<std::byte> to) const {
    return has_[size_t(row)].load(std::memory_order_acquire) &&
           ::pread(file_, to.data(), to.size(), off_t(row * each_)) ==
               ssize_t(to.size());
  }
  /// Keeps it; where that fails, it is decoded again.
  void write(int64_t row, std::span<const std::byte> from) {
    if (file_ >= 0 && ::pwrite(file_, from.data(), from.size(),
                               off_t(row * each_)) == ssize_t(from.size()))
      has_[size_t(row)].store(1, std::memory_order_release);
  }

private:
  int file_ = -1;
  int64_t each_;
  std::vector<std::atomic<uint8_t>> has_;
};

class ImageRows : public RowSource {
public:
  ImageRows(const images::Decoder &decoder,
            std::shared_ptr<const FileSource> files, ImageFit fit,
            Layout layout)
      : decoder_(decoder), files_(std::move(files)), fit_(fit),
        layout_(layout) {}

  /// Keeps what is decoded from here on.
  void keep() {
    kept_ = std::make_unique<Decoded>(
        files_->count(), layout_.height * layout_.width * layout_.channels);
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
      kept_->write(row, to);
    return Status::success();
  }
  std::string nameOf(int64_t row) const override { return files_->nameOf(row); }
  uint32_t digest() const override { return files_->digest(); }

private:
  const images::Decoder &decoder_;
  std::shared_ptr<const FileSource> files_;
  ImageFit fit_;
  Layout layout_;
  std::unique_ptr<Decoded> kept_;
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
