//===- Arrays.cpp - the arrays of a command line --------------------------===//
#include "tools/commands/Arrays.h"

#include "runtime/io/Argument.h"
#include "runtime/io/Csv.h"
#include "runtime/io/Elements.h"
#include "runtime/io/Npy.h"
#include "runtime/io/Tensors.h"
#include "tools/commands/ImageFolder.h"
#include "tools/commands/Print.h"
#include "tools/commands/TableRows.h"
#include "tools/commands/TarRows.h"

#include <algorithm>
#include <filesystem>
#include <sys/mman.h>
#include <unistd.h>

namespace tandem::commands {

using artifact::Manifest;
using artifact::Value;

/// The whole pages within, or around, `bytes`.
static void advise(io::Bytes bytes, int advice) {
  const auto page = uintptr_t(::sysconf(_SC_PAGESIZE));
  auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  uintptr_t end = begin + bytes.size();
  begin &= ~(page - 1);
  if (end > begin)
    ::madvise(reinterpret_cast<void *>(begin), end - begin, advice);
}

void NamedArray::release() const {
  if (memory)
    advise(mapped, MADV_DONTNEED);
}

void NamedArray::readAhead(int64_t first, int64_t count) const {
  if (memory)
    advise(mapped.subspan(size_t(first), size_t(count)), MADV_WILLNEED);
}

bool NamedArray::nextPiece(io::Bytes &piece) const {
  release();
  io::Bytes all = view().bytes;
  size_t at =
      piece.data() ? size_t(piece.data() - all.data()) + piece.size() : 0;
  const size_t most = memory ? size_t(32) << 20 : all.size();
  piece = all.subspan(at, std::min(most, all.size() - at));
  return !piece.empty();
}

static std::string ruleOf(std::string_view text) {
  size_t equals = text.rfind('=');
  return std::string(
      equals == std::string_view::npos ? text : text.substr(equals + 1));
}

void Casts::declare(OptionTable &options) {
  options
      .list("cast", "[NAME=]RULE", texts_,
            "how numbers of other types become the model's: 'round' (to "
            "nearest), or '*NUMBER' or '/NUMBER' before that; without NAME for "
            "all arrays")
      .check([](std::string_view text) {
        return io::Cast::parse(ruleOf(text)).status().in("--cast");
      })
      .byDefault("f64 is rounded to f32, and nothing else is lost")
      .example("round");
}

Status Casts::parse(const Manifest &manifest) {
  Problems problems;
  for (const std::string &text : texts_) {
    size_t equals = text.rfind('=');
    std::string name =
        equals == std::string::npos ? "" : text.substr(0, equals);
    auto cast = io::Cast::parse(ruleOf(text));
    if (!cast) {
      problems.add("--cast: " + cast.status().message());
      continue;
    }
    const Value *value = name.empty() ? nullptr : manifest.findValue(name);
    if (!name.empty() && (!value || value->role != artifact::Role::Input))
      problems.add("--cast: there is no array " + io::inQuotes(name));
    if (std::any_of(rules_.begin(), rules_.end(),
                    [&](const auto &rule) { return rule.first == name; }))
      problems.add("--cast: " +
                   (name.empty() ? "the rule for all"
                                 : "the rule for " + io::inQuotes(name)) +
                   " is given twice");
    rules_.emplace_back(name, *cast);
  }
  return problems.none() ? Status::success() : problems.status();
}

io::Cast Casts::of(std::string_view name) const {
  const io::Cast *general = nullptr;
  for (const auto &[other, cast] : rules_) {
    if (other == name)
      return cast;
    if (other.empty())
      general = &cast;
  }
  return general ? *general : io::Cast();
}

namespace {

/// Gives the rows of a table the shape of the value's.
void shapeRows(io::Array &table, const Value &value) {
  if (value.shape.empty() || table.shape.empty())
    return;
  int64_t columns = table.shape.size() == 2 ? table.shape[1] : 1, wanted = 1;
  for (size_t i = 1; i < value.shape.size(); ++i)
    wanted *= value.shape[i];
  if (columns != wanted)
    return;
  table.shape.resize(1);
  table.shape.insert(table.shape.end(), value.shape.begin() + 1,
                     value.shape.end());
}

/// Unpacked arrays of more bytes are looked at before they are unpacked, which
/// takes seconds; smaller ones are left to whoever knows all that is wrong.
constexpr int64_t largeArray = int64_t(64) << 20;

/// Refuses a large array that is none for `value`: of its shape, or where rows
/// are taken, any number of its rows.
Status checkLarge(const Value &value, bool takesRows, artifact::DType dtype,
                  std::span<const int64_t> shape) {
  std::span<const int64_t> own = value.shape;
  auto count = io::elementCount(shape);
  if (count && *count * byteSize(dtype) <= largeArray)
    return Status::success();
  size_t first = takesRows && !own.empty() && !shape.empty() ? 1 : 0;
  bool fits = shape.size() == own.size() &&
              std::equal(own.begin() + first, own.end(), shape.begin() + first);
  return fits ? Status::success()
              : Status::usage(std::string("expected ") +
                              (takesRows ? "rows of " : "") +
                              runtime::describe(value.dtype, own) +
                              " but got " + runtime::describe(dtype, shape));
}

/// Windows of as many tokens as the rows of `value` have elements, one behind
/// the other; with `shift=1` each begins a token later, as the targets of a
/// model that predicts the next one. Both have equally many.
Result<NamedArray> mapTokens(const io::Argument &argument, const Value *value,
                             const Casts &casts) {
  std::string_view type = argument.member;
  size_t comma = type.find(',');
  bool isShifted = comma != type.npos && type.substr(comma) == ",shift=1";
  if (isShifted)
    type = type.substr(0, comma);
  if (type != "u16" && type != "u32")
    return Status::usage(argument.where() +
                         ": expected ':u16' or ':u32', the type of the tokens, "
                         "or that and ',shift=1'");
  if (!value || value->shape.size() < 2)
    return Status::usage(argument.where() +
                         ": expected an input with a batch of windows");
  auto file = io::mapFile(argument.text);
  if (!file)
    return std::move(file).status();
  NamedArray result;
  result.name = argument.name;
  result.cast = casts.of(argument.name);
  result.array.dtype =
      type == "u16" ? artifact::DType::U16 : artifact::DType::U32;
  int64_t bytes = artifact::byteSize(result.array.dtype);
  int64_t count = int64_t(file->bytes.size()) / bytes, window = 1;
  for (size_t d = 1; d < value->shape.size(); ++d)
    window *= value->shape[d];
  if (int64_t(file->bytes.size()) % bytes != 0)
    return Status::usage(argument.where() + ": expected tokens of " +
                         std::to_string(bytes) + " bytes, but the file has " +
                         std::to_string(file->bytes.size()));
  int64_t rows = window && count ? (count - 1) / window : 0;
  result.array.shape = value->shape;
  result.array.shape[0] = rows;
  result.mapped = file->bytes.subspan(size_t(isShifted ? bytes : 0),
                                      size_t(rows * window * bytes));
  result.memory = std::move(file->memory);
  result.file = argument.text;
  return result;
}

/// An .npy file that is mapped, where it is large and its elements lie as they
/// are used; nothing otherwise.
std::optional<NamedArray> mapNpy(const io::Argument &argument) {
  std::error_code error;
  uintmax_t size = std::filesystem::file_size(argument.text, error);
  if (error || size <= uintmax_t(largeArray))
    return std::nullopt;
  auto file = io::mapFile(argument.text);
  auto header = file ? io::parseNpyHeader(file->bytes, file->bytes.size())
                     : Result<io::NpyHeader>(file.status());
  // What is wrong is said where it is read.
  if (!header || header->isSwapped || header->isColumnMajor ||
      header->dtype == artifact::DType::Bool)
    return std::nullopt;
  NamedArray made;
  made.array.dtype = header->dtype;
  made.array.shape = header->shape;
  made.mapped = file->bytes.subspan(header->bytes);
  made.memory = std::move(file->memory);
  return made;
}

Result<NamedArray> readOne(const io::Argument &argument, const Value *value,
                           const Casts &casts, bool takesRows) {
  if (argument.kind == io::Argument::Kind::Tokens && takesRows)
    return mapTokens(argument, value, casts);
  bool isTar = argument.kind == io::Argument::Kind::Tar;
  if ((isTar || argument.kind == io::Argument::Kind::Images) && takesRows) {
    if (!value || value->shape.empty())
      return Status::usage(argument.where() +
                           ": expected an input with a batch");
    auto made =
        isTar ? readTars(argument, *value) : readFolder(argument, *value);
    if (made)
      made->cast = casts.of(argument.name);
    return made;
  }
  if (argument.kind == io::Argument::Kind::Table) {
    auto made = readTable(argument, value, takesRows);
    if (made)
      made->cast = casts.of(argument.name);
    return made;
  }
  if (argument.kind == io::Argument::Kind::Npy && takesRows)
    if (auto mapped = mapNpy(argument)) {
      mapped->name = argument.name;
      mapped->file = argument.text;
      mapped->cast = casts.of(argument.name);
      return *std::move(mapped);
    }
  io::ArrayCheck check;
  if (value)
    check = [=](artifact::DType dtype, std::span<const int64_t> shape) {
      return checkLarge(*value, takesRows, dtype, shape);
    };
  io::Cast cast = casts.of(argument.name);
  std::optional<artifact::DType> exact; // what integers of a table have to fit
  if (value && !cast.rounds)
    exact = value->dtype;
  auto array =
      argument.kind == io::Argument::Kind::Csv
          ? io::readCsv(argument.text, argument.member, argument.name, exact)
          : io::readArgument(
                argument, value ? value->dtype : artifact::DType::F32, check);
  if (!array)
    return std::move(array).status();
  NamedArray result = {argument.name, *std::move(array), cast};
  if (argument.kind != io::Argument::Kind::Scalar)
    result.file = argument.text;
  if (argument.kind == io::Argument::Kind::Csv) {
    // Decimal numbers are rounded to whatever holds them.
    result.cast.rounds = true;
    if (value)
      shapeRows(result.array, *value);
  }
  return result;
}

/// Calls `take(argument, value)` for each argument, and collects problems.
template <typename Take>
Status forEachArgument(const std::vector<std::string> &texts,
                       const std::string &option, const Manifest &manifest,
                       Take take) {
  std::vector<std::string> names;
  std::string problems;
  Code code = Code::Ok;
  auto problem = [&](Status status) {
    problems += (problems.empty() ? "" : "; ") + status.message();
    code = code == Code::Ok ? status.code() : code;
  };
  for (const std::string &text : texts) {
    auto argument = io::parseArgument(text);
    if (!argument) {
      problem(std::move(argument).status().in(option));
      continue;
    }
    if (std::find(names.begin(), names.end(), argument->name) != names.end())
      problem(
          Status::usage(option + ": '" + argument->name + "' is given twice"));
    names.push_back(argument->name);
    Status status = take(*argument, manifest.findValue(argument->name));
    if (!status)
      problem(std::move(status).in(option + " '" + argument->name + "'"));
  }
  return problems.empty() ? Status::success() : Status(code, problems);
}

std::string rangeText(const Value &value) {
  std::string text = "an integer from " +
                     std::to_string(value.low.value_or(0)) + " to " +
                     std::to_string(*value.high - 1);
  if (value.ignored)
    text += ", or " + std::to_string(*value.ignored) + ", which does not count";
  return text;
}

} // namespace

Status checkNumbers(const io::ArrayView &array, const Value &value,
                    const io::Cast &cast, std::vector<std::string> &notes,
                    int64_t first) {
  auto report = io::checkCast(array, value.dtype, cast, first);
  if (!report)
    return Status::usage(
        (array.dtype == value.dtype || cast.scales
             ? ""
             : "expected " + std::string(spelling(value.dtype)) + " but got " +
                   std::string(spelling(array.dtype)) + ": ") +
        report.status().message());
  if (!report->rounded.empty() && notes.empty())
    notes.push_back(std::string(spelling(array.dtype)) + " is rounded to " +
                    std::string(spelling(value.dtype)) + ": " +
                    report->rounded);
  if (!value.high)
    return Status::success();
  auto bad = io::firstOutside(array, value.low.value_or(0), *value.high,
                              value.ignored);
  if (!bad)
    return Status::success();
  std::string where =
      array.shape.size() == 1
          ? "row " + std::to_string(first + *bad)
          : "element " + io::positionText(array.shape, first + *bad);
  std::string got = io::elementText(array, *bad);
  // Where indices count from the end, there is a `low`.
  bool mayBeIgnored = got.starts_with("-") && !value.ignored && !value.low;
  return Status::usage(
      "expected " + rangeText(value) + " but " + where + " is " + got +
      (mayBeIgnored ? "; labels that do not count need a loss with an "
                      "'ignore_index' (that of 'compile "
                      "--loss=KIND:OUTPUT,LABELS' is -100)"
                    : ""));
}

Result<std::vector<NamedArray>>
readArrays(const std::vector<std::string> &texts, const std::string &option,
           const Manifest &manifest, const Casts &casts) {
  std::vector<NamedArray> result;
  Status status =
      forEachArgument(texts, option, manifest,
                      [&](const io::Argument &argument, const Value *value) {
                        auto array = readOne(argument, value, casts,
                                             /*takesRows=*/true);
                        if (!array)
                          return std::move(array).status();
                        result.push_back(*std::move(array));
                        return Status::success();
                      });
  if (!status)
    return status;
  return result;
}

Result<std::vector<NamedTensor>>
readTensors(const std::vector<std::string> &texts, const std::string &option,
            const Manifest &manifest, const Casts &casts) {
  std::vector<NamedTensor> result;
  auto read = [&](const io::Argument &argument, const Value *value) -> Status {
    auto array = readOne(argument, value, casts, /*takesRows=*/false);
    if (!array)
      return std::move(array).status();
    std::vector<std::string> notes;
    if (value) {
      if (Status status =
              checkNumbers(array->array, *value, array->cast, notes);
          !status)
        return std::move(status).in(argument.where());
      auto converted = io::castArray(array->array, value->dtype, array->cast);
      if (!converted)
        return std::move(converted).status();
      array->array = *std::move(converted);
    }
    for (const std::string &text : notes)
      note(option + " '" + argument.name + "': " + text);
    auto tensor = io::toTensor(array->array);
    if (!tensor)
      return std::move(tensor).status();
    result.push_back({argument.name, std::move(*tensor)});
    return Status::success();
  };
  if (Status status = forEachArgument(texts, option, manifest, read); !status)
    return status;
  return result;
}

} // namespace tandem::commands
