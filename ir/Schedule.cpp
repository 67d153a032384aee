//===- Schedule.cpp - spelling of a kernel's schedule ---------------------===//
#include "ir/Schedule.h"
#include "ir/Dialect.h"
#include "ir/Nearest.h"
#include "ir/ScheduleMethods.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tandem;

using ErrorAt = llvm::function_ref<InFlightDiagnostic()>;

// A tile of `rows` and `vectors` is written out in code; `block` and `columns`
// reach as far as a tensor can; a block of CUDA has at most 32 warps.
static constexpr ScheduleKeyRow rows[] = {
    {ScheduleKey::Method, "method", ScheduleKeyRow::Method, 0,
     ScheduleKeyRow::Any},
    {ScheduleKey::Rows, "rows", ScheduleKeyRow::Number, 32,
     ScheduleKeyRow::Cpu},
    {ScheduleKey::Vectors, "vectors", ScheduleKeyRow::Number, 8,
     ScheduleKeyRow::Cpu},
    {ScheduleKey::Block, "block", ScheduleKeyRow::Number, kMaxElements,
     ScheduleKeyRow::Cpu},
    {ScheduleKey::Columns, "columns", ScheduleKeyRow::Number, kMaxElements,
     ScheduleKeyRow::Cpu},
    {ScheduleKey::Packs, "packs", ScheduleKeyRow::Flag, 1, ScheduleKeyRow::Cpu},
    {ScheduleKey::Ahead, "ahead", ScheduleKeyRow::Flag, 1, ScheduleKeyRow::Cpu},
    {ScheduleKey::BlockM, "block_m", ScheduleKeyRow::Number, 1024,
     ScheduleKeyRow::Cuda},
    {ScheduleKey::BlockN, "block_n", ScheduleKeyRow::Number, 1024,
     ScheduleKeyRow::Cuda},
    {ScheduleKey::BlockK, "block_k", ScheduleKeyRow::Number, 1024,
     ScheduleKeyRow::Cuda},
    {ScheduleKey::WarpsM, "warps_m", ScheduleKeyRow::Number, 32,
     ScheduleKeyRow::Cuda},
    {ScheduleKey::WarpsN, "warps_n", ScheduleKeyRow::Number, 32,
     ScheduleKeyRow::Cuda},
    {ScheduleKey::Stages, "stages", ScheduleKeyRow::Number, 16,
     ScheduleKeyRow::Cuda},
    {ScheduleKey::Splits, "splits", ScheduleKeyRow::Number, 64,
     ScheduleKeyRow::Cuda}};
static_assert(std::size(rows) == kScheduleKeys);

ArrayRef<ScheduleKeyRow> tandem::scheduleKeys() { return rows; }

const ScheduleKeyRow &tandem::rowOf(ScheduleKey key) {
  return rows[static_cast<unsigned>(key)];
}

const ScheduleKeyRow *tandem::scheduleKeyOf(StringRef name) {
  const auto *row = llvm::find_if(
      rows, [&](const ScheduleKeyRow &row) { return row.name == name; });
  return row == std::end(rows) ? nullptr : row;
}

//===----------------------------------------------------------------------===//
// What it says
//===----------------------------------------------------------------------===//

std::optional<int64_t> ScheduleAttr::valueOf(ScheduleKey key) const {
  for (const ScheduleEntry &entry : getEntries())
    if (entry.key == key)
      return entry.value;
  return std::nullopt;
}

std::optional<ScheduleMethod> ScheduleAttr::getMethod() const {
  std::optional<int64_t> value = valueOf(ScheduleKey::Method);
  if (!value)
    return std::nullopt;
  return symbolizeScheduleMethod(static_cast<uint32_t>(*value));
}

ScheduleAttr ScheduleAttr::getAsked() const {
  SmallVector<ScheduleEntry> asked;
  llvm::copy_if(getEntries(), std::back_inserter(asked),
                [](const ScheduleEntry &entry) { return !entry.isChosen; });
  return asked.empty() ? ScheduleAttr() : get(getContext(), asked);
}

