//===- TargetTest.cpp - targets as options and attributes -----------------===//
//
// What --target accepts, what it says of what it does not, and that a target
// comes back from a module as it went in.
//
//===----------------------------------------------------------------------===//
#include "compiler/Target.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
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
  ASSERT_EQ(cuda->size(), 2u);
  EXPECT_EQ(std::get<CudaTarget>((*cuda)[0]).arch, "sm_90a");
  EXPECT_EQ(std::get<CudaTarget>((*cuda)[1]).arch, "sm_80");
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

/// Another kind of machine than the host's.
TEST(Target, OfAarch64) {
  auto all = parseTargets("cpu:aarch64+neoverse-n1+neoverse-v2+apple-m1");
  ASSERT_TRUE(all) << all.status().message();
  const auto &least = std::get<CpuTarget>((*all)[0]);
  EXPECT_EQ(least.arch, "aarch64");
  EXPECT_EQ(least.features, (std::vector<std::string>{"fp-armv8", "neon"}));
  MLIRContext context;
  context.loadDialect<TandemDialect>();
  for (const Target &target : *all) {
    const auto &cpu = std::get<CpuTarget>(target);
    EXPECT_EQ(cpu.vectorBits, 128);
    EXPECT_EQ(cpu.lastCacheBytes, 0);
    auto machine = createMachine(cpu);
    ASSERT_TRUE(machine);
    EXPECT_TRUE(machine->getTargetTriple().isAArch64());
    // No vectors whose length is not known, nor what no machine reports.
    for (const char *unused : {"+sve", "+sme", "+cssc", "+mops"})
      EXPECT_FALSE(machine->getTargetFeatureString().contains(unused));
    EXPECT_TRUE(machine->getTargetFeatureString().contains("-sve"));
    auto read = targetFromAttr(targetAttr(target, &context));
    ASSERT_TRUE(read) << read.status().message();
    EXPECT_EQ(std::get<CpuTarget>(*read).features, cpu.features);
  }
  EXPECT_EQ(parseTargets("cpu:x86-64-v3+aarch64")->size(), 2u);
  std::string text = problem("cpu:neoverse-n11");
  EXPECT_NE(text.find("'aarch64'"), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean 'neoverse-n1'"), std::string::npos) << text;
  // Features are those of the processor's own kind.
  CpuTarget wrong = least;
  wrong.features.push_back("avx2");
  auto read = targetFromAttr(targetAttr(wrong, &context));
  ASSERT_FALSE(read);
  EXPECT_NE(read.status().message().find("unknown feature 'avx2'"),
            std::string::npos);
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
  EXPECT_EQ(targetLabels(*parseTargets("cpu+cuda:sm_86")),
            (std::vector<std::string>{"cpu", "cuda"}));
  EXPECT_EQ(targetLabels(*parseTargets("cpu+cuda")),
            (std::vector<std::string>{"cpu", "cuda-sm_90a", "cuda-sm_80"}));
  EXPECT_EQ(targetNames("cuda:sm_90a+sm_80+cpu"),
            (std::vector<std::string>{"cuda:sm_90a", "cuda:sm_80", "cpu"}));
  EXPECT_TRUE(parseTargets("cuda:sm_100a+sm_103a+sm_120"));
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
            "sm_89, sm_90, sm_90a, sm_100, sm_100a, sm_103, sm_103a, sm_120, "
            "sm_120a, but got 'sm_1'");
  EXPECT_EQ(problem("cuda:sm_80+cuda:sm_80"),
            "expected --target to name the architecture 'sm_80' once, but got "
            "'cuda:sm_80+cuda:sm_80'");
  EXPECT_NE(problem("cpu:x86-64-v3+sm_80").find("'sm_80'"), std::string::npos);
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

/// The target with fields of the kind `kind`; what is wrong with it, found by
/// the attribute or when code is to be made of it.
static std::string problemOf(MLIRContext &context, TargetKind kind,
                             DictionaryAttr fields) {
  std::string problem;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    problem += diagnostic.str();
    return success();
  });
  context.loadDialect<TandemDialect>();
  auto error = [&] { return emitError(UnknownLoc::get(&context)); };
  auto attr = TargetAttr::getChecked(error, &context, kind, fields);
  if (!attr)
    return problem;
  auto target = targetFromAttr(attr);
  return target ? "" : target.status().message();
}

