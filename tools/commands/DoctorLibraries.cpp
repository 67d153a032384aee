//===- DoctorLibraries.cpp - libraries for GPUs ---------------------------===//
#include "tools/commands/DoctorLibraries.h"

#include "cuda/Libraries.h"

namespace tandem::commands {

void checkLibraries(std::vector<Finding> &findings) {
  for (auto &[name, found] : cuda::describeInstalled()) {
    Finding finding{name, Finding::State::Ok, found ? *found : "", ""};
    if (!found) {
      finding.state = Finding::State::Missing;
      finding.text = "artifacts run without it: " + found.status().message();
      finding.remedy =
          std::string("with NVIDIA's repository for CUDA, apt-get ") +
          (name == "cuDNN" ? "install libcudnn9-cuda-12"
                           : "install libcublas-12-9") +
          ", or TANDEM_CUDA_LIBRARIES=FOLDER of one that is there";
    }
    findings.push_back(std::move(finding));
  }
}

} // namespace tandem::commands
