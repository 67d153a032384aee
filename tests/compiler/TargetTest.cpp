//===- TargetTest.cpp - targets as options and attributes -----------------===//
//
// What --target accepts, what it says of what it does not, and that a target
// comes back from a module as it went in.
//
//===----------------------------------------------------------------------===//
#include "compiler/Target.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/MC/MCSubtargetInfo.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tandem;

static std::string problem(const std::string &text) {
  auto targets = parseTargets(text);
  return targets ? "" : targets.status().message();
}

TEST(Target, Names) {
  auto cuda = parseTargets("cuda");
  ASSERT_TRUE(cuda);
  ASSERT_EQ(cuda->size(), 1u);
  EXPECT_EQ(std::get<CudaTarget>(cuda->front()).arch, "sm_90");
  auto both = parseTargets("cuda:sm_80+cpu:x86-64-v3");
  ASSERT_TRUE(both) << both.status().message();
  ASSERT_EQ(both->size(), 2u);
  EXPECT_EQ(std::get<CudaTarget>((*both)[0]).arch, "sm_80");
  EXPECT_EQ(std::get<CpuTarget>((*both)[1]).vectorBits, 256);
  EXPECT_EQ(kindOf((*both)[0]), "cuda");
  EXPECT_EQ(kindOf((*both)[1]), "cpu");
}

/// What a virtual machine hides and no kernel uses is not asked for.
TEST(Target, FeaturesThatKernelsDoNotUse) {
  auto target = parseCpuTarget("cpu:sapphirerapids");
  if (!target)
    GTEST_SKIP() << "not for this kind of processor: "
                 << target.status().message();
  auto has = [&](const char *feature) {
    return llvm::is_contained(target->features, feature);
  };
  for (const char *feature :
       {"avx512f", "avx512bf16", "fma", "f16c", "amx-tile", "amx-bf16"})
    EXPECT_TRUE(has(feature)) << feature;
  for (const char *feature :
       {"enqcmd", "pconfig", "ptwrite", "uintr", "waitpkg", "amx-int8"})
    EXPECT_FALSE(has(feature)) << feature;
}

TEST(Target, Variants) {
  auto variants = parseTargets("cpu:x86-64-v3+x86-64-v4+cuda:sm_90");
  ASSERT_TRUE(variants) << variants.status().message();
  ASSERT_EQ(variants->size(), 3u);
  EXPECT_EQ(std::get<CpuTarget>((*variants)[0]).arch, "x86-64-v3");
  EXPECT_EQ(std::get<CpuTarget>((*variants)[1]).arch, "x86-64-v4");
  EXPECT_EQ(std::get<CpuTarget>((*variants)[1]).vectorBits, 512);
  EXPECT_EQ(
      targetLabels(*variants),
      (std::vector<std::string>{"cpu-x86-64-v3", "cpu-x86-64-v4", "cuda"}));
  EXPECT_EQ(targetNames("cpu:x86-64-v3+x86-64-v4+cuda:sm_90"),
            (std::vector<std::string>{"cpu:x86-64-v3", "cpu:x86-64-v4",
                                      "cuda:sm_90"}));
  EXPECT_EQ(targetLabels(*parseTargets("cpu+cuda")),
            (std::vector<std::string>{"cpu", "cuda"}));
  EXPECT_TRUE(parseTargets("cpu:x86-64-v4+cpu:x86-64-v3"));
  EXPECT_EQ(problem("cpu:x86-64-v3+x86-64-v4+x86-64-v3"),
            "expected --target to name the processor 'x86-64-v3' once, but "
            "got 'cpu:x86-64-v3+x86-64-v4+x86-64-v3'");
  EXPECT_NE(problem("cuda:sm_90+x86-64-v3").find("got 'x86-64-v3'"),
            std::string::npos);
  EXPECT_NE(problem("cpu+x86-64-v3").find("got 'x86-64-v3'"),
            std::string::npos);
}

TEST(Target, EveryProblemIsSaid) {
  EXPECT_EQ(problem("cuda:sm_1"),
            "expected the architecture for 'cuda' to be one of sm_80, sm_86, "
            "sm_89, sm_90, sm_90a, sm_100, but got 'sm_1'");
  EXPECT_EQ(problem("cuda:sm_80+cuda:sm_90"),
            "expected --target to name one target of the kind 'cuda', but got "
            "'cuda:sm_80+cuda:sm_90'");
  for (const char *text : {"", "+", "cpu+", "tpu", "cuda:", "cpu:", ":sm_90"})
    EXPECT_NE(problem(text).find("expected --target to be cpu, cpu:ARCH, cuda"),
              std::string::npos)
        << text;
  std::string all = problem("tpu+cuda:sm_1+cpu:i9000");
  for (const char *part : {"got 'tpu'", "got 'sm_1'", "'i9000'"})
    EXPECT_NE(all.find(part), std::string::npos) << all;
  EXPECT_EQ(parseTargets("cuda:sm_1").status().code(), Code::Usage);
  EXPECT_FALSE(parseCpuTarget("cuda"));
  EXPECT_FALSE(parseCpuTarget("cpu+cuda"));
}

TEST(Target, AttributesKeepThem) {
  MLIRContext context;
  auto both = parseTargets("cpu+cuda:sm_90a");
  ASSERT_TRUE(both);
  for (const Target &target : *both) {
    DictionaryAttr attr = targetAttr(target, &context);
    auto again = targetFromAttr(attr);
    ASSERT_TRUE(again) << again.status().message();
    EXPECT_EQ(targetAttr(*again, &context), attr);
  }
  Builder b(&context);
  auto with = [&](const char *key, Attribute value) {
    return targetFromAttr(b.getDictionaryAttr(
                              {b.getNamedAttr("kind", b.getStringAttr("cuda")),
                               b.getNamedAttr(key, value)}))
        .status()
        .message();
  };
  EXPECT_EQ(with("arch", b.getStringAttr("sm_90")), "");
  EXPECT_NE(with("arch", b.getStringAttr("sm_7")).find("'tandem.target'"),
            std::string::npos);
  EXPECT_NE(with("arch", b.getI64IntegerAttr(90)).find("to have 'arch'"),
            std::string::npos);
  EXPECT_FALSE(targetFromAttr(DictionaryAttr()));
  EXPECT_FALSE(targetFromAttr(b.getDictionaryAttr({})));
}

TEST(Target, MachinesAreThoseOfTheArchitecture) {
  for (auto [arch, version] :
       {std::pair("sm_80", "+ptx80"), std::pair("sm_90a", "+ptx80"),
        std::pair("sm_100", "+ptx86")}) {
    auto machine = createMachine(CudaTarget{arch});
    ASSERT_NE(machine, nullptr);
    EXPECT_EQ(machine->getTargetCPU(), arch);
    EXPECT_EQ(machine->getTargetFeatureString(), version);
    EXPECT_TRUE(machine->getMCSubtargetInfo()->isCPUStringValid(arch));
  }
  EXPECT_EQ(createMachine(CudaTarget{"sm_80"}, 81)->getTargetFeatureString(),
            "+ptx81");
  EXPECT_EQ(createMachine(CudaTarget{"sm_100"}, 81)->getTargetFeatureString(),
            "+ptx86");
  EXPECT_EQ(CudaTarget{"sm_86"}.sharedLimit(), 99 * 1024);
  EXPECT_EQ(CudaTarget{"sm_90"}.sharedLimit(), 227 * 1024);
}
