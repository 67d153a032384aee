//===- ReproducerTest.cpp - the compiler's own faults leave a file --------===//
//
// A pass that crashed left nothing but "Segmentation fault", and one that broke
// the module a message about ops that the user had never written.
//
//===----------------------------------------------------------------------===//
#include "compiler/PassSteps.h"
#include "tests/runtime/io/Bytes.h"
#include "tools/tandem/Session.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

#include <csignal>
#include <filesystem>
#include <gtest/gtest.h>

using namespace mlir;

namespace tandem::commands::test {
namespace {

struct Crash : PassWrapper<Crash, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Crash)
  StringRef getArgument() const final { return "tandem-test-crash"; }
  void runOnOperation() final { std::raise(SIGSEGV); }
};

/// Leaves a function without its end.
struct Break : PassWrapper<Break, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Break)
  StringRef getArgument() const final { return "tandem-test-break"; }
  void runOnOperation() final {
    getOperation().getBody().front().getTerminator()->erase();
  }
};

/// Fails with an error, as for a model that is wrong, or without one.
template <bool says>
struct Refuse : PassWrapper<Refuse<says>, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Refuse)
  StringRef getArgument() const final {
    return says ? "tandem-test-refuse" : "tandem-test-fail";
  }
  void runOnOperation() final {
    if (says)
      this->getOperation().emitError("unsupported: not this model");
    this->signalPassFailure();
  }
};

/// Has begun when it finds that the model is wrong.
struct Halfway : PassWrapper<Halfway, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Halfway)
  StringRef getArgument() const final { return "tandem-test-halfway"; }
  void runOnOperation() final {
    getOperation().emitError("unsupported: not this model");
    getOperation().getBody().front().getTerminator()->erase();
    signalPassFailure();
  }
};

class Reproduces : public ::testing::Test {
protected:
  static void SetUpTestSuite() {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
    PassRegistration<Crash>();
    PassRegistration<Break>();
    PassRegistration<Halfway>();
    PassRegistration<Refuse<true>>();
    PassRegistration<Refuse<false>>();
  }

  /// Compiles a module that stands in `functionalize`, of which `pass` is left.
  Status compile(const std::string &pass) {
    std::string text = R"(
module @m attributes {tandem.phase = "capture", tandem.within = {
    after = "begin", number = 1 : i64, phase = "functionalize",
    rest = "func.func(tandem-test-)" +
                       pass + R"(),tandem-functionalize-refs"}} {
  func.func @graph(%x: tensor<4xf32> {tandem.role = #tandem.role<input "x">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.relu %x : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}
)";
    io::test::store(folder_ / "m.mlir", io::test::bytesOf(text));
    CompileOptions options;
    options.target = "cpu:x86-64-v3";
    options.stopAfter = "functionalize";
    options.reproducerFile = file();
    Session session(options);
    return session.phases(folder_ / "m.mlir").empty() ? session.status()
                                                      : Status::success();
  }
  std::string file() const { return folder_ / "r.mlir"; }
  std::string written() const {
    return std::string(io::asText(io::test::load(file())));
  }

private:
  io::test::Folder folder_;
};

TEST_F(Reproduces, aCrash) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer says where";
#endif
  // The process that dies has the path of another folder.
  EXPECT_EXIT(
      {
        (void)compile("crash");
        std::exit(0);
      },
      ::testing::KilledBySignal(SIGSEGV),
      "the compiler crashed in the pass 'test-crash'; a reproducer is in "
      "'.*r.mlir': 'tandem-opt --run-reproducer .*r.mlir' repeats it");
}

TEST_F(Reproduces, aModuleThatIsNoneAnyMore) {
  Status status = compile("break");
  EXPECT_NE(status.message().find(
                "phase 'functionalize': the pass 'test-break' left a module "
                "that is not valid, which is a fault of the compiler"),
            std::string::npos)
      << status.message();
  EXPECT_NE(written().find("tandem.relu"), std::string::npos);
  EXPECT_NE(written().find("pipeline: \"builtin.module(func.func("
                           "tandem-test-break),tandem-functionalize-refs)\""),
            std::string::npos)
      << written();
}

TEST_F(Reproduces, aFailureWithoutAWord) {
  Status status = compile("fail");
  EXPECT_NE(status.message().find("the pass 'test-fail' failed without a word"),
            std::string::npos)
      << status.message();
  EXPECT_NE(written(), "");
}

TEST_F(Reproduces, noModelsError) {
  Status status = compile("refuse");
  EXPECT_EQ(status.code(), Code::Unsupported);
  EXPECT_EQ(status.message().find("reproducer"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(file()));
}

// `resize_` of a JSON graph to a wrong size was called the compiler's fault.
TEST_F(Reproduces, noModelsErrorThatWasFoundHalfway) {
  Status status = compile("halfway");
  EXPECT_EQ(status.code(), Code::Unsupported) << status.message();
  EXPECT_EQ(status.message().find("fault of the compiler"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(file()));
}

} // namespace
} // namespace tandem::commands::test
