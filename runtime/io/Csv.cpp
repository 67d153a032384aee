//===- Csv.cpp - tables of numbers in text --------------------------------===//
#include "runtime/io/Csv.h"

#include "runtime/io/ColumnChoice.h"
#include "runtime/io/Elements.h"
#include "runtime/io/File.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace tandem::io {
namespace {

/// The number of a cell without its plus, behind which is no other sign.
template <typename Number>
std::from_chars_result readNumber(std::string_view cell, Number &value) {
  if (cell.starts_with('+') && !cell.starts_with("+-"))
    cell.remove_prefix(1);
  auto parsed = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (parsed.ptr != cell.data() + cell.size())
    parsed.ec = std::errc::invalid_argument;
  return parsed;
}

std::optional<double> numberOf(std::string_view cell) {
  double value = 0;
  return readNumber(cell, value).ec == std::errc() ? std::optional(value)
                                                   : std::nullopt;
}

/// True for what is written as a number and is beyond what f64 holds, or
/// between 0 and the least that it does.
bool isOutOfRange(std::string_view cell) {
  double value = 0;
  return readNumber(cell, value).ec == std::errc::result_out_of_range;
}

/// The value of digits with a sign, where 64 bits hold it: bits of i64, or of
/// u64 where i64 does not reach.
struct Integer {
  uint64_t bits = 0;
  bool isNegative = false, isBeyondSigned = false;

  static std::optional<Integer> of(std::string_view cell) {
    int64_t value = 0;
    if (readNumber(cell, value).ec == std::errc())
      return Integer{uint64_t(value), value < 0, false};
    uint64_t large = 0;
    if (readNumber(cell, large).ec == std::errc())
      return Integer{large, false, true};
    return std::nullopt;
  }
  artifact::DType type() const {
    return isBeyondSigned ? artifact::DType::U64 : artifact::DType::I64;
  }
  bool fits(artifact::DType to) const {
    return !firstInexact(
        {type(), {}, std::as_bytes(std::span(&bits, size_t(1)))}, to);
  }
  /// Where f64 does not tell each integer from the next.
  bool isWide() const {
    uint64_t magnitude = isNegative ? 0 - bits : bits;
    return magnitude >= uint64_t(1) << 53;
  }
};

/// The integers of a table, until it is known what they are read as.
class Integers {
public:
  Integers(size_t width, std::optional<artifact::DType> wanted)
      : wanted(wanted && artifact::isFloat(*wanted) ? wanted : std::nullopt),
        columns(width) {}

  /// `where` says where the cell is, and what.
  template <typename Where>
  void add(const std::optional<Integer> &cell, size_t column, Where where) {
    columns[column].areIntegers &= cell.has_value();
    areAll &= cell.has_value();
    appendInteger(bytes, cell ? cell->bits : 0);
    if (!cell)
      return;
    isWide |= cell->isWide();
    if (cell->isBeyondSigned && beyondSigned.empty())
      beyondSigned = where();
    hasNegative |= cell->isNegative;
    if (inexact.empty() && cell->isWide() && !cell->fits(artifact::DType::F64))
      inexact = where();
    std::string &lost = columns[column].lost;
    if (wanted && lost.empty() && !cell->fits(*wanted))
      lost = where();
  }

  /// Makes `array`, of f64, one of integers where it has to be.
  Status finish(Array &array) {
    for (const Column &column : columns)
      if (column.areIntegers && !column.lost.empty())
        return Status::usage(column.lost + " is an integer that " +
                             std::string(spelling(*wanted)) +
                             " cannot hold exactly; '--cast=round' rounds it");
    if (!areAll)
      return inexact.empty()
                 ? Status::success()
                 : Status::usage(inexact + " is an integer that f64 does not "
                                           "hold, among numbers that are no "
                                           "integers");
    if (!beyondSigned.empty() && hasNegative)
      return Status::usage(beyondSigned + " is an integer that i64 does not "
                                          "hold, among negative ones");
    if (isWide)
      array = {beyondSigned.empty() ? artifact::DType::I64
                                    : artifact::DType::U64,
               array.shape, std::move(bytes)};
    return Status::success();
  }

private:
  struct Column {
    bool areIntegers = true;
    std::string lost; ///< where the first one is that `wanted` does not hold
  };

