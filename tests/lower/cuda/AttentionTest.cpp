//===- AttentionTest.cpp - attention by tiles -----------------------------===//
#include "tests/lower/anchor/AttentionKernel.h"
#include "tests/lower/cuda/CudaCheck.h"

#include "compiler/emit/Assemble.h"

using namespace tandem::test;

static std::string check(const Heads &heads, AttentionKernel kernel,
                         const std::string &arch = "sm_90") {
  return checkCuda(attentionKernel(heads, kernel), toleranceOf(heads), 8,
                   {arch});
}

static void checkAll(const Heads &heads) {
  for (AttentionKernel kernel : kAttentionKernels)
    check(heads, kernel);
}

static constexpr bool kBoth[] = {false, true};
static constexpr const char *kElements[] = {"bf16", "f16", "f32"};

/// Whole tiles, several of each kind.
TEST(CudaAttention, WholeTiles) {
  for (const char *element : kElements)
    for (bool causal : kBoth)
      checkAll({"2x", 128, 128, 32, 32, causal, element});
}

/// Rows and columns that fill no tile.
TEST(CudaAttention, Edges) {
  for (const char *element : kElements)
    for (bool causal : kBoth) {
      checkAll({"", 70, 100, 24, 40, causal, element});
      checkAll({"3x", 100, 37, 8, 16, causal, element});
    }
}

TEST(CudaAttention, FewRows) {
  for (const char *element : kElements)
    for (bool causal : kBoth) {
      checkAll({"2x2x", 1, 1, 16, 16, causal, element});
      checkAll({"", 1, 90, 16, 16, causal, element});
      checkAll({"", 90, 1, 16, 16, causal, element});
      checkAll({"", 17, 16, 16, 16, causal, element});
    }
}

/// Rows that no 16 bytes are aligned in.
TEST(CudaAttention, OddColumns) {
  for (const char *element : kElements)
    checkAll({"2x", 20, 33, 13, 7, true, element});
}

TEST(CudaAttention, WideHeads) {
  checkAll({"", 40, 70, 128, 128, true, "bf16"});
  checkAll({"", 40, 40, 256, 256, false, "f16"});
  checkAll({"", 20, 40, 128, 72, false, "f32"});
}

/// Many own rows: warps of 32.
TEST(CudaAttention, ManyBlocks) {
  for (AttentionKernel kernel : kAttentionKernels) {
    check({"136x", 130, 20, 16, 16, true, "bf16"}, kernel);
    check({"136x", 20, 130, 16, 16, true, "bf16"}, kernel);
  }
}

TEST(CudaAttention, Scales) {
  for (double scale : {-0.25, 0.0, 0.5})
    checkAll({"", 20, 30, 16, 16, true, "bf16", scale});
}

/// What tiles do not take: a warp for each row.
TEST(CudaAttention, Rows) {
  for (bool causal : kBoth)
    checkAll({"2x", 20, 37, 16, 8, causal, "f64"});
  checkAll({"", 5, 6, 300, 270, false, "f32"});
}

TEST(CudaAttention, OldTarget) {
  for (AttentionKernel kernel : kAttentionKernels)
    check({"", 40, 70, 64, 64, true, "bf16"}, kernel, "sm_80");
}

/// q, k and v are parts of one tensor, and heads go back into rows.
TEST(CudaAttention, ViewsAround) {
  for (std::string element : {"bf16", "f32"}) {
    auto tensor = [&](const std::string &shape) {
      return "tensor<" + shape + "x" + element + ">";
    };
    std::string all = tensor("2x20x3x2x16"), parts = tensor("3x2x2x20x16"),
                one = tensor("1x2x2x20x16"), head = tensor("2x2x20x16"),
                back = tensor("2x20x2x16"), numbers = "tensor<2x2x20xf32>";
    std::string body =
        "%p = tandem.permute %0 by [2, 0, 3, 1, 4] : " + all + " -> " + parts;
    for (int i = 0; i < 3; ++i) {
      std::string n = std::to_string(i);
      body += "\n%s" + n + " = tandem.slice %p from [" + n +
              ", 0, 0, 0, 0] to [" + std::to_string(i + 1) +
              ", 2, 2, 20, 16] step [1, 1, 1, 1, 1] : " + parts + " -> " + one +
              "\n%h" + n + " = tandem.reshape %s" + n +
              " to [2, 2, 20, 16] : " + one + " -> " + head;
    }
    body += "\n%y, %l = tandem.attention_forward %h0, %h1, %h2 {causal, scale "
            "= 0.25 : f64} : (" +
            head + ", " + head + ", " + head + ") -> (" + head +
            ", tensor<2x2x20xf32>)\n%z = tandem.permute %y by [0, 2, 1, 3] : " +
            head + " -> " + back + "\ntandem.yield %l, %z : " + numbers + ", " +
            back;
    std::string ptx =
        checkCuda(kernelModule({all}, {numbers, back}, body),
                  toleranceOf({"", 20, 20, 16, 16, true, element}));
    EXPECT_NE(ptx.find("cp.async.cg.shared.global"), std::string::npos);
  }
}

TEST(CudaAttention, Instructions) {
  std::string half =
      check({"", 64, 64, 64, 64, true, "bf16"}, AttentionKernel::Forward);
  for (const char *instruction :
       {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
        "ldmatrix.sync.aligned.m8n8.x4.shared",
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared",
        "cp.async.cg.shared.global", "ex2.approx.ftz.f32"})
    EXPECT_NE(half.find(instruction), std::string::npos) << instruction;
  std::string single =
      check({"", 64, 64, 64, 64, true, "f32"}, AttentionKernel::Forward);
  EXPECT_EQ(single.find("mma.sync"), std::string::npos);
}

/// The registers hold what they have to.
TEST(CudaAttention, NoSpills) {
  if (tandem::findPtxas().empty())
    GTEST_SKIP() << "there is no ptxas";
  auto expectNone = [](const Heads &heads, const std::string &arch) {
    for (AttentionKernel which : kAttentionKernels) {
      CudaOptions options{arch};
      options.emulate = false;
      CudaKernel kernel(attentionKernel(heads, which), options);
      ASSERT_TRUE(kernel.ok()) << kernel.error;
      auto resources = tandem::resourcesOf(kernel.ptx(), arch);
      ASSERT_TRUE(resources) << resources.status().message();
      for (const tandem::KernelResources &r : *resources)
        EXPECT_EQ(r.spillStoreBytes + r.spillLoadBytes, 0)
            << arch << " " << heads.element << " " << heads.D << " "
            << static_cast<int>(which);
    }
  };
  for (const char *element : {"bf16", "f32"})
    for (int64_t width : {32, 64, 128, 256})
      expectNone({"16x12x", 1024, 1024, width, width, true, element}, "sm_90");
  expectNone({"16x12x", 1024, 1024, 64, 64, false, "f16"}, "sm_80");
  expectNone({"16x12x", 1024, 1024, 128, 128, false, "f16"}, "sm_86");
}
