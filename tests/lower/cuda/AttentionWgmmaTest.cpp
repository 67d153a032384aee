//===- AttentionWgmmaTest.cpp - attention by warpgroups -------------------===//
#include "tests/lower/anchor/AttentionKernel.h"
#include "tests/lower/anchor/MethodRows.h"
#include "tests/lower/cuda/CudaCheck.h"

#include "compiler/emit/Assemble.h"

using namespace tandem::test;

namespace {

const CudaOptions hopper{"sm_90a", "f32", true, "wgmma"};
constexpr bool both[] = {false, true};

std::string check(const Heads &heads, AttentionKernel kernel) {
  std::string text = byMethod(attentionKernel(heads, kernel), "wgmma");
  std::string ptx = checkCuda(text, toleranceOf(heads), 8, hopper);
  EXPECT_NE(ptx.find("wgmma.mma_async.sync.aligned.m64n"), std::string::npos);
  EXPECT_EQ(ptx.find("mma.sync"), std::string::npos);
  return ptx;
}

void checkAll(const Heads &heads) {
  for (AttentionKernel kernel : kAttentionKernels)
    check(heads, kernel);
}

} // namespace

/// Whole tiles, several of each kind.
TEST(AttentionWgmma, WholeTiles) {
  checkAll({"2x", 256, 256, 64, 64, true, "bf16"});
  checkAll({"2x", 256, 256, 64, 64, false, "f16"});
}

/// Sequences and heads that fill no tile: where positions end and where the
/// mask does are apart or the same.
TEST(AttentionWgmma, Edges) {
  for (bool causal : both) {
    checkAll({"2x", 197, 197, 64, 64, causal, "bf16"});
    checkAll({"", 129, 2, 8, 16, causal, "f16"});
  }
  checkAll({"", 65, 150, 32, 40, true, "f16"});
  checkAll({"", 300, 65, 80, 24, true, "bf16"});
  checkAll({"2x2x", 100, 70, 128, 128, false, "bf16"});
}

/// Many more steps than there are stages: each is used again and again. A
/// block's steps go along keys, those of a key's gradient along queries;
/// masked, the last blocks have as many.
TEST(AttentionWgmma, RingOfStages) {
  checkAll({"", 700, 700, 16, 16, true, "bf16"});
  for (AttentionKernel kernel : kAttentionKernels) {
    bool alongQueries = kernel == AttentionKernel::KeyGrad;
    check({"", alongQueries ? 700 : 130, alongQueries ? 130 : 700, 16, 16,
           false, "bf16"},
          kernel);
  }
}

TEST(AttentionWgmma, Scales) {
  for (double scale : {-0.25, 0.0, 0.5})
    checkAll({"", 130, 70, 16, 16, true, "bf16", scale});
}

/// q, k and v are parts of one tensor, of which copies take boxes, and heads go
/// back into rows.
TEST(AttentionWgmma, Views) {
  const std::string all = "tensor<2x130x3x2x64xbf16>",
                    parts = "tensor<3x2x2x130x64xbf16>",
                    one = "tensor<1x2x2x130x64xbf16>",
                    head = "tensor<2x2x130x64xbf16>",
                    back = "tensor<2x130x2x64xbf16>",
                    numbers = "tensor<2x2x130xf32>";
  std::string body =
      "%p = tandem.permute %0 by [2, 0, 3, 1, 4] : " + all + " -> " + parts;
  for (int i = 0; i < 3; ++i) {
    std::string n = std::to_string(i);
    body += "\n%s" + n + " = tandem.slice %p from [" + n +
            ", 0, 0, 0, 0] to [" + std::to_string(i + 1) +
            ", 2, 2, 130, 64] step [1, 1, 1, 1, 1] : " + parts + " -> " + one +
            "\n%h" + n + " = tandem.reshape %s" + n +
            " to [2, 2, 130, 64] : " + one + " -> " + head;
  }
  body += "\n%y, %l = tandem.attention_forward %h0, %h1, %h2 {causal, scale = "
          "0.125 : f64} : (" +
          head + ", " + head + ", " + head + ") -> (" + head + ", " + numbers +
          ")\n%z = tandem.permute %y by [0, 2, 1, 3] : " + head + " -> " +
          back + "\ntandem.yield %l, %z : " + numbers + ", " + back;
  std::string ptx =
      checkCuda(byMethod(kernelModule({all}, {numbers, back}, body), "wgmma"),
                toleranceOf({"", 130, 130, 64, 64, true, "bf16"}), 8, hopper);
  EXPECT_NE(ptx.find("cp.async.bulk.tensor.4d"), std::string::npos);
}

/// One gradient of the keys' two is not wanted.
TEST(AttentionWgmma, OneOfTwoResults) {
  const std::string rows = "tensor<130x64xf16>", numbers = "tensor<130xf32>";
  for (const char *wanted : {"%k", "%v"})
    checkCuda(
        byMethod(
            kernelModule(
                {rows, rows, rows, rows, numbers, numbers}, {rows},
                "%k, %v = tandem.attention_key_grad %0, %1, %2, %3, %4, %5 "
                "{scale = 0.125 : f64} : (" +
                    rows + ", " + rows + ", " + rows + ", " + rows + ", " +
                    numbers + ", " + numbers + ") -> (" + rows + ", " + rows +
                    ")\ntandem.yield " + wanted + " : " + rows),
            "wgmma"),
        toleranceOf({"", 130, 130, 64, 64, false, "f16"}), 8, hopper);
}

