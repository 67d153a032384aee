//===- InspectCode.cpp - the code of a GPU that is in an artifact ---------===//
#include "tools/tandem/InspectCode.h"
#include "compiler/emit/Assemble.h"
#include "tools/commands/Show.h"

#include <cstdio>
#include <map>

using namespace tandem;
using namespace tandem::commands;
namespace am = tandem::artifact;

static const am::Manifest *cudaManifest(const am::ArtifactReader &reader) {
  for (const am::Manifest &manifest : reader.manifests())
    if (manifest.target.kind == "cuda")
      return &manifest;
  return nullptr;
}

/// The section's text; what an artifact has as its text may be anything.
static Result<std::string> ptxOf(const am::ArtifactReader &reader) {
  if (!cudaManifest(reader))
    return Status::usage("expected an artifact for 'cuda', but this one is for "
                         "'" +
                         reader.manifest().target.kind + "'");
  auto bytes = reader.section("ptx");
  std::string text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  return text.substr(0, text.find('\0'));
}

Status commands::printPtx(const am::ArtifactReader &reader,
                          const std::string &kernel) {
  auto ptx = ptxOf(reader);
  if (!ptx)
    return ptx.status();
  if (kernel.empty()) {
    std::fputs(ptx->c_str(), stdout);
    return Status::success();
  }
  constexpr std::string_view entry = ".visible .entry ";
  if (ptx->find(std::string(entry) + kernel + "(") == std::string::npos)
    return Status::usage("there is no kernel '" + kernel +
                         "' in the artifact's PTX");
  // An entry ends with the first line that is a closing brace, but for those in
  // inline assembly.
  std::string shown;
  bool isSkipped = false, isAssembly = false;
  std::string_view rest = *ptx;
  while (!rest.empty()) {
    size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line == "\t// begin inline asm")
      isAssembly = true;
    else if (line == "\t// end inline asm")
      isAssembly = false;
    bool isOfAnother = line.starts_with("\t// .globl");
    if (line.starts_with(entry))
      isSkipped = !line.substr(entry.size()).starts_with(kernel + "(");
    if (!isSkipped && !isOfAnother)
      shown += std::string(line) + "\n";
    if (isSkipped && !isAssembly && line == "}")
      isSkipped = false;
  }
  std::fputs(shown.c_str(), stdout);
  return Status::success();
}

Status commands::printResources(const am::ArtifactReader &reader) {
  auto ptx = ptxOf(reader);
  if (!ptx)
    return ptx.status();
  const am::Manifest &manifest = *cudaManifest(reader);
  auto resources = resourcesOf(*ptx, manifest.target.arch);
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
