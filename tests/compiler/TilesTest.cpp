//===- TilesTest.cpp - products of tiles in artifacts ---------------------===//
//
// Which processors' code multiplies tiles, and that an artifact asks for them
// exactly if it has such code. Nothing is run.
//
//===----------------------------------------------------------------------===//
#include "compiler/Compile.h"
#include "compiler/Target.h"
#include "runtime/artifact/ArtifactReader.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tandem;

namespace {

class EmittedTiles : public testing::Test {
protected:
  void SetUp() override {
    if (auto target = parseCpuTarget("cpu:sapphirerapids"); !target)
      GTEST_SKIP() << "not for this kind of processor: "
                   << target.status().message();
    DialectRegistry registry;
    registerCompiler(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// The artifact of a product of `element`.
  artifact::ArtifactReader compile(const std::string &target,
                                   const std::string &element) {
    std::string type = "tensor<64x64x" + element + ">";
    auto role = [](const std::string &kind) {
      return " {tandem.role = #tandem.role<" + kind + ">}";
    };
    auto module = parseSourceString<ModuleOp>(
        "module @model attributes {tandem.phase = \"capture\"} {\n"
        "func.func @graph(%x: " +
            type + role("input \"x\"") + ", %w: " + type + role("input \"w\"") +
            ") -> (" + type + role("output \"y\"") +
            ") {\n%y = tandem.matmul %x, %w : " + type + ", " + type + " -> " +
            type + "\nreturn %y : " + type + "\n}\n}\n",
        &context);
    CompileOptions options;
    options.target = target;
    options.inference = true;
    std::vector<PhaseTime> times;
    auto modules = runTargets(std::move(module), options, times);
    EXPECT_TRUE(modules) << modules.status().message();
    auto writer = emitTargets(*modules, options, times);
    EXPECT_TRUE(writer) << writer.status().message();
    bytes = *writer->bytes();
    return *artifact::ArtifactReader::fromMemory(
        std::as_bytes(std::span(bytes)));
  }

  MLIRContext context;
  std::string bytes; ///< what a reader looks at
};

/// Whether there is a tdpbf16ps: VEX.128.F3.0F38.W0 5C, of any registers.
bool multipliesTiles(std::span<const std::byte> code) {
  auto at = [&](size_t i) { return static_cast<unsigned>(code[i]); };
  for (size_t i = 0; i + 4 < code.size(); ++i)
    if (at(i) == 0xC4 && at(i + 1) == 0xE2 && (at(i + 2) & 0x87) == 0x02 &&
        at(i + 3) == 0x5C)
      return true;
  return false;
}

bool needs(const artifact::Manifest &manifest, const char *feature) {
  return llvm::is_contained(manifest.target.features, feature);
}

TEST_F(EmittedTiles, ProductsOfBf16HaveThem) {
  auto reader = compile("cpu:sapphirerapids", "bf16");
  EXPECT_TRUE(multipliesTiles(reader.code("object.cpu")));
  for (const char *feature : {"amx-tile", "amx-bf16", "avx512bf16"})
    EXPECT_TRUE(needs(reader.manifest(), feature)) << feature;
}

TEST_F(EmittedTiles, OtherCodeDoesNotAskForThem) {
  for (auto [target, element] :
       {std::pair{"cpu:sapphirerapids", "f32"}, {"cpu:x86-64-v4", "bf16"}}) {
    SCOPED_TRACE(target);
    auto reader = compile(target, element);
    EXPECT_FALSE(multipliesTiles(reader.code("object.cpu")));
    for (const char *feature : {"amx-tile", "amx-bf16"})
      EXPECT_FALSE(needs(reader.manifest(), feature)) << feature;
    EXPECT_TRUE(needs(reader.manifest(), "avx512f"));
  }
}

TEST_F(EmittedTiles, EachVariantAsksForItsOwn) {
  auto reader = compile("cpu:x86-64-v4+sapphirerapids", "bf16");
  ASSERT_EQ(reader.manifests().size(), 2u);
  EXPECT_FALSE(needs(reader.manifests()[0], "amx-tile"));
  EXPECT_TRUE(needs(reader.manifests()[1], "amx-tile"));
}

} // namespace
