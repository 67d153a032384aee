//===- Argument.cpp - NAME=VALUE on a command line ------------------------===//
//
// The extension decides the format, for reading as for writing, so that one
// spelling means one thing. A ':' separates a member only after ".npz",
// ".safetensors" or ".csv"; elsewhere it belongs to the path.
//
//===----------------------------------------------------------------------===//
#include "runtime/io/Argument.h"

#include "runtime/io/Csv.h"
#include "runtime/io/Elements.h"
#include "runtime/io/File.h"
#include "runtime/io/FileKind.h"
#include "runtime/io/FileLock.h"
#include "runtime/io/Foreign.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Npz.h"
#include "runtime/io/Safetensors.h"

#include <algorithm>
#include <map>
#include <optional>

namespace tandem::io {
namespace {

constexpr std::string_view extensions =
    "'.npy', '.npz[:MEMBER]', '.safetensors[:TENSOR]' or '.csv[:COLUMNS]'";
/// Beside them, of files that are read.
constexpr std::string_view tokens =
    ", of tables '.parquet[:COLUMNS]', '.arrow[:COLUMNS]' or "
    "'.feather[:COLUMNS]', of tokens '.bin:u16' or '.bin:u32', a folder of "
    "images, 'FOLDER/', or "
    "tars, '{000..003}.tar:ENDING'";

constexpr size_t mostPaths = 1000000; ///< that braces make

/// Takes "PATH.npz" or "PATH.npz:MEMBER" apart; returns whether it is one.
bool splitMember(std::string_view text, std::string_view extension,
                 Argument &argument) {
  std::string separator = std::string(extension) + ":";
  size_t at = text.find(separator);
  if (at == std::string_view::npos && !text.ends_with(extension))
    return false;
  size_t end =
      at == std::string_view::npos ? text.size() : at + extension.size();
  argument.text = text.substr(0, end);
  if (end < text.size())
    argument.member = text.substr(end + 1);
  return true;
}

/// True for a path that is absolute or goes up, on any system.
bool leavesFolder(std::string_view path) {
  constexpr std::string_view separators = "/\\";
  size_t first = path.find_first_of(separators);
  if (first == 0 || (first == 2 && path[1] == ':'))
    return true;
  while (true) {
    size_t end = std::min(path.find_first_of(separators), path.size());
    if (path.substr(0, end) == "..")
      return true;
    if (end == path.size())
      return false;
    path.remove_prefix(end + 1);
  }
}

Result<Array> readTensor(const std::string &path, const std::string &member,
                         const std::string &name) {
  auto file = Safetensors::read(path);
  if (!file)
    return std::move(file).status();
  const auto &entries = file->entries();
  std::string wanted = member.empty() ? name : member;
  if (member.empty() && !entries.count(wanted) && entries.size() == 1)
    wanted = entries.begin()->first;
  auto view = file->find(wanted);
  if (!view) {
    std::string present;
    for (const auto &[other, entry] : entries)
      present += (present.empty() ? "" : ", ") + inQuotes(other);
    return Status::usage(inQuotes(path) + ": has no tensor " +
                         inQuotes(wanted) + "; it has " +
                         (present.empty() ? "none" : present));
  }
  return Array{view->dtype,
               {view->shape.begin(), view->shape.end()},
               {view->bytes.begin(), view->bytes.end()}};
}

/// What goes into one file.
struct Contents {
  std::map<std::string, ArrayView> arrays;
  bool adds = false; ///< to what is there
};

/// Adds the arrays that the archive `path` has besides and writes it.
Status writeNpzWithOthers(const std::string &path, Contents &contents) {
  std::vector<Array> kept;
  std::vector<std::string> names;
  auto file = readFile(path);
  if (!file)
    return std::move(file).status();
  auto archive = NpzArchive::open(*file);
  if (!archive)
    return std::move(archive).status().in(inQuotes(path));
  for (const std::string &name : archive->names()) {
    if (contents.arrays.count(name))
      continue;
    auto array = archive->read(name);
    if (!array)
      return std::move(array).status().in(inQuotes(path));
    kept.push_back(*std::move(array));
    names.push_back(name);
  }
  for (size_t i = 0; i < kept.size(); ++i)
    contents.arrays.emplace(names[i], kept[i]);
  return writeNpz(path, contents.arrays);
}

Status writeTensorsWithOthers(const std::string &path, Contents &contents) {
  auto file = Safetensors::read(path);
  if (!file)
    return std::move(file).status();
  for (const auto &[name, entry] : file->entries())
    contents.arrays.emplace(name, *file->find(name));
  return writeSafetensors(path, contents.arrays, file->metadata());
}

/// Writes one table.
Status writeTable(const std::string &path,
                  const std::map<std::string, ArrayView> &members) {
  std::vector<CsvColumns> columns;
  for (const auto &[name, array] : members) {
    if (array.shape.empty() ||
        array.shape[0] != members.begin()->second.shape[0])
      return Status::usage(inQuotes(path) +
                           ": expected arrays with equally "
                           "many rows for a table but got " +
                           inQuotes(name) + " of shape " +
                           shapeText(array.shape));
    columns.push_back({name, array});
  }
  std::string text = csvText(columns);
  Bytes bytes = std::as_bytes(std::span(text));
  return replaceFile(path, std::span(&bytes, 1));
}

Status writeContents(const std::string &path, Argument::Kind kind,
                     Contents &contents) {
  if (kind == Argument::Kind::Npy)
    return writeNpy(path, contents.arrays.begin()->second);
  if (kind == Argument::Kind::Csv)
    return writeTable(path, contents.arrays);
  FileKind present = contents.adds ? fileKind(path) : FileKind::Missing;
  if (kind == Argument::Kind::Npz)
    return present == FileKind::Npz ? writeNpzWithOthers(path, contents)
                                    : writeNpz(path, contents.arrays);
  return isSafetensors(present) ? writeTensorsWithOthers(path, contents)
                                : writeSafetensors(path, contents.arrays, {});
}

/// What stands between two braces, one by one: "000..003" or "a,b"; nothing
/// where that is neither.
std::vector<std::string> choicesOf(std::string_view text) {
  std::vector<std::string> all;
  size_t dots = text.find("..");
  if (dots == std::string_view::npos) {
    for (size_t begin = 0; begin <= text.size();) {
      size_t end = std::min(text.find(',', begin), text.size());
      all.emplace_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return all.size() > 1 ? all : std::vector<std::string>();
  }
  std::string_view first = text.substr(0, dots), last = text.substr(dots + 2);
  auto isNumber = [](std::string_view digits) {
    return !digits.empty() && digits.size() < 10 &&
           digits.find_first_not_of("0123456789") == digits.npos;
  };
  if (!isNumber(first) || !isNumber(last))
    return {};
  int64_t begin = std::stoll(std::string(first)),
          end = std::stoll(std::string(last));
  if (end < begin || end - begin >= int64_t(mostPaths))
    return {};
  for (int64_t i = begin; i <= end; ++i) {
    std::string digits = std::to_string(i);
    // As a shell does it, zeros are kept.
    bool isPadded = first.size() > 1 && first[0] == '0';
    if (isPadded && digits.size() < first.size())
      digits.insert(0, first.size() - digits.size(), '0');
    all.push_back(digits);
  }
  return all;
}

/// Every path of `text`; none where its braces are wrong or there are too many.
std::vector<std::string> expandBraces(const std::string &text) {
  std::vector<std::string> all = {""};
  for (size_t at = 0; at < text.size();) {
    size_t open = std::min(text.find('{', at), text.size());
    size_t close = std::min(text.find('}', at), text.size());
    if (close < open)
      return {};
    for (std::string &path : all)
      path.append(text, at, open - at);
    if (open == text.size())
      break;
    if (close == text.size())
      return {};
    auto choices =
        choicesOf(std::string_view(text).substr(open + 1, close - open - 1));
    if (choices.empty() || choices.size() > mostPaths / all.size())
      return {};
    std::vector<std::string> next;
    for (const std::string &path : all)
      for (const std::string &choice : choices)
        next.push_back(path + choice);
    all = std::move(next);
    at = close + 1;
  }
  return all;
}

} // namespace

std::vector<std::string> Argument::paths() const {
  return kind == Kind::Tar || kind == Kind::Table
             ? expandBraces(text)
             : std::vector<std::string>{text};
}

std::string Argument::where() const {
  if (kind == Kind::Scalar)
    return inQuotes(text);
  return inQuotes(text + (member.empty() ? "" : ":" + member));
}

size_t endOfName(std::string_view text) {
  size_t file = text.find("=@");
  return file == std::string_view::npos ? text.find('=') : file;
}

bool isTableName(std::string_view path) {
  return path.ends_with(".parquet") || path.ends_with(".arrow") ||
         path.ends_with(".feather");
}

Result<Argument> parseArgument(std::string_view text) {
  size_t equals = endOfName(text);
  if (equals == std::string_view::npos || equals == 0 ||
      equals + 1 == text.size())
    return Status::usage("expected NAME=@FILE or NAME=NUMBER but got " +
                         inQuotes(text));
  Argument argument;
  argument.name = text.substr(0, equals);
  std::string_view value = text.substr(equals + 1);
  if (value[0] != '@') {
    argument.text = value;
    return argument;
  }
  value.remove_prefix(1);
  // First, since a member may be called NAME.npy.
  bool isTar = splitMember(value, ".tar", argument);
  if (isTar || splitMember(value, ".parquet", argument) ||
      splitMember(value, ".arrow", argument) ||
      splitMember(value, ".feather", argument)) {
    argument.kind = isTar ? Argument::Kind::Tar : Argument::Kind::Table;
    if (argument.paths().empty())
      return Status::usage(argument.where() +
                           ": expected braces as {000..003} or {a,b}, and at "
                           "most " +
                           std::to_string(mostPaths) + " files");
  } else if (splitMember(value, ".npz", argument)) {
    argument.kind = Argument::Kind::Npz;
  } else if (splitMember(value, ".safetensors", argument)) {
    argument.kind = Argument::Kind::Safetensors;
  } else if (value.ends_with(".npy")) {
    argument.kind = Argument::Kind::Npy;
    argument.text = value;
  } else if (splitMember(value, ".csv", argument)) {
    argument.kind = Argument::Kind::Csv;
  } else if (splitMember(value, ".bin", argument)) {
    argument.kind = Argument::Kind::Tokens;
  } else if (splitMember(value, "/", argument)) {
    argument.kind = Argument::Kind::Images;
  } else {
    return Status::usage(inQuotes(argument.name) + ": expected a file named " +
                         std::string(extensions) + std::string(tokens) +
                         " but got " + inQuotes(value) + adviceFor(value));
  }
  return argument;
}

Result<Array> readArgument(const Argument &argument, artifact::DType scalarType,
                           const ArrayCheck &check) {
  switch (argument.kind) {
  case Argument::Kind::Scalar:
    return parseScalar(argument.text, scalarType);
  case Argument::Kind::Npy:
    return readNpy(argument.text);
  case Argument::Kind::Npz:
    return readNpz(argument.text, argument.member, argument.name, check);
  case Argument::Kind::Csv:
    return readCsv(argument.text, argument.member, argument.name);
  case Argument::Kind::Tokens:
    return Status::usage(argument.where() +
                         ": tokens are rows, of a program's input");
  case Argument::Kind::Images:
  case Argument::Kind::Tar:
    return Status::usage(argument.where() +
                         ": images and samples are rows, of a program's input");
  case Argument::Kind::Table:
    return Status::usage(argument.where() +
                         ": tables of Parquet and Arrow are for a program's "
                         "inputs");
  case Argument::Kind::Safetensors:
    break;
  }
  return readTensor(argument.text, argument.member, argument.name);
}

Status checkPlace(const Argument &argument) {
  if (argument.kind == Argument::Kind::Scalar ||
      argument.kind == Argument::Kind::Tokens ||
      argument.kind == Argument::Kind::Images ||
      argument.kind == Argument::Kind::Table ||
      argument.kind == Argument::Kind::Tar)
    return Status::usage(
        inQuotes(argument.name) + ": expected '@FILE' with a file named " +
        std::string(extensions) + " but got " + inQuotes(argument.text));
  const std::string &member =
      argument.member.empty() ? argument.name : argument.member;
  if (argument.kind == Argument::Kind::Npz && leavesFolder(member))
    return Status::usage(inQuotes(argument.name) + ": expected a member of '" +
                         argument.text +
                         "' that is no absolute path and has no '..' in it, "
                         "but got " +
                         inQuotes(member));
  return Status::success();
}

Status writeArguments(std::span<const OutputFile> outputs) {
  std::map<std::pair<std::string, Argument::Kind>, Contents> files;
  std::string problems;
  for (const OutputFile &output : outputs) {
    const Argument &argument = output.argument;
    std::string problem;
    if (Status status = checkPlace(argument); !status) {
      problem = status.message();
    } else {
      Contents &contents = files[{argument.text, argument.kind}];
      contents.adds |= !argument.member.empty();
      std::string member =
          argument.member.empty() ? argument.name : argument.member;
      if (argument.kind == Argument::Kind::Npy)
        member.clear();
      if (!contents.arrays.emplace(member, output.array).second)
        problem = "two outputs go to " + argument.where();
    }
    if (!problem.empty())
      problems += (problems.empty() ? "" : "; ") + problem;
  }
  if (!problems.empty())
    return Status::usage(problems);
  for (auto &[file, contents] : files) {
    // Between reading the arrays that are there and replacing the file.
    std::optional<FileLock> lock;
    if (contents.adds) {
      auto taken = FileLock::take(file.first);
      if (!taken)
        return std::move(taken).status();
      lock.emplace(*std::move(taken));
    }
    if (Status status = writeContents(file.first, file.second, contents);
        !status)
      return status;
  }
  return Status::success();
}

} // namespace tandem::io