/// Cuts that are asked for, down to one warpgroup that computes.
TEST(AttentionWgmma, Schedules) {
  for (const char *cut :
       {"block_m = 64, block_n = 32, warps_m = 4, stages = 2",
        "block_m = 128, block_n = 64, warps_m = 8, stages = 3"})
    for (AttentionKernel kernel : kAttentionKernels)
      checkCuda(
          scheduled(
              attentionKernel({"", 150, 200, 64, 64, true, "bf16"}, kernel),
              std::string("#tandem.schedule<method = wgmma, ") + cut + ">"),
          toleranceOf({"", 150, 200, 64, 64, true, "bf16"}), 8, hopper);
}

/// Where there are many tiles a block has several, and the last one fewer.
TEST(AttentionWgmma, TilesInAChain) {
  for (AttentionKernel kernel : kAttentionKernels) {
    // Tiles are of keys there, else of queries.
    bool ofKeys = kernel == AttentionKernel::KeyGrad;
    Heads heads{"132x",
                ofKeys ? 66 : 130,
                ofKeys ? 130 : 66,
                16,
                16,
                kernel != AttentionKernel::QueryGrad,
                "bf16"};
    std::string text = scheduled(
        attentionKernel(heads, kernel),
        "#tandem.schedule<method = wgmma, block_m = 64, block_n = 64>");
    EXPECT_EQ(CudaKernel(text, hopper).blocks, 132 * 2);
    checkCuda(text, toleranceOf(heads), 8, hopper);
  }
}

/// Without being told, where the model expects less time than of mma.sync, and
/// where there is code.
TEST(AttentionWgmma, Choice) {
  auto rows = [](const Heads &heads, AttentionKernel kernel,
                 const std::string &arch) {
    return explained(attentionKernel(heads, kernel), cudaTarget(arch));
  };
  Heads large{"16x12x", 1024, 1024, 64, 64, true, "bf16"};
  for (AttentionKernel kernel : kAttentionKernels) {
    EXPECT_EQ(chosen(rows(large, kernel, "sm_90a")), "wgmma");
    EXPECT_EQ(against(rows(large, kernel, "sm_90"), "wgmma"),
              "expected a target of sm_90a but got sm_90");
    EXPECT_EQ(chosen(rows(large, kernel, "sm_80")), "tiles");
    auto few = rows({"", 20, 20, 64, 64, true, "bf16"}, kernel, "sm_90a");
    EXPECT_EQ(chosen(few), "tiles");
    EXPECT_TRUE(against(few, "wgmma").find("us of 'tiles' but got") !=
                std::string::npos)
        << against(few, "wgmma");
    auto wide =
        rows({"16x", 1024, 1024, 192, 192, true, "bf16"}, kernel, "sm_90a");
    EXPECT_EQ(against(wide, "wgmma"),
              "expected at most 128 columns but got 192");
    auto odd =
        rows({"16x", 1024, 1024, 60, 60, true, "bf16"}, kernel, "sm_90a");
    EXPECT_EQ(against(odd, "wgmma"),
              "expected operands whose rows bulk copies can take but got one "
              "that is not so");
    auto single =
        rows({"16x", 1024, 1024, 64, 64, true, "f32"}, kernel, "sm_90a");
    EXPECT_EQ(against(single, "wgmma"),
              "expected elements of f16 or bf16 but got f32");
  }
}

/// What ptxas says of the code: all in registers, products not one by one.
TEST(AttentionWgmma, Assembles) {
  if (tandem::findPtxas().empty())
    GTEST_SKIP() << "there is no ptxas";
  for (bool causal : both)
    for (int64_t width : {32, 64, 80, 128})
      for (AttentionKernel which : kAttentionKernels) {
        CudaOptions options = hopper;
        options.emulate = false;
        CudaKernel kernel(
            attentionKernel({"16x12x", 1024, 1024, width, width, causal,
                             width == 32 ? "f16" : "bf16"},
                            which),
            options);
        ASSERT_TRUE(kernel.ok()) << kernel.error;
        EXPECT_NE(kernel.ptx().find("wgmma"), std::string::npos);
        auto resources = tandem::resourcesOf(kernel.ptx(), options.arch);
        ASSERT_TRUE(resources) << resources.status().message();
        for (const tandem::KernelResources &r : *resources) {
          SCOPED_TRACE(std::to_string(width) + " " +
                       std::to_string(static_cast<int>(which)));
          EXPECT_EQ(r.spillStoreBytes + r.spillLoadBytes, 0);
          EXPECT_LE(r.registers, 168);
          EXPECT_TRUE(r.remarks.empty()) << r.remarks.front();
        }
      }
}