  std::optional<artifact::DType> wanted;
  std::vector<Column> columns;
  std::vector<std::byte> bytes;
  bool areAll = true, isWide = false, hasNegative = false;
  std::string beyondSigned, inexact;
};

/// True for what is no number but stands where one is missing, or is written
/// as one: no name of a column.
bool isBadNumber(std::string_view cell) {
  static constexpr std::string_view missing[] = {"na",   "n/a", "null",
                                                 "none", "?",   "missing"};
  std::string lower(cell);
  for (char &c : lower)
    c = char(std::tolower(static_cast<unsigned char>(c)));
  return cell.empty() || std::isdigit(static_cast<unsigned char>(cell[0])) ||
         std::string_view("+-.").find(cell[0]) != std::string_view::npos ||
         std::find(std::begin(missing), std::end(missing), lower) !=
             std::end(missing);
}

/// True if a list of columns (NAME, -NAME, NAME..NAME) has this name.
bool isAskedFor(std::string_view name, std::string_view columns) {
  auto endsAt = [&](size_t i) {
    return i >= columns.size() ||
           std::string_view(",.-").find(columns[i]) != columns.npos;
  };
  for (size_t at = columns.find(name); at != columns.npos;
       at = columns.find(name, at + 1))
    if (endsAt(at - 1) && endsAt(at + name.size()))
      return true;
  return false;
}

/// What the first row is. Names may be numbers, as those that pandas gives; but
/// among numbers a cell may be a number that is wrong. That a name is asked for
/// says that it is one.
struct FirstRow {
  bool hasNames = false;
  std::string_view doubtful; ///< what may be a name or a wrong number

  FirstRow(const std::vector<std::string> &cells, std::string_view columns,
           std::string_view otherwise) {
    bool hasNumber = false, hasBad = false, isMeant = false;
    for (const std::string &cell : cells) {
      if (numberOf(cell)) {
        hasNumber = true;
        continue;
      }
      hasNames = true;
      hasBad |= isBadNumber(cell);
      isMeant |= cell == otherwise || isAskedFor(cell, columns);
      doubtful = cell;
    }
    hasNames &= !(hasNumber && hasBad);
    if (!hasNames || !hasNumber || isMeant)
      doubtful = {};
  }
};

/// Whether a row is 0, 1, 2, ... or 1, 2, 3, ...: names that pandas gives to
/// columns without one, or data.
bool countsColumns(const std::vector<std::string> &cells) {
  if (cells.size() < 2 || (cells[0] != "0" && cells[0] != "1"))
    return false;
  size_t first = cells[0] == "1";
  for (size_t c = 0; c < cells.size(); ++c)
    if (cells[c] != std::to_string(first + c))
      return false;
  return true;
}

/// Takes "header=yes" or "header=no" off the front of what columns are asked
/// for.
std::optional<bool> takeHeader(std::string_view &columns) {
  for (std::string_view text : {"header=yes", "header=no"})
    if (columns.starts_with(text) &&
        (columns.size() == text.size() || columns[text.size()] == ',')) {
      columns.remove_prefix(std::min(columns.size(), text.size() + 1));
      return text.ends_with("yes");
    }
  return std::nullopt;
}

/// Takes one line after the other off a text, and takes lines apart.
class Lines {
public:
  explicit Lines(std::string_view text) : left(text) {
    if (left.starts_with("\xef\xbb\xbf"))
      left.remove_prefix(3);
  }

  /// Sets `cells` to those of the next line that is not empty; false at the
  /// end.
  bool next(std::vector<std::string> &cells) {
    while (!left.empty()) {
      size_t end = endOfLine();
      std::string_view text = left.substr(0, end);
      line = following;
      following += 1 + std::ranges::count(text, '\n'); // those in quotes
      left.remove_prefix(std::min(left.size(), end + 1));
      if (text.ends_with('\r'))
        text.remove_suffix(1);
      if (trimmed(text).empty())
        continue;
      split(text, cells);
      return true;
    }
    return false;
  }
  /// Where it begins.
  int64_t number() const { return line; }
  /// Whether quotes hold a part of cell `c` of the line, or are not closed.
  bool hasStrayQuote(size_t c) const {
    return std::find(strays.begin(), strays.end(), c) != strays.end();
  }
  bool isOpen() const { return isLeftOpen; }
  /// The cell that goes on in another line, but behind its quotes too: these
  /// are more likely of two cells, with a line's end between them.
  std::optional<size_t> doubtful() const { return doubtfulCell; }

private:
  /// Where a character is in its cell. Quotes begin at the beginning of a cell
  /// alone; elsewhere a quote is text.
  enum class Place { Begin, Quoted, Closed, Text };

