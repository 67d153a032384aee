//===- Report.h - facts as one page that opens offline --------------------===//
#ifndef TANDEM_TOOLS_TANDEM_REPORT_H
#define TANDEM_TOOLS_TANDEM_REPORT_H

#include "runtime/artifact/Status.h"

#include <nlohmann/json.hpp>
#include <string>

namespace tandem::commands {

/// Returns an HTML file without references to others: the page of the folder
/// report/ with `facts` (ReportFacts.h) in a block of JSON. Its policy allows
/// that script and that style alone, and neither a network nor `eval`. The same
/// facts give the same bytes.
std::string reportPage(const nlohmann::ordered_json &facts);

/// Returns the file of a stage: "r.html", "r.stage1.html", ...
std::string reportPath(const std::string &path, int64_t stage);

/// Fails with Usage unless the name is that of a page.
Status checkReportFile(std::string_view path);

} // namespace tandem::commands

#endif
