//===- InspectCode.cpp - the code of a GPU that is in an artifact ---------===//
#include "tools/tandem/InspectCode.h"
#include "compiler/emit/Assemble.h"
#include "tools/commands/Show.h"

#include <cstdio>

using namespace tandem;
using namespace tandem::commands;
namespace am = tandem::artifact;

/// The artifact with each of its targets for GPUs chosen.
static Result<std::vector<am::ArtifactReader>>
cudaVariants(const am::ArtifactReader &reader) {
  std::vector<am::ArtifactReader> variants;
  for (size_t i = 0; i < reader.manifests().size(); ++i)
    if (reader.manifests()[i].target.kind == "cuda")
      variants.emplace_back(reader).choose(i);
  if (variants.empty())
    return Status::usage("expected an artifact for 'cuda', but this one is for "
                         "'" +
                         reader.manifest().target.kind + "'");
  return variants;
}

/// The variant's PTX; what an artifact has as its text may be anything.
static std::string ptxOf(const am::ArtifactReader &variant) {
  auto bytes = variant.code("ptx");
  std::string text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  return text.substr(0, text.find('\0'));
}

constexpr std::string_view kEntry = ".visible .entry ";

static bool hasKernel(const std::string &ptx, const std::string &kernel) {
  return ptx.find(std::string(kEntry) + kernel + "(") != std::string::npos;
}

/// The text without the other kernels.
static std::string kernelOf(std::string_view ptx, const std::string &kernel) {
  // An entry ends with the first line that is a closing brace, but for those in
  // inline assembly.
  std::string shown;
  bool isSkipped = false, isAssembly = false;
  std::string_view rest = ptx;
  while (!rest.empty()) {
    size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line == "\t// begin inline asm")
      isAssembly = true;
    else if (line == "\t// end inline asm")
      isAssembly = false;
    bool isOfAnother = line.starts_with("\t// .globl");
    if (line.starts_with(kEntry))
      isSkipped = !line.substr(kEntry.size()).starts_with(kernel + "(");
    if (!isSkipped && !isOfAnother)
      shown += std::string(line) + "\n";
    if (isSkipped && !isAssembly && line == "}")
      isSkipped = false;
  }
  return shown;
}

std::map<std::string, std::string>
commands::kernelPtx(const am::ArtifactReader &variant) {
  std::map<std::string, std::string> texts;
  std::string ptx = ptxOf(variant);
  for (const am::Kernel &kernel : variant.manifest().kernels)
    if (hasKernel(ptx, kernel.symbol))
      texts[kernel.symbol] = kernelOf(ptx, kernel.symbol);
  return texts;
}

Status commands::printPtx(const am::ArtifactReader &reader,
                          const std::string &kernel) {
  auto variants = cudaVariants(reader);
  if (!variants)
    return variants.status();
  auto lacksIt = [&](const am::ArtifactReader &variant) {
    return !kernel.empty() && !hasKernel(ptxOf(variant), kernel);
  };
  std::erase_if(*variants, lacksIt);
  if (variants->empty())
    return Status::usage("there is no kernel '" + kernel +
                         "' in the artifact's PTX");
  for (const am::ArtifactReader &variant : *variants) {
    if (variants->size() > 1)
      std::printf("// %s\n", variant.manifest().target.arch.c_str());
    std::string ptx = ptxOf(variant);
    std::fputs((kernel.empty() ? ptx : kernelOf(ptx, kernel)).c_str(), stdout);
  }
  return Status::success();
}

static Status printResourcesOf(const am::ArtifactReader &variant) {
  const am::Manifest &manifest = variant.manifest();
  auto resources = resourcesOf(ptxOf(variant), manifest.target.arch);
  if (!resources)
    return std::move(resources).status().in("registers and spills");
  std::map<std::string, const am::Kernel *> kernels;
  std::map<std::string, std::string> libraries;
  for (const am::Kernel &kernel : manifest.kernels)
    kernels[kernel.symbol] = &kernel;
  for (const am::Program &program : manifest.programs)
    for (const am::Launch &launch : program.launches)
      if (launch.library)
        libraries[manifest.kernels[launch.kernel].symbol] = libraryOf(launch);
  std::printf("%-44s %-12s %9s %9s %9s %7s %7s %s\n", "kernel", "block",
              "registers", "declared", "given", "stack", "spills", "library");
  for (const KernelResources &one : *resources) {
    const am::Kernel *kernel = kernels[one.kernel];
    std::printf(
        "%-44s %-12s %9lld %9lld %9lld %7lld %7lld %s\n", one.kernel.c_str(),
        kernel ? extentsText(kernel->block).c_str() : "",
        static_cast<long long>(one.registers),
        static_cast<long long>(one.sharedBytes),
        static_cast<long long>(kernel ? kernel->sharedBytes : 0),
        static_cast<long long>(one.stackBytes),
        static_cast<long long>(one.spillStoreBytes + one.spillLoadBytes),
        libraries[one.kernel].c_str());
  }
  return Status::success();
}

Status commands::printResources(const am::ArtifactReader &reader) {
  auto variants = cudaVariants(reader);
  if (!variants)
    return variants.status();
  for (const am::ArtifactReader &variant : *variants) {
    if (variants->size() > 1)
      std::printf("---- for %s ----\n", variant.manifest().target.arch.c_str());
    if (Status status = printResourcesOf(variant); !status)
      return status;
  }
  return Status::success();
}
