//===- AssembleTest.cpp - what assemblers say
//------------------------------===//
//
// With a program that stands for ptxas: what its report means, and what comes
// of each way to fail. Nothing of a toolkit is needed.
//
//===----------------------------------------------------------------------===//
#include "compiler/emit/Assemble.h"
#include "tests/support/Folder.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

using namespace tandem;
namespace fs = std::filesystem;

namespace {

class Assembler : public ::testing::Test {
protected:
  test::Folder made;
  const fs::path folder = made.path();
  void SetUp() override { setenv("TANDEM_PTXAS", "", 1); }
  void TearDown() override { unsetenv("TANDEM_PTXAS"); }

  /// Makes the script that is run for ptxas.
  void use(const std::string &script) {
    fs::path path = folder / "ptxas";
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(path, fs::perms::owner_all);
    setenv("TANDEM_PTXAS", path.c_str(), 1);
  }
};

constexpr const char *keep = R"(while [ "$1" != -o ]; do shift; done
cat >"$2" <<END
machine code
END
)";

const std::string text = "\n.visible .entry second(\n.visible .entry first(\n";

TEST_F(Assembler, ReportsAreRead) {
  use(std::string(keep) + R"(cat >&2 <<END
ptxas info    : 0 bytes gmem, 24 bytes cmem[3]
ptxas info    : Compiling entry function 'first' for 'sm_90'
ptxas info    : Function properties for first
    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 49152 bytes smem
ptxas info    : Function properties for helper
    640 bytes stack frame, 320 bytes spill stores, 160 bytes spill loads
ptxas info    : Compiling entry function 'second' for 'sm_90'
ptxas info    : Function properties for second
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 14 registers, used 0 barriers
ptxas info    : Compile time = 4.126 ms
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register resources for the wgmma pipeline in the function 'first'
END)");
  auto kernels = resourcesOf(text, "sm_90");
  ASSERT_TRUE(kernels) << kernels.status().message();
  ASSERT_EQ(kernels->size(), 2u);
  EXPECT_TRUE(kernels->front().remarks.empty());
  ASSERT_EQ(kernels->back().remarks.size(), 1u);
  EXPECT_EQ(kernels->back().remarks[0].find("(C7510) Potential"), 0u);
  const KernelResources &second = kernels->front(), &first = kernels->back();
  EXPECT_EQ(second.kernel, "second");
  EXPECT_EQ(second.registers, 14);
  EXPECT_EQ(second.sharedBytes, 0);
  EXPECT_EQ(first.kernel, "first");
  EXPECT_EQ(first.registers, 255);
  EXPECT_EQ(first.sharedBytes, 49152);
  EXPECT_EQ(first.stackBytes, 16);
  EXPECT_EQ(first.spillStoreBytes, 12);
  EXPECT_EQ(first.spillLoadBytes, 8);
}

TEST_F(Assembler, GivesMachineCode) {
  use(keep);
  auto assembly = assemble(text, "sm_90");
  ASSERT_TRUE(assembly) << assembly.status().message();
  EXPECT_EQ(assembly->cubin, "machine code\n");
  EXPECT_EQ(assembly->by, (folder / "ptxas").string());
}

TEST_F(Assembler, IsGivenTheTextAndTheArchitecture) {
  use("cp \"$4\" '" + (folder / "seen").string() + "'; echo \"$1\" >'" +
      (folder / "arch").string() + "'; exit 1");
  EXPECT_FALSE(assemble(text, "sm_90a"));
  std::ifstream seen(folder / "seen"), arch(folder / "arch");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(seen), {}), text);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(arch), {}),
            "-arch=sm_90a\n");
}

TEST_F(Assembler, NoneIsNoFailure) {
  auto assembly = assemble(text, "sm_90");
  ASSERT_TRUE(assembly);
  EXPECT_EQ(assembly->cubin, "");
  EXPECT_FALSE(assembly->isTooOld);
  EXPECT_NE(assembly->problem.find("neither libnvJitLink nor ptxas"),
            std::string::npos);
  EXPECT_EQ(findPtxas(), "");
  EXPECT_EQ(resourcesOf(text, "sm_90").status().code(), Code::Unsupported);
}

TEST_F(Assembler, OneThatIsTooOldIsNoFailure) {
  for (const char *why :
       {"ptxas k.ptx, line 5; fatal   : Unsupported .version 8.6; current "
        "version is '8.0'",
        "ptxas fatal   : Value 'sm_100' is not defined for option "
        "'gpu-name'"}) {
    use("cat >&2 <<END\n" + std::string(why) + "\nEND\nexit 255");
    auto assembly = assemble(text, "sm_100");
    ASSERT_TRUE(assembly) << assembly.status().message();
    EXPECT_TRUE(assembly->isTooOld);
    EXPECT_NE(assembly->problem.find(why), std::string::npos)
        << assembly->problem;
  }
}

TEST_F(Assembler, OneThatRefusesTheTextIs) {
  use("echo 'ptxas k.ptx, line 7; error   : Unknown symbol' >&2; exit 255");
  Status status = assemble(text, "sm_90").status();
  EXPECT_EQ(status.code(), Code::Failed);
  EXPECT_NE(status.message().find("refuses the PTX: ptxas k.ptx, line 7; "
                                  "error   : Unknown symbol"),
            std::string::npos)
      << status.message();
  EXPECT_EQ(resourcesOf(text, "sm_90").status().code(), Code::Failed);
}

TEST_F(Assembler, OneThatDiesOrWritesNothingIs) {
  use("kill -9 $$");
  EXPECT_EQ(assemble(text, "sm_90").status().code(), Code::Failed);
  use("exit 0");
  EXPECT_EQ(assemble(text, "sm_90").status().code(), Code::Failed);
}

} // namespace
