//===- DoctorChecks.cpp - what doctor says of the compiler ----------------===//
#include "tools/tandem/CompilerCommands.h"

#include "compiler/Target.h"
#include "compiler/emit/Assemble.h"
#include "compiler/emit/NvJitLink.h"

#include "llvm/Config/llvm-config.h"

using namespace tandem;
using namespace tandem::commands;
using State = Finding::State;

static void checkTargets(std::vector<Finding> &findings) {
  findings.push_back({"compiler", State::Ok, "LLVM " LLVM_VERSION_STRING, ""});
  auto host = parseCpuTarget("cpu");
  findings.push_back({"target cpu", host ? State::Ok : State::Broken,
                      host ? host->arch + ", vectors of " +
                                 std::to_string(host->vectorBits) + " bits"
                           : host.status().message(),
                      ""});
  auto cuda = parseTargets("cuda");
  findings.push_back(
      {"target cuda", cuda ? State::Ok : State::Missing,
       cuda ? "PTX for sm_80 to sm_120" : cuda.status().message(),
       cuda ? "" : "LLVM with the target NVPTX"});
}

static void checkAssemblers(std::vector<Finding> &findings) {
  if (Status status = checkNamedPtxas(); !status) {
    findings.push_back(
        {"ptxas", State::Broken, status.message(), "unset TANDEM_PTXAS"});
    return;
  }
  std::string ptxas = findPtxas();
  const NvJitLink *library = NvJitLink::find();
  constexpr const char *without =
      "artifacts have PTX alone, which the driver compiles when it is loaded";
  constexpr const char *toolkit =
      "apt-get install nvidia-cuda-toolkit, or NVIDIA's own";
  bool hasNone = ptxas.empty() && !library;
  findings.push_back({"ptxas", ptxas.empty() ? State::Missing : State::Ok,
                      !ptxas.empty() ? ptxas
                      : hasNone      ? without
                                     : "nvJitLink is used",
                      hasNone ? toolkit : ""});
  findings.push_back({"nvJitLink", library ? State::Ok : State::Missing,
                      library   ? library->name()
                      : hasNone ? without
                                : "ptxas is used",
                      hasNone ? toolkit : ""});
}

void commands::checkCompiler(std::vector<Finding> &findings) {
  checkTargets(findings);
  checkAssemblers(findings);
}
