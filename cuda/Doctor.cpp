//===- Doctor.cpp - what doctor says of the libraries for GPUs ------------===//
#include "cuda/Doctor.h"

#include "cuda/Libraries.h"

namespace tandem::cuda {

using commands::Finding;

void checkLibraries(std::vector<Finding> &findings) {
  for (auto &[name, found] : describeInstalled()) {
    Finding finding{name, Finding::State::Ok, found ? *found : "", ""};
    if (!found) {
      finding.state = Finding::State::Missing;
      finding.text = "artifacts run without it: " + found.status().message();
      finding.remedy = "install it from NVIDIA's repository";
    }
    findings.push_back(std::move(finding));
  }
}

} // namespace tandem::cuda