  static Place after(Place place, char c) {
    if (place == Place::Quoted)
      return c == '"' ? Place::Closed : Place::Quoted;
    if (place == Place::Closed && c == '"')
      return Place::Quoted; // a doubled one
    if (c == ',')
      return Place::Begin;
    if (place == Place::Begin && isBlank(c))
      return Place::Begin;
    return place == Place::Begin && c == '"' ? Place::Quoted : Place::Text;
  }
  static bool isBlank(char c) { return c == ' ' || c == '\t'; }

  /// Where the line ends: not inside of quotes.
  size_t endOfLine() const {
    Place place = Place::Begin;
    for (size_t i = 0; i < left.size(); ++i) {
      if (left[i] == '\n' && place != Place::Quoted)
        return i;
      place = after(place, left[i]);
    }
    // A quote that nobody closed: the line is what it looks like.
    return place == Place::Quoted ? std::min(left.size(), left.find('\n'))
                                  : left.size();
  }

  void split(std::string_view text, std::vector<std::string> &cells) {
    cells.assign(1, "");
    strays.clear();
    doubtfulCell.reset();
    Place place = Place::Begin;
    bool wasQuoted = false;
    for (char c : text) {
      Place next = after(place, c);
      bool isText = next == Place::Text || next == Place::Begin;
      if (c == ',' && next == Place::Begin) {
        cells.emplace_back();
        wasQuoted = false;
      } else if (isText && ((wasQuoted && !isBlank(c)) || c == '"')) {
        if (!hasStrayQuote(cells.size() - 1))
          strays.push_back(cells.size() - 1);
        if (wasQuoted && cells.back().find('\n') != std::string::npos)
          doubtfulCell = cells.size() - 1;
        cells.back() += c;
      } else if (c != '"' || place == Place::Closed) {
        cells.back() += c;
      }
      wasQuoted |= next == Place::Quoted;
      place = next;
    }
    isLeftOpen = place == Place::Quoted;
    for (std::string &cell : cells)
      cell = trimmed(cell);
  }

  std::string_view left;
  int64_t line = 0, following = 1;
  std::vector<size_t> strays;
  std::optional<size_t> doubtfulCell;
  bool isLeftOpen = false;
};

Status doubtfulQuotes(int64_t line, size_t column) {
  return Status::usage("line " + std::to_string(line) + ", column " +
                       std::to_string(column + 1) +
                       ": expected quotes around a whole cell, as they hold "
                       "the end of a line");
}

} // namespace

