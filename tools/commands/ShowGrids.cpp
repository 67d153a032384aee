//===- ShowGrids.cpp - the launches of a GPU's programs -------------------===//
#include "runtime/artifact/Text.h"
#include "tools/commands/Show.h"

#include <cstdio>

namespace tandem::commands {

std::string extentsText(const std::vector<int64_t> &sizes) {
  std::string text;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != 1 || i == 0)
      text += (i ? " x " : "") + std::to_string(sizes[i]);
  return text;
}

const char *libraryOf(const artifact::Launch &launch) {
  return !launch.library              ? ""
         : launch.library->isMatmul() ? "cuBLASLt"
                                      : "cuDNN";
}

void showGrids(const artifact::Manifest &manifest) {
  std::printf("\n%-10s %5s %-44s %-16s %-12s %9s %9s %6s %s\n", "program",
              "step", "kernel", "grid", "block", "shared", "scratch", "stream",
              "library");
  for (const artifact::Program &program : manifest.programs) {
    int step = 0;
    for (const artifact::Launch &launch : program.launches) {
      if (launch.isCopy()) {
        bool isToHost =
            isOnHost(program, program.buffers[launch.buffers.back()]);
        std::printf("%-10s %5d %s\n", artifact::printable(program.name).c_str(),
                    step++, isToHost ? "copy to host" : "copy from host");
        continue;
      }
      const artifact::Kernel &kernel = manifest.kernels[launch.kernel];
      std::printf("%-10s %5d %-44s %-16s %-12s %9lld %9lld %6lld %s\n",
                  artifact::printable(program.name).c_str(), step++,
                  artifact::printable(kernel.symbol).c_str(),
                  extentsText(launch.grid).c_str(),
                  extentsText(kernel.block).c_str(),
                  static_cast<long long>(kernel.sharedBytes),
                  static_cast<long long>(kernel.scratchBytes),
                  static_cast<long long>(launch.stream), libraryOf(launch));
    }
  }
}

} // namespace tandem::commands
