//===- Folder.h - a folder of one test ------------------------------------===//
//
// Tests run side by side, each in its process: files of a fixed name are those
// of others, too.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_SUPPORT_FOLDER_H
#define TANDEM_TESTS_SUPPORT_FOLDER_H

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace tandem::test {

/// A new folder, removed at the end of the test.
class Folder {
public:
  Folder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "tandem-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) {
      std::perror(pattern.c_str());
      std::abort();
    }
    path_ = pattern;
  }
  Folder(const Folder &) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string operator/(const std::string &name) const {
    return path_ + "/" + name;
  }
  const std::string &path() const { return path_; }
  /// Returns the names in the folder, sorted.
  std::vector<std::string> list() const {
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(path_))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

private:
  std::string path_;
};

} // namespace tandem::test

#endif // TANDEM_TESTS_SUPPORT_FOLDER_H
