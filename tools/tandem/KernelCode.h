//===- KernelCode.h - the code of kernels, for a page ---------------------===//
#ifndef TANDEM_TOOLS_TANDEM_KERNELCODE_H
#define TANDEM_TOOLS_TANDEM_KERNELCODE_H

#include "compiler/Compile.h"
#include "runtime/artifact/ArtifactReader.h"

#include <nlohmann/json.hpp>

#include <map>

namespace tandem::commands {

/// What only a compilation knows of its kernels' code.
class KernelTexts {
public:
  /// Keeps the kernels of modules after `plan`, as dumps have them.
  void addPlanned(const Modules &modules);
  /// Keeps the LLVM IR of the kernels for processors, of modules after `lower`.
  Status addLowered(const Modules &modules);

  /// What is of the artifact `i` of `count`: of several stages that of one,
  /// whose modules stand side by side.
  KernelTexts of(size_t count, size_t i) const;

  /// The kernels of a program of one size, in the order of its launches.
  const std::vector<std::string> *planned(size_t size, size_t target,
                                          const std::string &program) const;
  /// The LLVM IR of a kernel; empty where it is not known.
  std::string llvmIr(size_t target, const std::string &symbol) const;

private:
  /// Of each size, of each target, by program.
  std::vector<std::vector<std::map<std::string, std::vector<std::string>>>>
      kernels;
  std::vector<std::map<std::string, std::string>> ir; ///< of each target
};

/// Returns for each manifest the code of its kernels, as docs/INSPECT_JSON.md
/// describes `code`: of those that are predicted to take longest, until the
/// page is as large as it may be because of them. `summaries` are those of the
/// facts.
Result<nlohmann::ordered_json>
codeFacts(const artifact::ArtifactReader &reader,
          const nlohmann::ordered_json &summaries, const KernelTexts &texts);

} // namespace tandem::commands

#endif
