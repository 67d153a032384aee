//===- CoreTilesTest.cpp - artifacts whose code uses matrix tiles ---------===//
//
// That loading one asks the system for them, for all threads; and what is said
// and done where the system refuses.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/CpuFeatures.h"
#include "tests/runtime/TestModel.h"

#include <gtest/gtest.h>

#if defined(__x86_64__) && defined(__linux__)

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sstream>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <thread>

using namespace tandem;
using namespace tandem::artifact;
using namespace tandem::test;

namespace {

/// Whether there are tiles, without asking for them.
bool processorHasTiles() {
  std::stringstream text;
  text << std::ifstream("/proc/cpuinfo").rdbuf();
  return text.str().find(" amx_tile") != std::string::npos;
}

Manifest variant(const char *arch, std::vector<std::string> features) {
  Manifest manifest = regression();
  manifest.target = {"cpu", arch, std::move(features)};
  return manifest;
}

/// The variant that is loaded of these, or why none is.
std::string loaded(const std::vector<Manifest> &manifests) {
  ArtifactWriter whole = writerFor(manifests[0]);
  for (size_t i = 1; i < manifests.size(); ++i)
    whole.join(writerFor(manifests[i]));
  std::string bytes = *whole.bytes();
  auto model = runtime::Model::load(
      *ArtifactReader::fromMemory(std::as_bytes(std::span(bytes))), {});
  return model ? model->manifest().target.arch : model.status().message();
}

/// Writes zeros to a tile: a signal ends a process that may not.
void useTile() {
  alignas(64) unsigned char configuration[64] = {1};
  configuration[16] = 64; // bytes of a row of the first one
  configuration[48] = 16; // its rows
  __asm__ volatile("ldtilecfg %0\n\ttilezero %%tmm0\n\ttilerelease"
                   :
                   : "m"(configuration));
}

/// The system refuses from now on what this process asks of arch_prctl.
bool forbidAsking() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog filter = {std::size(program), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

class Tiles : public testing::Test {
protected:
  void SetUp() override {
    if (!processorHasTiles())
      GTEST_SKIP() << "this processor has no tiles";
  }
};

TEST_F(Tiles, AllThreadsMayUseThem) {
  EXPECT_EQ(loaded({variant("tiles", {"sse2", "amx-tile", "amx-bf16"})}),
            "tiles");
  useTile();
  std::thread(useTile).join();
}

TEST_F(Tiles, ARefusalIsSaid) {
  auto refused = [] {
    if (!forbidAsking()) {
      std::fprintf(stderr, "no filter\n");
      std::exit(3);
    }
    Manifest tiles = variant("tiles", {"sse2", "amx-tile", "amx-bf16"});
    std::string message = loaded({tiles});
    std::string other = loaded({variant("plain", {"sse2"}), tiles});
    std::fprintf(stderr, "%s\n", message.c_str());
    bool isRight = message == "the artifact's code is for 'tiles' and the "
                              "system does not let this process use "
                              "'amx-tile', 'amx-bf16' (Operation not "
                              "permitted)" &&
                   other == "plain";
    std::exit(isRight ? 0 : 1);
  };
  EXPECT_EXIT(refused(), testing::ExitedWithCode(0), "");
}

TEST_F(Tiles, WhatIsMissingAndWhatIsRefused) {
  EXPECT_EQ(runtime::cpuProblem({"sse2", "amx-tile"}), "");
  EXPECT_EQ(runtime::cpuProblem({"amx-tile", "levitation"}),
            "this processor lacks 'levitation'");
}

} // namespace

#endif