ScheduleAttr ScheduleAttr::withoutChoosers() const {
  SmallVector<ScheduleEntry> entries(getEntries());
  for (ScheduleEntry &entry : entries)
    entry.isChosen = false;
  return get(getContext(), entries);
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

namespace {
/// What stands between the angle brackets.
struct ScheduleParser {
  explicit ScheduleParser(AsmParser &parser) : parser(parser) {}

  AsmParser &parser;
  SmallVector<ScheduleEntry> entries;
  bool isChosen = false; ///< between the parentheses

  ParseResult item();
  ParseResult entry(SMLoc at, StringRef key);
  ParseResult number(const ScheduleKeyRow &row, int64_t &to);
  ParseResult flag(const ScheduleKeyRow &row, int64_t &to);
  ParseResult method(int64_t &to);
};
} // namespace

ParseResult ScheduleParser::number(const ScheduleKeyRow &row, int64_t &to) {
  SMLoc at = parser.getCurrentLocation();
  OptionalParseResult given = parser.parseOptionalInteger(to);
  if (given.has_value() && failed(*given))
    return failure();
  if (given.has_value() && to >= 1 && to <= row.most)
    return success();
  InFlightDiagnostic error = parser.emitError(at);
  error << "expected '" << row.name << "' of a schedule to be 1 to "
        << row.most;
  if (given.has_value())
    error << ", but got " << to;
  return error;
}

ParseResult ScheduleParser::flag(const ScheduleKeyRow &row, int64_t &to) {
  SMLoc at = parser.getCurrentLocation();
  StringRef word;
  if (succeeded(parser.parseOptionalKeyword(&word, {"true", "false"}))) {
    to = word == "true";
    return success();
  }
  return parser.emitError(at)
         << "expected '" << row.name << "' of a schedule to be true or false";
}

ParseResult ScheduleParser::method(int64_t &to) {
  SMLoc at = parser.getCurrentLocation();
  std::string word;
  if (failed(parser.parseOptionalKeywordOrString(&word)))
    return parser.emitError(at)
           << "expected 'method' of a schedule to be a name, as winograd";
  if (auto method = symbolizeScheduleMethod(word)) {
    to = static_cast<int64_t>(*method);
    return success();
  }
  return parser.emitError(at)
         << "expected 'method' of a schedule to be " << listOf(methodNames())
         << ", but got '" << word << "'" << didYouMean(word, methodNames());
}

ParseResult ScheduleParser::entry(SMLoc at, StringRef key) {
  SmallVector<StringRef> names;
  for (const ScheduleKeyRow &row : scheduleKeys())
    names.push_back(row.name);
  const ScheduleKeyRow *row = scheduleKeyOf(key);
  if (!row)
    return parser.emitError(at)
           << "expected a schedule to have '" << llvm::join(names, "', '")
           << "', but got '" << key << "'" << didYouMean(key, names);
  if (llvm::any_of(entries, [&](const ScheduleEntry &entry) {
        return entry.key == row->key;
      }))
    return parser.emitError(at)
           << "expected '" << key << "' of a schedule once, but got it twice";
  if (parser.parseEqual())
    return failure();
  ScheduleEntry &entry = entries.emplace_back(row->key, 0, isChosen);
  switch (row->kind) {
  case ScheduleKeyRow::Method:
    return method(entry.value);
  case ScheduleKeyRow::Flag:
    return flag(*row, entry.value);
  case ScheduleKeyRow::Number:
    break;
  }
  return number(*row, entry.value);
}

ParseResult ScheduleParser::item() {
  SMLoc at = parser.getCurrentLocation();
  StringRef key;
  if (parser.parseKeyword(&key))
    return failure();
  if (isChosen || key != "chosen")
    return entry(at, key);
  isChosen = true;
  auto inner = [&] { return item(); };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, inner))
    return failure();
  isChosen = false;
  return success();
}

// schedule ::= `<` item (`,` item)* `>`, in any order
// item ::= entry | `chosen` `(` entry (`,` entry)* `)`
// entry ::= key `=` value
Attribute ScheduleAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  ScheduleParser s(parser);
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     [&] { return s.item(); }))
    return {};
  llvm::sort(s.entries, [](const ScheduleEntry &x, const ScheduleEntry &y) {
    return x.key < y.key;
  });
  return parser.getChecked<ScheduleAttr>(loc, parser.getContext(),
                                         ArrayRef<ScheduleEntry>(s.entries));
}

//===----------------------------------------------------------------------===//
// Printing and checking
//===----------------------------------------------------------------------===//

static void printEntry(raw_ostream &to, const ScheduleEntry &entry) {
  const ScheduleKeyRow &row = rowOf(entry.key);
  to << row.name << " = ";
  switch (row.kind) {
  case ScheduleKeyRow::Method:
    to << stringifyScheduleMethod(
        *symbolizeScheduleMethod(static_cast<uint32_t>(entry.value)));
    return;
  case ScheduleKeyRow::Flag:
    to << (entry.value ? "true" : "false");
    return;
  case ScheduleKeyRow::Number:
    to << entry.value;
  }
}

void ScheduleAttr::print(AsmPrinter &printer) const {
  raw_ostream &to = printer.getStream();
  SmallVector<ScheduleEntry> asked, chosen;
  for (const ScheduleEntry &entry : getEntries())
    (entry.isChosen ? chosen : asked).push_back(entry);
  auto print = [&](const ScheduleEntry &entry) { printEntry(to, entry); };
  to << '<';
  llvm::interleaveComma(asked, to, print);
  if (!chosen.empty()) {
    to << (asked.empty() ? "chosen(" : ", chosen(");
    llvm::interleaveComma(chosen, to, print);
    to << ')';
  }
  to << '>';
}

LogicalResult ScheduleAttr::verify(ErrorAt error,
                                   ArrayRef<ScheduleEntry> entries) {
  // What says nothing is no attribute: there is one way to say so.
  if (entries.empty())
    return error() << "expected a schedule to say something";
  const ScheduleKeyRow *ofCpu = nullptr, *ofCuda = nullptr;
  for (const ScheduleEntry &entry : entries) {
    const ScheduleKeyRow &row = rowOf(entry.key);
    int64_t least = row.kind == ScheduleKeyRow::Number ? 1 : 0;
    int64_t most = row.kind == ScheduleKeyRow::Method
                       ? getMaxEnumValForScheduleMethod()
                       : row.most;
    if (entry.value < least || entry.value > most)
      return error() << "expected '" << row.name << "' of a schedule to be "
                     << least << " to " << most << ", but got " << entry.value;
    if (row.target == ScheduleKeyRow::Cpu)
      ofCpu = &row;
    if (row.target == ScheduleKeyRow::Cuda)
      ofCuda = &row;
  }
  if (ofCpu && ofCuda)
    return error() << "expected a schedule of one target, but got '"
                   << ofCpu->name << "' of a CPU and '" << ofCuda->name
                   << "' of CUDA";
  for (size_t i = 1; i < entries.size(); ++i)
    if (entries[i - 1].key >= entries[i].key)
      return error() << "expected a schedule to have each key once, in order, "
                        "but got '"
                     << rowOf(entries[i].key).name << "' after '"
                     << rowOf(entries[i - 1].key).name << "'";
  return success();
}
