//===- Kept.cpp - earlier checkpoints of a training -----------------------===//
#include "tools/commands/Kept.h"

#include "runtime/io/Array.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <unistd.h>

namespace tandem::commands {
namespace {

namespace fs = std::filesystem;

/// "dir/w" and ".safetensors".
std::pair<std::string, std::string> partsOf(const std::string &path) {
  size_t name = path.rfind('/') == path.npos ? 0 : path.rfind('/') + 1;
  size_t dot = path.rfind('.');
  if (dot == path.npos || dot <= name)
    return {path, ""};
  return {path.substr(0, dot), path.substr(dot)};
}

/// True for a checkpoint of `graph` after `step`.
bool isOurs(const std::string &path, const std::string &graph, int64_t step) {
  auto metadata = io::TensorFiles::metadataOf(path);
  return metadata && (*metadata)["tandem.graph"] == graph &&
         (*metadata)["tandem.total_steps"] == std::to_string(step);
}

/// The steps of which files beside `path` have the number in their names.
std::vector<int64_t> stepsBeside(const std::string &path) {
  auto [stem, suffix] = partsOf(path);
  std::string prefix = fs::path(stem).filename().string() + "-";
  fs::path folder = fs::path(path).parent_path();
  std::vector<int64_t> steps;
  std::error_code error;
  for (const auto &entry :
       fs::directory_iterator(folder.empty() ? "." : folder, error)) {
    std::string name = entry.path().filename().string();
    if (name.size() <= prefix.size() + suffix.size() ||
        !name.starts_with(prefix) || !name.ends_with(suffix))
      continue;
    const char *begin = name.data() + prefix.size();
    const char *end = name.data() + name.size() - suffix.size();
    int64_t step = 0;
    auto [stop, problem] = std::from_chars(begin, end, step);
    if (problem == std::errc() && stop == end && step >= 0)
      steps.push_back(step);
  }
  return steps;
}

} // namespace

Status keepCheckpoint(const std::string &path, const std::string &graph,
                      int64_t step, int64_t count) {
  auto [stem, suffix] = partsOf(path);
  auto nameOf = [&](int64_t number) {
    return stem + "-" + std::to_string(number) + suffix;
  };
  std::string name = nameOf(step);
  std::error_code error;
  if (fs::exists(fs::symlink_status(name, error))) {
    if (!isOurs(name, graph, step))
      return Status::failed("--keep: expected no file " + io::inQuotes(name) +
                            ", or the checkpoint of this step");
    fs::remove(name, error);
  }
  // The next save puts another file in the place of `path`, so that this one
  // costs nothing; where a file system has no links, it is copied.
  if (::link(path.c_str(), name.c_str()) != 0 &&
      !fs::copy_file(path, name, error))
    return Status::failed("--keep: cannot write " + io::inQuotes(name) + ": " +
                          error.message());
  std::vector<int64_t> steps = stepsBeside(path);
  std::erase_if(steps, [&](int64_t number) {
    return !isOurs(nameOf(number), graph, number);
  });
  std::sort(steps.rbegin(), steps.rend());
  for (size_t i = size_t(count); i < steps.size(); ++i)
    fs::remove(nameOf(steps[i]), error);
  return Status::success();
}

} // namespace tandem::commands