Result<Array> parseCsv(std::string_view text, std::string_view columns,
                       std::string_view otherwise,
                       std::optional<artifact::DType> wanted) {
  Lines lines(text);
  std::vector<std::string> cells, names;
  if (!lines.next(cells))
    return Status::usage("expected a table but got an empty file");
  if (auto cell = lines.doubtful())
    return doubtfulQuotes(lines.number(), *cell);
  size_t width = cells.size();
  auto header = takeHeader(columns);
  FirstRow first(cells, columns, otherwise);
  std::string doubt;
  std::vector<std::string> next;
  if (Lines rest = lines; !first.doubtful.empty())
    doubt = inQuotes(first.doubtful) + " among numbers";
  else if (!first.hasNames && countsColumns(cells) && rest.next(next))
    doubt = cells.front() + " to " + cells.back();
  if (!header && !doubt.empty())
    return Status::usage("line 1 may be names of columns, or data (" + doubt +
                         "): expected '.csv:header=yes' or '.csv:header=no' "
                         "(',COLUMNS' after that)");
  bool hasNames = header.value_or(first.hasNames), hasRow = true;
  if (hasNames) {
    names = cells;
    hasRow = lines.next(cells);
  }
  ColumnChoice choice(width, names);
  if (Status status = choice.choose(columns, otherwise); !status)
    return status;
  Array result{artifact::DType::F64, {0}, {}};
  Integers integers(width, wanted);
  for (; hasRow; hasRow = lines.next(cells)) {
    auto at = "line " + std::to_string(lines.number());
    if (lines.isOpen())
      return Status::usage(at + ": expected the quotes of column " +
                           std::to_string(cells.size()) + " to be closed");
    if (auto cell = lines.doubtful())
      return doubtfulQuotes(lines.number(), *cell);
    if (cells.size() != width)
      return Status::usage(at + ": expected " + std::to_string(width) +
                           " columns, as line 1 has, but got " +
                           std::to_string(cells.size()));
    for (size_t c : choice.chosen) {
      std::string cell = at + ", column " + std::to_string(c + 1) +
                         (names.empty() ? "" : " (" + inQuotes(names[c]) + ")");
      // What is read as a number: in other columns quotes are text.
      if (lines.hasStrayQuote(c))
        return Status::usage(cell + ": expected quotes around a whole cell");
      auto number = numberOf(cells[c]);
      auto integer = Integer::of(cells[c]);
      if (!number || (isDigits(cells[c]) && !integer))
        return Status::usage(cell + ": expected a number" +
                             (number                   ? " of 64 bits"
                              : isOutOfRange(cells[c]) ? " of f64's range"
                                                       : "") +
                             " but got " + inQuotes(cells[c]));
      appendInteger(result.bytes, *number);
      integers.add(integer, c,
                   [&] { return cell + ": " + inQuotes(cells[c]); });
    }
    ++result.shape[0];
  }
  if (Status status = integers.finish(result); !status)
    return status;
  if (!choice.isOne)
    result.shape.push_back(int64_t(choice.chosen.size()));
  return result;
}

Result<Array> readCsv(const std::string &path, const std::string &columns,
                      const std::string &otherwise,
                      std::optional<artifact::DType> wanted) {
  auto file = readFile(path);
  if (!file)
    return std::move(file).status();
  auto array = parseCsv(asText(*file), columns, otherwise, wanted);
  if (!array)
    return std::move(array).status().in(inQuotes(path));
  return array;
}

namespace {

/// The shortest text; of a floating-point number none that reads as an integer
/// of other digits.
std::string cellText(const ArrayView &array, int64_t index) {
  std::string text = elementText(array, index);
  if (isInteger(array.dtype) || !isDigits(text))
    return text;
  double value = elementAsDouble(array.dtype, array.bytes.data(), index);
  if (std::abs(value) < 0x1p53)
    return text;
  char digits[32];
  auto end = std::to_chars(digits, digits + sizeof digits, value,
                           std::chars_format::scientific);
  return std::string(digits, end.ptr);
}

int64_t perRow(const ArrayView &array) {
  int64_t count = 1;
  for (int64_t size : array.shape.subspan(1))
    count *= size;
  return count;
}

} // namespace

std::string csvCell(const std::string &name) {
  if (name.find_first_of(",\"\r\n") == std::string::npos)
    return name;
  std::string text = "\"";
  for (char c : name)
    text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

std::string csvText(std::span<const CsvColumns> columns) {
  std::string text;
  for (const CsvColumns &column : columns)
    for (int64_t i = 0, n = perRow(column.array); i < n; ++i)
      text += (text.empty() ? "" : ",") +
              csvCell(column.array.shape.size() == 1
                          ? column.name
                          : column.name + "." + std::to_string(i));
  text += '\n';
  int64_t rows = columns.empty() ? 0 : columns[0].array.shape[0];
  for (int64_t row = 0; row < rows; ++row) {
    bool isFirst = true;
    for (const CsvColumns &column : columns)
      for (int64_t i = 0, n = perRow(column.array); i < n; ++i) {
        text += (isFirst ? "" : ",") + cellText(column.array, row * n + i);
        isFirst = false;
      }
    text += '\n';
  }
  return text;
}

} // namespace tandem::io
