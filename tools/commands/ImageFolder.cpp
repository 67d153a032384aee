//===- ImageFolder.cpp - images in folders that are their classes ---------===//
#include "tools/commands/ImageFolder.h"

#include "runtime/comm/Plugin.h"
#include "runtime/device/Processors.h"
#include "runtime/device/ThreadPool.h"
#include "runtime/images/Images.h"
#include "runtime/io/Argument.h"
#include "tools/commands/ImageFit.h"
#include "tools/commands/Print.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <sys/mman.h>
#include <unistd.h>

namespace tandem::commands {
namespace {

namespace fs = std::filesystem;

/// The bytes of a file of an image.
constexpr uintmax_t mostBytes = uintmax_t(256) << 20;

/// The images of a folder, in their order.
struct Listing {
  std::vector<std::string> files, classes;
  std::vector<int64_t> labels; ///< empty: there are no classes
};

bool isImageName(const fs::path &path) {
  std::string end = path.extension().string();
  std::transform(end.begin(), end.end(), end.begin(),
                 [](unsigned char c) { return char(std::tolower(c)); });
  return end == ".png" || end == ".jpg" || end == ".jpeg";
}

/// The folders and files in `folder`, but for hidden ones, by their names.
Result<std::set<std::string>> entriesOf(const fs::path &folder) {
  std::set<std::string> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error))
    if (!at->path().filename().string().starts_with("."))
      entries.insert(at->path().string());
  if (error)
    return Status::failed("cannot read '" + folder.string() +
                          "': " + error.message());
  return entries;
}

/// Adds the images of one folder; `problems` gets what is none.
void addFiles(const std::set<std::string> &entries, Listing &listing,
              Problems &problems) {
  for (const std::string &path : entries)
    if (isImageName(path) && !fs::is_directory(path))
      listing.files.push_back(path);
    else
      problems.add("'" + path + "' is no .png, .jpg or .jpeg");
}

Result<Listing> list(const std::string &folder) {
  auto entries = entriesOf(folder);
  if (!entries)
    return std::move(entries).status();
  Listing listing;
  Problems problems;
  bool hasClasses = std::any_of(
      entries->begin(), entries->end(),
      [](const std::string &path) { return fs::is_directory(path); });
  if (!hasClasses)
    addFiles(*entries, listing, problems);
  for (const std::string &path :
       hasClasses ? *entries : std::set<std::string>()) {
    if (!fs::is_directory(path)) {
      problems.add("'" + path +
                   "' is in no class: beside it there are folders");
      continue;
    }
    auto own = entriesOf(path);
    if (!own)
      return std::move(own).status();
    addFiles(*own, listing, problems);
    if (listing.files.size() == listing.labels.size())
      problems.add("the class '" + path.substr(path.rfind('/') + 1) +
                   "' has no image");
    listing.labels.resize(listing.files.size(),
                          int64_t(listing.classes.size()));
    listing.classes.push_back(path.substr(path.rfind('/') + 1));
  }
  if (problems.none() && listing.files.empty())
    problems.add("'" + folder + "' has no image");
  if (!problems.none())
    return problems.status();
  return listing;
}

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

