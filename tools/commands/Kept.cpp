//===- Kept.cpp - earlier checkpoints of a training -----------------------===//
#include "tools/commands/Kept.h"

#include "runtime/artifact/AtomicFile.h"
#include "runtime/io/Array.h"
#include "runtime/io/TensorFiles.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
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

/// The step in `name`, a kept checkpoint's of `path`; neither has a folder
/// here. "w-007.safetensors" is a name that nothing is kept under.
std::optional<int64_t> stepIn(std::string_view name, const std::string &path) {
  auto [stem, suffix] = partsOf(path.substr(path.rfind('/') + 1));
  std::string prefix = stem + "-";
  if (name.size() <= prefix.size() + suffix.size() ||
      !name.starts_with(prefix) || !name.ends_with(suffix))
    return std::nullopt;
  std::string_view digits =
      name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  int64_t step = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), step);
  return step >= 0 && std::to_string(step) == digits ? std::optional(step)
                                                     : std::nullopt;
}

/// The steps of which files beside `path` have the number in their names.
std::vector<int64_t> stepsBeside(const std::string &path) {
  fs::path folder = fs::path(path).parent_path();
  std::vector<int64_t> steps;
  std::error_code error;
  for (const auto &entry :
       fs::directory_iterator(folder.empty() ? "." : folder, error)) {
    if (auto step = stepIn(entry.path().filename().string(), path))
      steps.push_back(*step);
  }
  return steps;
}

/// `to` appears whole or not at all.
Status copy(const std::string &from, const std::string &to) {
  std::ifstream in(from, std::ios::binary);
  auto out = artifact::AtomicFile::create(to);
  if (!out)
    return std::move(out).status();
  std::vector<char> piece(size_t(1) << 20);
  while (in) {
    in.read(piece.data(), std::streamsize(piece.size()));
    if (Status status = out->write(piece.data(), size_t(in.gcount())); !status)
      return status;
  }
  if (!in.eof())
    return Status::failed("cannot read " + io::inQuotes(from));
  return out->commit();
}

} // namespace

std::optional<int64_t> keptStep(const std::string &path,
                                const std::string &file) {
  // The folder without links; one that is not there has no files to lose.
  auto folderOf = [](const std::string &name) {
    fs::path folder = fs::path(name).parent_path();
    std::error_code error;
    return fs::canonical(folder.empty() ? "." : folder, error);
  };
  fs::path folder = folderOf(path);
  std::string name = file;
  constexpr int mostLinks = 40; // as the kernel's own limit
  for (int links = 0; links <= mostLinks && !name.empty(); ++links) {
    if (auto step = stepIn(fs::path(name).filename().string(), path);
        step && !folder.empty() && folderOf(name) == folder)
      return step;
    std::error_code error;
    fs::path to = fs::read_symlink(name, error);
    if (error)
      break;
    name = (fs::path(name).parent_path() / to).string();
  }
  return std::nullopt;
}

Status keepCheckpoint(const std::string &path, const std::string &graph,
                      int64_t step, int64_t count, const std::string &spared) {
  auto [stem, suffix] = partsOf(path);
  auto nameOf = [&](int64_t number) {
    return stem + "-" + std::to_string(number) + suffix;
  };
  std::string name = nameOf(step);
  std::error_code error;
  auto sparedStep = keptStep(path, spared);
  if (fs::exists(fs::symlink_status(name, error))) {
    if (!isOurs(name, graph, step))
      return Status::failed("--keep: expected no file " + io::inQuotes(name) +
                            ", or the checkpoint of this step");
    if (sparedStep == step)
      return Status::success();
    fs::remove(name, error);
  }
  // The next save puts another file in the place of `path`, so that this one
  // costs nothing; where a file system has no links, it is copied. A link to
  // what is a symbolic link would be one to the checkpoint that comes next.
  if (::link(artifact::followLinks(path).c_str(), name.c_str()) != 0)
    if (Status status = copy(path, name); !status)
      return std::move(status).in("--keep");
  std::vector<int64_t> steps = stepsBeside(path);
  std::erase_if(steps, [&](int64_t number) {
    return !isOurs(nameOf(number), graph, number);
  });
  std::sort(steps.rbegin(), steps.rend());
  for (size_t i = size_t(count); i < steps.size(); ++i)
    if (steps[i] != sparedStep)
      fs::remove(nameOf(steps[i]), error);
  return Status::success();
}

} // namespace tandem::commands
