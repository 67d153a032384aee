//===- ScheduleTable.h - the option --lr-schedule, and its file -----------===//
#ifndef TANDEM_TOOLS_TANDEM_SCHEDULETABLE_H
#define TANDEM_TOOLS_TANDEM_SCHEDULETABLE_H

#include "tools/commands/Options.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tandem {

/// Returns the file of a schedule "table:@F.csv,warmup=100", and the options
/// behind it, with their comma; nothing for another schedule.
std::optional<std::pair<std::string, std::string>>
fileOfTable(std::string_view text);

/// Returns the schedule `text` with what its file says in the place of the
/// file: "table:@F.csv", lines of UPDATES,PART, becomes "table:0=1,1000=0.5".
/// Others stay as they are. Fails where the file cannot be read or is no
/// schedule.
Result<std::string> withTable(std::string_view text);

/// Declares --lr-schedule.
void declareSchedule(commands::OptionTable &table, std::string &target);

} // namespace tandem

#endif