Result<Image> decode(const images::Decoder &decoder, const std::string &path,
                     int64_t channels) {
  std::error_code error;
  uintmax_t bytes = fs::file_size(path, error);
  if (!error && bytes > mostBytes)
    return Status::usage("expected a file of at most " +
                         std::to_string(mostBytes) + " bytes, but it has " +
                         std::to_string(bytes));
  auto file = io::readFile(path);
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

/// Memory of a file that has no name, in the folder for temporary files.
Result<std::shared_ptr<void>> unnamedFile(size_t bytes) {
  const char *named = std::getenv("TMPDIR");
  std::string folder = named && *named ? named : "/tmp";
  std::string path = folder + "/tandem-images-XXXXXX";
  int file = ::mkstemp(path.data());
  int reason = file < 0 ? errno : 0;
  if (file >= 0) {
    ::unlink(path.c_str());
    reason = ::posix_fallocate(file, 0, off_t(bytes));
  }
  void *data = MAP_FAILED;
  if (!reason) {
    data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    reason = data == MAP_FAILED ? errno : 0;
  }
  if (file >= 0)
    ::close(file);
  if (reason)
    return Status::failed(
        "no room for " + std::to_string(bytes) +
        " bytes of decoded images in '" + folder +
        "' (TMPDIR names another folder): " + std::strerror(reason));
  return std::shared_ptr<void>(
      data, [bytes](void *memory) { ::munmap(memory, bytes); });
}

/// Decodes all images; fails with the names of the first that it cannot.
Status decodeAll(const images::Decoder &decoder, const Listing &listing,
                 const Layout &layout, const ImageFit &fit, uint8_t *to) {
  constexpr size_t shown = 5;
  int64_t bytes = layout.height * layout.width * layout.channels;
  std::map<size_t, Status> problems;
  std::mutex mutex;
  auto take = [&](size_t i) -> Status {
    auto image = decode(decoder, listing.files[i], layout.channels);
    if (!image)
      return std::move(image).status();
    auto fitted = fit.apply(*std::move(image), layout.height, layout.width);
    if (fitted)
      place(*fitted, layout, to + int64_t(i) * bytes);
    return std::move(fitted).status();
  };
  auto takeOrSay = [&](size_t i) {
    Status status;
    try {
      status = take(i);
    } catch (const std::bad_alloc &) { // not through the pool
      status = Status::failed("there is no memory for it");
    }
    if (!status) {
      std::lock_guard lock(mutex);
      problems.emplace(i, std::move(status));
    }
  };
  runtime::ThreadPool pool(runtime::availableThreads());
  pool.run(
      int64_t(listing.files.size()), 1,
      [](void *context, int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i)
          (*static_cast<decltype(takeOrSay) *>(context))(size_t(i));
      },
      &takeOrSay);
  if (problems.empty())
    return Status::success();
  std::string text;
  size_t count = 0;
  for (const auto &[i, status] : problems)
    if (count++ < shown)
      text += (text.empty() ? "'" : "; '") + listing.files[i] +
              "': " + status.message();
  if (problems.size() > shown)
    text += "; and " + std::to_string(problems.size() - shown) + " more of " +
            std::to_string(listing.files.size()) + " images";
  return Status::usage(text);
}

/// "0 'cat' (10), 1 'dog' (12)", of so many classes.
std::string classesText(const Listing &listing) {
  constexpr size_t shown = 12;
  std::string text;
  for (size_t i = 0; i < std::min(shown, listing.classes.size()); ++i)
    text += (i ? ", " : "") + std::to_string(i) + " '" + listing.classes[i] +
            "' (" +
            std::to_string(std::count(listing.labels.begin(),
                                      listing.labels.end(), int64_t(i))) +
            ")";
  if (listing.classes.size() > shown)
    text += ", and so on in the order of names";
  return text;
}

} // namespace

Result<NamedArray> readFolder(const io::Argument &argument,
                              const artifact::Value &value) {
  auto listing = list(argument.text);
  if (!listing)
    return std::move(listing).status();
  auto count = int64_t(listing->files.size());
  NamedArray made;
  made.name = argument.name;
  made.file = argument.text;
  if (argument.member == "labels") {
    if (listing->classes.empty())
      return Status::usage("'" + argument.text +
                           "' has images without folders that are classes");
    auto bytes = std::as_bytes(std::span(listing->labels));
    made.array = {artifact::DType::I64, {count}, {bytes.begin(), bytes.end()}};
    made.classes = listing->classes;
    note("'" + argument.text + "' has " +
         std::to_string(listing->classes.size()) +
         " classes: " + classesText(*listing));
    return made;
  }
  auto fit = ImageFit::parse(argument.member);
  auto layout = layoutOf(value);
  if (!fit || !layout)
    return fit ? std::move(layout).status() : std::move(fit).status();
  auto decoder = openDecoder();
  if (!decoder)
    return std::move(decoder).status();
  int64_t each = layout->height * layout->width * layout->channels;
  if (each <= 0 || count > (int64_t(1) << 46) / each)
    return Status::usage("expected less than 2^46 bytes of images, but got " +
                         std::to_string(count) + " of " + std::to_string(each));
  auto memory = unnamedFile(size_t(count * each));
  if (!memory)
    return std::move(memory).status();
  if (Status status = decodeAll(**decoder, *listing, *layout, *fit,
                                static_cast<uint8_t *>(memory->get()));
      !status)
    return status;
  made.array.dtype = artifact::DType::U8;
  made.array.shape = value.shape;
  made.array.shape[0] = count;
  made.mapped = {static_cast<const std::byte *>(memory->get()),
                 size_t(count * each)};
  made.memory = *std::move(memory);
  return made;
}

} // namespace tandem::commands
