//===- ScheduleTable.cpp - the option --lr-schedule, and its file ---------===//
#include "tools/tandem/ScheduleTable.h"

#include "passes/partition/optimizers/Schedules.h"
#include "runtime/io/Csv.h"
#include "runtime/io/Elements.h"
#include "runtime/io/File.h"
#include "tools/commands/Print.h"

#include <algorithm>
#include <cmath>

using namespace tandem;
using commands::numberText;

static constexpr std::string_view kFile = "table:@";

std::optional<std::pair<std::string, std::string>>
tandem::fileOfTable(std::string_view text) {
  if (!text.starts_with(kFile))
    return std::nullopt;
  text.remove_prefix(kFile.size());
  size_t end = text.size();
  for (const OptimizerOption &option : warmupOptions())
    end = std::min(end, text.find("," + option.name.str() + "="));
  return std::pair(std::string(text.substr(0, end)),
                   std::string(text.substr(end)));
}

Result<std::string> tandem::withTable(std::string_view text) {
  auto file = fileOfTable(text);
  if (!file)
    return std::string(text);
  const auto &[path, options] = *file;
  auto bytes = io::readFile(path);
  if (!bytes)
    return std::move(bytes).status().in("--lr-schedule");
  // Names of columns do not begin with a digit; 0,1 is a point, and no name.
  std::string_view lines = io::asText(*bytes);
  // A mark of UTF-8, empty lines and quotes may stand before it.
  size_t first = lines.find_first_not_of("\xef\xbb\xbf \t\r\n\"");
  bool isNumber =
      first != lines.npos && lines[first] >= '0' && lines[first] <= '9';
  auto table = io::parseCsv(lines, isNumber ? "header=no" : "", "");
  if (!table)
    return std::move(table).status().in("--lr-schedule");
  if (table->shape.size() != 2 || table->shape[1] != 2)
    return Status::usage(
        "--lr-schedule: expected lines of UPDATES,PART in " +
        io::inQuotes(path) + " but got " +
        std::to_string(table->shape.size() < 2 ? 1 : table->shape[1]) +
        " columns");
  std::string all = "table:";
  for (int64_t i = 0; i < table->shape[0]; ++i) {
    auto at = [&](int64_t column) {
      double value = io::elementAsDouble(table->dtype, table->bytes.data(),
                                         i * 2 + column);
      bool isCount = value == std::floor(value) && std::fabs(value) < 1e9;
      return isCount ? std::to_string(int64_t(value)) : numberText(value);
    };
    all += (i ? "," : "") + at(0) + "=" + at(1);
  }
  all += options;
  std::string error;
  if (!parseScheduleSpec(all, error))
    return Status::usage("--lr-schedule: " + io::inQuotes(path) + ": " + error);
  return all;
}

static Status checkSchedule(std::string_view text) {
  // A file is read when all options are right.
  std::string error, known(text);
  if (auto file = fileOfTable(text))
    known = "table:0=1" + file->second;
  return parseScheduleSpec(known, error)
             ? Status::success()
             : Status::usage("--lr-schedule: " + error);
}

void tandem::declareSchedule(commands::OptionTable &table,
                             std::string &target) {
  table
      .text("lr-schedule", "NAME[:KEY=VALUE,...]", target,
            "the learning rate as a function of the number of updates, "
            "computed in the step: cosine, linear and others, each with a "
            "warm-up ('tandem help schedules')")
      .check(checkSchedule)
      .completes([] {
        std::vector<std::string> names;
        for (const ScheduleKind &kind : scheduleKinds())
          names.emplace_back(kind.name);
        return names;
      })
      .example("cosine:warmup=5,total=100")
      .byDefault("constant")
      .needs("optimizer", "it is of its rate");
}
