//===- ImageFolder.cpp - images in folders that are their classes ---------===//
#include "tools/commands/ImageFolder.h"

#include "runtime/io/Argument.h"
#include "tools/commands/ImageRows.h"
#include "tools/commands/Print.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <zlib.h>

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

/// What cannot be looked at, as a link to itself, is none.
bool isFolder(const std::string &path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

/// Adds the images of one folder; `problems` gets what is none.
void addFiles(const std::set<std::string> &entries, Listing &listing,
              Problems &problems) {
  for (const std::string &path : entries)
    if (isImageName(path) && !isFolder(path))
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
  bool hasClasses = std::any_of(entries->begin(), entries->end(), isFolder);
  if (!hasClasses)
    addFiles(*entries, listing, problems);
  for (const std::string &path :
       hasClasses ? *entries : std::set<std::string>()) {
    if (!isFolder(path)) {
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

/// The files of a listing.
class FolderFiles : public FileSource {
public:
  FolderFiles(const std::string &folder, std::vector<std::string> files)
      : folder_(folder.size()), files_(std::move(files)) {}
  int64_t count() const override { return int64_t(files_.size()); }
  Result<std::vector<std::byte>> read(int64_t i) const override {
    const std::string &path = files_[size_t(i)];
    std::error_code error;
    uintmax_t bytes = fs::file_size(path, error);
    if (!error && bytes > mostBytes)
      return Status::usage("expected a file of at most " +
                           std::to_string(mostBytes) + " bytes, but it has " +
                           std::to_string(bytes));
    return io::readFile(path);
  }
  std::string nameOf(int64_t i) const override {
    return "'" + files_[size_t(i)] + "'";
  }
  uint32_t digest() const override {
    uLong crc = crc32_z(0, nullptr, 0);
    for (const std::string &path : files_) {
      std::error_code error;
      std::string text = path.substr(folder_) + '\0' +
                         std::to_string(fs::file_size(path, error)) + '\0';
      crc = crc32_z(crc, reinterpret_cast<const Bytef *>(text.data()),
                    text.size());
    }
    return uint32_t(crc);
  }

private:
  size_t folder_; ///< the letters of its path
  std::vector<std::string> files_;
};

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
  if (Status status = takeImages(made,
                                 std::make_shared<FolderFiles>(
                                     argument.text, std::move(listing->files)),
                                 argument.member, value);
      !status)
    return status;
  return made;
}

} // namespace tandem::commands