TEST(Target, AttributesKeepThem) {
  MLIRContext context;
  context.loadDialect<TandemDialect>();
  auto both = parseTargets("cpu+cuda:sm_90a");
  ASSERT_TRUE(both);
  for (const Target &target : *both) {
    TargetAttr attr = targetAttr(target, &context);
    auto again = targetFromAttr(attr);
    ASSERT_TRUE(again) << again.status().message();
    EXPECT_EQ(targetAttr(*again, &context), attr);
  }
  Builder b(&context);
  auto with = [&](const char *key, Attribute value) {
    return problemOf(context, TargetKind::Cuda,
                     b.getDictionaryAttr(b.getNamedAttr(key, value)));
  };
  EXPECT_EQ(with("arch", b.getStringAttr("sm_90")), "");
  EXPECT_NE(with("arch", b.getStringAttr("sm_7")).find("'tandem.target'"),
            std::string::npos);
  EXPECT_NE(with("arch", b.getI64IntegerAttr(90))
                .find("expected 'arch' to be a string, but got 90"),
            std::string::npos);
  EXPECT_NE(with("vector_bits", b.getI64IntegerAttr(256))
                .find("unknown field 'vector_bits'"),
            std::string::npos);
  EXPECT_FALSE(targetFromAttr(TargetAttr()));
  EXPECT_NE(problemOf(context, TargetKind::Cpu, b.getDictionaryAttr({})), "");
}

/// A9, A10: an edited target ended the compiler (vector_bits = 100), let it run
/// for ever (10^12), or made an artifact that no machine loads, without a word.
TEST(Target, EditedAttributesAreRefused) {
  MLIRContext context;
  context.loadDialect<TandemDialect>();
  Builder b(&context);
  auto base = parseTargets("cpu:x86-64-v3");
  if (!base)
    GTEST_SKIP() << "not for this kind of processor: "
                 << base.status().message();
  auto with = [&](const char *key, Attribute value) {
    NamedAttrList fields(targetAttr(base->front(), &context).getFields());
    fields.set(key, value);
    return problemOf(context, TargetKind::Cpu, fields.getDictionary(&context));
  };
  auto number = [&](const char *key, int64_t value) {
    return with(key, b.getI64IntegerAttr(value));
  };
  EXPECT_EQ(number("vector_bits", 256), "");
  EXPECT_EQ(number("vector_bits", 128), "");
  EXPECT_EQ(number("processors", 4), "");
  for (int64_t bits : {int64_t(0), int64_t(-512), int64_t(7), int64_t(100),
                       int64_t(192), int64_t(1000000000000)})
    EXPECT_NE(number("vector_bits", bits).find("expected 'vector_bits' to be"),
              std::string::npos)
        << bits;
  EXPECT_EQ(number("vector_bits", 512),
            "'tandem.target': expected 'vector_bits' to be 128, 256 or 512, "
            "and at most 256, the width of registers with these features, but "
            "got 512");
  EXPECT_EQ(number("processors", -4),
            "'tandem.target': expected 'processors' to be an integer from 1 to "
            "1048576, but got -4 : i64");
  EXPECT_NE(number("last_cache_bytes", -1), "");
  EXPECT_EQ(number("procesors", 4),
            "'tandem.target': unknown field 'procesors' (did you mean "
            "'processors'?)");
  EXPECT_NE(
      with("arch", b.getStringAttr("foo")).find("unknown processor 'foo'"),
      std::string::npos);
  EXPECT_NE(with("arch", b.getStringAttr("pentium")).find("64 bits"),
            std::string::npos);
  EXPECT_EQ(with("features", b.getStrArrayAttr({"avx2", "avx512q"})),
            "'tandem.target': unknown feature 'avx512q' (did you mean "
            "'avx512dq'?)");
  EXPECT_EQ(with("winograd", b.getStringAttr("perhaps")),
            "'tandem.target': expected 'winograd' to be one of 'auto', 'no', "
            "but got \"perhaps\"");
}

/// A9: LLVM ended the process at a processor without code of 64 bits.
TEST(Target, ProcessorsOf32Bits) {
  if (!parseTargets("cpu:x86-64-v3"))
    GTEST_SKIP() << "not for this kind of processor";
  auto target = parseTargets("cpu:pentium");
  ASSERT_FALSE(target);
  EXPECT_EQ(target.status().code(), Code::Unsupported);
  EXPECT_EQ(target.status().message(),
            "the processor 'pentium' does not run code of 64 bits");
  EXPECT_NE(problem("cpu:x86-64-v33").find("did you mean 'x86-64-v3'?"),
            std::string::npos);
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
