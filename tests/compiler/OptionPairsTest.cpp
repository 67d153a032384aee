//===- OptionPairsTest.cpp - every pair of options of the compiler's ------===//
//
// Contradictions passed in silence: `--inference --loss=...`, `--target=cuda
// --fast-math`, `inspect X.tdm --optimizer=adamw`, `--dim=batch=64
// --dim=batch=32`, `--train` without a loss. Wrong optimizers were found out
// after the work, with a place in the model and exit code 1.
//
//===----------------------------------------------------------------------===//
#include "passes/partition/optimizers/Optimizers.h"
#include "tests/runtime/cli/AllPairs.h"
#include "tools/tandem/CompilerCommands.h"

namespace tandem::commands::test {
namespace {

TEST(OptionPairs, CompileTakesOrRefusesThemAsTheTableSays) {
  EXPECT_GT(checkAllPairs(compileCommand()), 1000);
}
TEST(OptionPairs, CheckTakesOrRefusesThemAsTheTableSays) {
  EXPECT_GT(checkAllPairs(checkCommand()), 1000);
}
TEST(OptionPairs, InspectTakesOrRefusesThemAsTheTableSays) {
  EXPECT_GT(checkAllPairs(inspectCommand()), 1000);
}
TEST(OptionPairs, DiffTakesOrRefusesThemAsTheTableSays) {
  EXPECT_GT(checkAllPairs(diffCommand()), 1000);
}
TEST(OptionPairs, ProfileTakesOrRefusesThemAsTheTableSays) {
  EXPECT_GT(checkAllPairs(profileCommand()), 1000);
}
TEST(OptionPairs, ExplainTakesOrRefusesThemAsTheTableSays) {
  EXPECT_GT(checkAllPairs(explainCommand()), 1000);
}
TEST(OptionPairs, SimulateTakesOrRefusesThemAsTheTableSays) {
  EXPECT_GT(checkAllPairs(simulateCommand()), 1000);
}
TEST(OptionPairs, LinkTakesOrRefusesThemAsTheTableSays) {
  EXPECT_GT(checkAllPairs(linkCommand()), 1000);
}
TEST(OptionPairs, ReduceTakesOrRefusesThemAsTheTableSays) {
  EXPECT_GT(checkAllPairs(reduceCommand()), 10);
}
TEST(OptionPairs, BugreportTakesOrRefusesThemAsTheTableSays) {
  EXPECT_GT(checkAllPairs(bugreportCommand()), 1000);
}

Status parse(const Command &command, std::vector<std::string_view> words) {
  Status status;
  command.withTable([&](OptionTable &table) { status = table.parse(words); });
  return status;
}

/// The message of `compile FILE -o x.tdm OPTION...`, which has to be Usage.
std::string refused(std::vector<std::string_view> options,
                    std::string_view file = "m.onnx") {
  options.insert(options.begin(), {file, "-o", "x.tdm"});
  Status status = parse(compileCommand(), options);
  EXPECT_EQ(status.code(), Code::Usage) << options.back();
  return status.message();
}

// A16: each of these passed.
TEST(OptionPairs, ContradictionsAreRefused) {
  EXPECT_EQ(refused({"--dim=batch=64", "--dim=batch=32"}),
            "option '--dim' gives 'batch' twice");
  EXPECT_EQ(refused({"--dim=batch=0"}),
            "expected --dim=NAME=N with N of at least 1, but got 'batch=0'");
  EXPECT_EQ(refused({"--inference", "--loss=cross_entropy:a,b"}),
            "--inference and --loss exclude each other");
  EXPECT_EQ(refused({"--inference", "--train=w"}),
            "--inference and --train exclude each other: nothing is trained");
  EXPECT_EQ(refused({"--inference", "--freeze=w"}),
            "--inference and --freeze exclude each other: nothing is trained");
  EXPECT_EQ(refused({"--target=cuda", "--fast-math"}),
            "--fast-math has no effect with '--target=cuda': it is for the "
            "target 'cpu'");
  EXPECT_EQ(refused({"--target=cpu", "--matmul-precision=tf32"}),
            "--matmul-precision has no effect with '--target=cpu': it is for "
            "the target 'cuda'");
  EXPECT_EQ(
      refused({"--weights=w.safetensors"}, "m.mlir"),
      "--weights is for models in ONNX and archives of PyTorch, but MODEL "
      "is 'm.mlir'");
  EXPECT_EQ(parse(inspectCommand(), {"x.tdm", "--optimizer=adamw"}).message(),
            "--optimizer has no effect on an artifact, but FILE is 'x.tdm'");
  EXPECT_EQ(parse(inspectCommand(),
                  {"m.mlir", "--budget-curve", "--memory-budget=0.5"})
                .message(),
            "--budget-curve and --memory-budget exclude each other: the curve "
            "is over all budgets");
}

// A19, B6: a wrong optimizer or loss is a wrong option.
TEST(OptionPairs, OptimizersAndLossesAreChecked) {
  auto optimizer = [](std::string_view text) {
    std::string option = "--optimizer=" + std::string(text);
    return refused({option}, "m.mlir");
  };
  std::string known;
  for (const OptimizerKind &kind : optimizerKinds())
    known += (known.empty() ? "'" : ", '") + kind.name.str() + "'";
  EXPECT_EQ(optimizer("AdamW:lr=1e-3"),
            "--optimizer: unknown optimizer 'AdamW' (did you mean 'adamw'?); "
            "known are " +
                known);
  EXPECT_EQ(optimizer("sgd:dampening=0.5"),
            "--optimizer: unknown option 'dampening' of optimizer 'sgd'; known "
            "are 'lr', 'weight_decay'; optimizer 'momentum' has it; that is "
            "--optimizer=momentum:dampening=0.5");
  EXPECT_EQ(optimizer("adamw:"),
            "--optimizer: unknown option '' of optimizer 'adamw'; known are "
            "'lr', 'beta1', 'beta2', 'eps', 'weight_decay'");
  for (const char *text :
       {"sgd:lr=-1", "sgd:lr=1e-50", "sgd:lr=1e30", "sgd:lr=nan",
        "sgd:lr=", "momentum:momentum=5", "momentum:momentum=1", "adam:beta2=1",
        "adam:beta1=0.99999999", "adam:eps=0", "adamw:weight_decay=-1",
        "adamw:weight_decay=1000,lr=1", "momentum:dampening=2"})
    EXPECT_NE(optimizer(text).find("expected "), std::string::npos) << text;
  EXPECT_TRUE(parse(compileCommand(),
                    {"m.mlir", "-o", "x.tdm", "--optimizer=sgd:lr=0"}));

  EXPECT_EQ(refused({"--loss=cross_entropy:logits"}),
            "expected --loss=KIND:OUTPUT,LABELS, but got "
            "'cross_entropy:logits'");
  EXPECT_EQ(refused({"--loss=crossentropy:logits,labels"}),
            "expected --loss=KIND:OUTPUT,LABELS with one of the kinds "
            "cross_entropy, nll, mse, l1, smooth_l1, huber, bce_with_logits, "
            "bce, kl, dice, dice_with_logits, but got 'crossentropy' (did you "
            "mean 'cross_entropy'?)");
  EXPECT_EQ(refused({"--loss=mse:y,t"}, "m.json"),
            "--loss=KIND:OUTPUT,LABELS is for models of other formats, but the "
            "model is 'm.json'");
}

// "sgd:momentum=0.9" did not say which optimizer has a momentum, and what
// docs/options.md does not have was taken: nesterov=1, and lr=0x1p-3, which
// 'train --lr' refuses.
TEST(OptionPairs, OptimizersTakeWhatTheirPageSays) {
  auto optimizer = [](std::string_view text) {
    return refused({"--optimizer=" + std::string(text)}, "m.mlir");
  };
  EXPECT_EQ(optimizer("sgd:decoupled=true"),
            "--optimizer: unknown option 'decoupled' of optimizer 'sgd'; known "
            "are 'lr', 'weight_decay'; optimizers 'amsgrad', 'nadam' and "
            "'radam' have it");
  EXPECT_EQ(optimizer("momentum:nesterov=1"),
            "--optimizer: expected option 'nesterov' to be true or false but "
            "got '1'");
  EXPECT_EQ(optimizer("sgd:lr=0x1p-3"),
            "--optimizer: expected option 'lr' to be 0, or from 1.18e-38 to "
            "1e+06 but got '0x1p-3'");
  // The list is right of adam alone, which nobody meant.
  EXPECT_EQ(optimizer("adamw:beta1=0.9,lr=1,weight_decay=2").find("that is"),
            std::string::npos);
}

// check --tolerance=1e9 and =-1 passed, and so did everything then.
TEST(OptionPairs, TolerancesHaveARange) {
  for (std::string_view option :
       {"--tolerance=1e9", "--tolerance=-1", "--numeric-tolerance=2"})
    EXPECT_EQ(parse(checkCommand(), {"m.mlir", option}).code(), Code::Usage);
}

} // namespace
} // namespace tandem::commands::test
