//===- Files.cpp - no output replaces what it should not ------------------===//
#include "tools/commands/Files.h"

#include "runtime/artifact/AtomicFile.h"
#include "tools/commands/Kept.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <utility>

namespace tandem::commands {
namespace {

using io::FileKind;
using io::inQuotes;

/// What two names of one file have in common; empty for what is no regular
/// file, which any number may read and write.
std::string identityOf(const std::string &path) {
  struct stat facts;
  if (::stat(path.c_str(), &facts) != 0)
    return artifact::followLinks(path);
  if (!S_ISREG(facts.st_mode))
    return "";
  return std::to_string(facts.st_dev) + ":" + std::to_string(facts.st_ino);
}

std::string listOf(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + inQuotes(name);
  return text;
}

template <typename T> bool has(const std::vector<T> &all, const T &one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

bool isPipe(const std::string &path) {
  struct stat facts;
  return ::stat(path.c_str(), &facts) == 0 && S_ISFIFO(facts.st_mode);
}

std::string replacing(const OutputPath &output) {
  return output.who + " would replace " + inQuotes(output.path);
}

/// True for MODEL.NN.PHASE.mlir and MODEL.NN.PHASE.TARGET.mlir.
bool isNamedAsADump(std::string_view name) {
  auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
  if (!name.ends_with(".mlir"))
    return false;
  for (size_t i = 0; i + 3 < name.size(); ++i)
    if (name[i] == '.' && isDigit(name[i + 1]) && isDigit(name[i + 2]) &&
        name[i + 3] == '.')
      return true;
  return false;
}

} // namespace

void Files::reads(std::string who, const std::string &path) {
  if (!path.empty())
    inputs_.push_back({std::move(who), path, identityOf(path)});
}

void Files::readsArguments(const std::string &option,
                           const std::vector<std::string> &texts) {
  for (const std::string &text : texts) {
    auto argument = io::parseArgument(text);
    if (!argument || argument->kind == io::Argument::Kind::Scalar)
      continue; // the command itself says what is wrong with it
    for (const std::string &path : argument->paths())
      inputs_.push_back(
          {option + " '" + argument->name + "'", path, identityOf(path),
           argument->member.empty() ? argument->name : argument->member, true});
  }
}

void Files::writes(OutputPath output) {
  if (output.path.empty())
    return;
  Output &added = outputs_.emplace_back();
  static_cast<OutputPath &>(added) = std::move(output);
  added.id = identityOf(added.path);
}

void Files::writesArguments(const std::string &option,
                            const std::vector<std::string> &texts) {
  for (const std::string &text : texts) {
    auto argument = io::parseArgument(text);
    if (!argument || argument->kind == io::Argument::Kind::Scalar)
      continue;
    std::string who = option + " '" + argument->name + "'";
    if (argument->kind == io::Argument::Kind::Npy) {
      writes({who, argument->text, {FileKind::Npy}});
      continue;
    }
    auto same = std::find_if(
        outputs_.begin(), outputs_.end(), [&](const Output &output) {
          return output.archive && output.path == argument->text;
        });
    if (same == outputs_.end()) {
      writes({who, argument->text, {}});
      same = std::prev(outputs_.end());
      same->archive = argument->kind == io::Argument::Kind::Npz ? FileKind::Npz
                      : argument->kind == io::Argument::Kind::Csv
                          ? FileKind::Csv
                          : FileKind::Safetensors;
    }
    // A table is written as a whole.
    same->adds |= !argument->member.empty() && *same->archive != FileKind::Csv;
    same->members.push_back(argument->member.empty() ? argument->name
                                                     : argument->member);
  }
}

void Files::writesNewFiles(const std::string &folder) {
  if (!folder.empty())
    folders_.push_back(folder);
}

void Files::keeps(std::string who, const std::string &path,
                  std::string goesOnWith) {
  if (!path.empty())
    kept_.push_back({std::move(who), path, std::move(goesOnWith)});
}

std::vector<std::string> Files::inputs() const {
  std::vector<std::string> paths;
  for (const Input &input : inputs_)
    paths.push_back(input.path);
  return paths;
}

std::vector<std::string> Files::outputs() const {
  std::vector<std::string> paths;
  for (const Output &output : outputs_)
    paths.push_back(output.path);
  return paths;
}

void Files::writesDumps(std::string who, const std::string &folder) {
  if (!folder.empty())
    dumps_.push_back({std::move(who), folder});
}

/// Of an output that replaces the file as a whole.
void Files::checkKind(const Output &output,
                      std::vector<std::string> &lost) const {
  bool goesOn = false;
  for (const Input &input : inputs_) {
    if (output.id.empty() || input.id != output.id)
      continue;
    goesOn = input.who == output.goesOnWith;
    if (goesOn)
      continue;
    lost.push_back(replacing(output) + ", which " + input.who + " reads");
    return;
  }
  // Options that a person wrote are not those that a command resolved.
  if (goesOn && !has(output.replaces, FileKind::Options))
    return;
  FileKind kind = io::fileKind(output.path);
  if (kind == FileKind::Missing || kind == FileKind::Special ||
      kind == FileKind::Empty)
    return;
  if (has(output.replaces, kind))
    return;
  std::string expected;
  for (FileKind fine : output.replaces)
    expected +=
        (expected.empty() ? "" : " or ") + std::string(io::describe(fine));
  std::string text = replacing(output);
  if (!expected.empty())
    text += ": expected " + expected + " but got " +
            std::string(io::describe(kind));
  lost.push_back(std::move(text));
}

/// True if all columns of the table `path` are called as those of an output
/// among `names` are: NAME, or NAME.0, NAME.1, ...
static bool hasColumnsOf(const std::string &path,
                         const std::vector<std::string> &names) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::stringstream cells(line);
  for (std::string cell; std::getline(cells, cell, ',');) {
    std::erase_if(cell, [](char c) { return c == '"' || c == '\r'; });
    bool isOne = std::any_of(names.begin(), names.end(), [&](auto &name) {
      return cell == name || cell.starts_with(name + ".");
    });
    if (!isOne)
      return false;
  }
  return true;
}

/// Of an archive: arrays that are neither written again nor kept.
void Files::checkArchive(const Output &output,
                         std::vector<std::string> &lost) const {
  FileKind kind = io::fileKind(output.path);
  bool isArchive =
      *output.archive == FileKind::Npz
          ? kind == FileKind::Npz
          : *output.archive == FileKind::Safetensors && io::isSafetensors(kind);
  if (!isArchive) {
    Output whole = output;
    whole.replaces = {*output.archive};
    size_t before = lost.size();
    checkKind(whole, lost);
    if (kind == FileKind::Csv && lost.size() == before &&
        !hasColumnsOf(output.path, output.members))
      lost.push_back(replacing(output) +
                     ", a table with other columns than its own");
    return;
  }
  std::vector<std::string> others, again;
  for (const std::string &name : io::arraysIn(output.path))
    (has(output.members, name) ? again : others).push_back(name);
  for (const Input &input : inputs_) {
    if (input.id != output.id)
      continue;
    if (!output.adds || !input.isArray || has(output.members, input.member)) {
      lost.push_back(replacing(output) + ", which " + input.who + " reads");
      return;
    }
  }
  if (output.adds && !again.empty() && !others.empty())
    lost.push_back(output.who + " would replace " + listOf(again) + " in " +
                   inQuotes(output.path));
  if (output.adds && kind == FileKind::Checkpoint)
    lost.push_back(output.who + " would add to " + inQuotes(output.path) +
                   ", a checkpoint, whose training would replace it whole");
  if (!output.adds && !others.empty())
    lost.push_back(replacing(output) + ", which holds " + listOf(others) +
                   " ('@" + output.path + ":NAME' adds to it)");
}

/// An input that lies among the dumps is replaced if it is one of them.
void Files::checkDumps(const Dumps &dumps,
                       std::vector<std::string> &lost) const {
  std::string folder = artifact::followLinks(dumps.folder + "/.");
  folder.resize(folder.rfind('/') + 1);
  auto check = [&](const std::string &who, const std::string &path) {
    std::string file = artifact::followLinks(path);
    size_t name = file.rfind('/') + 1;
    if (file.compare(0, name, folder) == 0 && isNamedAsADump(file.substr(name)))
      lost.push_back(dumps.who + "=" + dumps.folder + " may replace " +
                     inQuotes(path) + " of " + who);
  };
  for (const Input &input : inputs_)
    check(input.who, input.path);
  for (const Output &output : outputs_)
    check(output.who, output.path);
  // What is called like a dump and is none.
  std::error_code error;
  for (const auto &entry :
       std::filesystem::directory_iterator(dumps.folder, error)) {
    if (!isNamedAsADump(entry.path().filename().string()))
      continue;
    FileKind kind = io::fileKind(entry.path().string());
    bool isLink = entry.is_symlink(error);
    if (isLink || (kind != FileKind::Missing && kind != FileKind::Empty &&
                   kind != FileKind::Module))
      lost.push_back(dumps.who + "=" + dumps.folder + " may replace " +
                     inQuotes(entry.path().string()) + ", which is " +
                     (isLink ? "a link" : std::string(describe(kind))));
  }
}

/// Which steps a training keeps depends on when it ends: no file has the name
/// of any.
void Files::checkKept(const Kept &kept, std::vector<std::string> &lost,
                      std::vector<std::string> &problems) const {
  auto text = [&](const std::string &path) {
    return kept.who + " would replace or remove " + inQuotes(path) +
           ", which has a name of the checkpoints that are kept beside " +
           inQuotes(kept.path) + ", and ";
  };
  for (const Input &input : inputs_)
    if (input.who != kept.goesOnWith && keptStep(kept.path, input.path))
      lost.push_back(text(input.path) + input.who + " reads");
  for (const Output &output : outputs_)
    if (keptStep(kept.path, output.path))
      problems.push_back(text(output.path) + output.who + " writes");
}

Status Files::check(bool force, bool isForced) const {
  if (force && !isForced && outputs_.empty() && dumps_.empty())
    return Status::usage("--force has no effect: no file is written");
  std::vector<std::string> lost, problems, same;
  for (const Output &output : outputs_)
    output.archive ? checkArchive(output, lost) : checkKind(output, lost);
  for (const Dumps &dumps : dumps_)
    checkDumps(dumps, lost);
  for (const Kept &kept : kept_)
    checkKept(kept, lost, same);
  if (!force)
    problems = lost;
  for (const Output &output : outputs_) {
    if (output.path.ends_with(".tandem-lock") ||
        output.path.find(".tandem-tmp-") != std::string::npos)
      problems.push_back(output.who + ": " + inQuotes(output.path) +
                         " has a name that locks and unfinished files have");
    if ((has(output.replaces, FileKind::Checkpoint) ||
         has(output.replaces, FileKind::CheckpointIndex)) &&
        isPipe(output.path))
      problems.push_back(output.who + ": expected a file but got the pipe " +
                         inQuotes(output.path) +
                         ": a checkpoint is written more than once");
    if (output.path == "-")
      problems.push_back(output.who + ": expected a file but got '-' (a file "
                                      "of this name is './-')");
  }
  problems.insert(problems.end(), same.begin(), same.end());
  for (size_t i = 0; i < outputs_.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (!outputs_[i].id.empty() && outputs_[i].id == outputs_[j].id)
        problems.push_back(outputs_[j].who + " and " + outputs_[i].who +
                           " would both write " + inQuotes(outputs_[i].path));
  std::string text;
  for (const std::string &problem : problems)
    text += (text.empty() ? "" : "; ") + problem;
  if (!force && !lost.empty())
    text += "; choose another file, or say --force";
  if (!text.empty())
    return Status::usage(text);
  for (const Output &output : outputs_) {
    // Opened twice, a pipe's reader would find its end in between.
    if (output.inPlace || isPipe(output.path))
      continue;
    auto file = artifact::AtomicFile::create(output.path);
    if (!file)
      return std::move(file).status();
  }
  return Status::success();
}

} // namespace tandem::commands
