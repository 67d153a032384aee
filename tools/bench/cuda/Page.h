//===- Page.h - a page of what gpu-check found ----------------------------===//
#ifndef TANDEM_TOOLS_BENCH_CUDA_PAGE_H
#define TANDEM_TOOLS_BENCH_CUDA_PAGE_H

#include "runtime/artifact/Status.h"

#include <map>
#include <string>

namespace tandem::gpu {

/// Returns the page, in Markdown, of the lines that `runSteps` wrote. Of a run
/// that was cut the last line may lack its end; a line that is wrong elsewhere
/// is an error.
Result<std::string> pageOf(const std::string &lines);

/// Returns for each step that timed launches a name and what `tandem inspect
/// --estimate --calibrate` takes: the launches of kernels with their times.
Result<std::map<std::string, std::string>>
calibrationsOf(const std::string &lines);

/// Reads `file` and writes its page; and with a prefix that is not empty the
/// calibrations, PREFIX.KIND-NAME.json.
Status writePage(const std::string &file, const std::string &page,
                 const std::string &calibrations);

} // namespace tandem::gpu

#endif
