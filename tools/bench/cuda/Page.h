//===- Page.h - a page of what gpu-check found ----------------------------===//
#ifndef TANDEM_TOOLS_BENCH_CUDA_PAGE_H
#define TANDEM_TOOLS_BENCH_CUDA_PAGE_H

#include "runtime/artifact/Status.h"

#include <string>

namespace tandem::gpu {

/// Returns the page, in Markdown, of the lines that `runSteps` wrote. Of a run
/// that was cut the last line may lack its end; a line that is wrong elsewhere
/// is an error.
Result<std::string> pageOf(const std::string &lines);

/// Reads `file` and writes its page.
Status writePage(const std::string &file, const std::string &page);

} // namespace tandem::gpu

#endif
