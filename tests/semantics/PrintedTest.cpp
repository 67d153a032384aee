//===- PrintedTest.cpp - partitions as text: rows P02, P07, P16 -----------===//
//
// What a partition says is what others read of it: its module is printed,
// edited, and compiled on from there.
//
//===----------------------------------------------------------------------===//
#include "tests/semantics/Harness.h"

#include <cstring>

using namespace tandem;
using namespace tandem::test;

namespace {

class Printed : public RowTest {
protected:
  static CompileOptions byDefault() {
    CompileOptions options;
    options.partition = "default";
    return options;
  }
};

/// The backward reads the result of exp, and that of the product.
constexpr const char *kExp = R"(
module attributes {tandem.phase = "capture"} {
  func.func @graph(
      %x: tensor<4x8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %w: tensor<8x2xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
    %e = tandem.exp %x : tensor<4x8xf32>
    %p = tandem.matmul %e, %w : tensor<4x8xf32>, tensor<8x2xf32> -> tensor<4x2xf32>
    %s = tandem.sin %p : tensor<4x2xf32>
    %loss = tandem.reduce_sum %s over [0, 1] : tensor<4x2xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
})";

/// `text` with the last `from` replaced.
std::string edited(std::string text, const std::string &from,
                   const std::string &to) {
  size_t at = text.rfind(from);
  EXPECT_NE(at, std::string::npos) << from << "\n" << text;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// The function `name` of a printed module.
std::string function(const std::string &module, const std::string &name) {
  size_t begin = module.find("func.func @" + name + "(");
  size_t end = module.find("\n  }\n", begin);
  EXPECT_NE(begin, std::string::npos) << name << "\n" << module;
  return begin == std::string::npos ? "" : module.substr(begin, end - begin);
}

} // namespace
TANDEM_WAYS(Printed, Way{false, Runner::Cpu});

TEST_P(Printed, P02_SavedValuesAgreeByNameAndType) {
  std::string text = printed({kExp, nullptr}, "partition", byDefault());
  std::string forward = function(text, "forward"),
              backward = function(text, "backward");
  for (const char *saved : {"saved \"exp.0\"", "saved \"matmul.0\""}) {
    EXPECT_EQ(count(forward, saved), 1) << forward;
    EXPECT_EQ(count(backward, saved), 1) << backward;
  }
  // As it is, it compiles to the end.
  EXPECT_EQ(errorOf({text.c_str(), nullptr}), "");

  std::string renamed = edited(text, "saved \"exp.0\"", "saved \"exp.1\"");
  EXPECT_PART(errorOf({renamed.c_str(), nullptr}),
              "'saved \"exp.1\"' in 'backward' that 'forward' does not save");

  // Both names are there, but of each other's types.
  std::string exchanged = edited(text, "saved \"exp.0\"", "saved \"other\"");
  exchanged = edited(exchanged, "saved \"matmul.0\"", "saved \"exp.0\"");
  exchanged = edited(exchanged, "saved \"other\"", "saved \"matmul.0\"");
  std::string error = errorOf({exchanged.c_str(), nullptr});
  EXPECT_PART(error, "'saved \"exp.0\"' of type 'tensor<4x2xf32>' in "
                     "'backward', but of type 'tensor<4x8xf32>' in 'forward'");
  EXPECT_PART(error, "'saved \"matmul.0\"' of type 'tensor<4x8xf32>' in "
                     "'backward', but of type 'tensor<4x2xf32>' in 'forward'");
}

TEST_P(Printed, P02_EditedTagsAreObeyed) {
  std::string joint = printed({kExp, nullptr}, "joint");
  const std::string op = "tandem.pass = \"forward\"} : tensor<4x8xf32>\n";
  std::string text = edited(joint, "tandem.exp %arg0 {" + op,
                            "tandem.exp %arg0 {tandem.recompute, " + op);
  std::string parts =
      printed({text.c_str(), nullptr}, "partition", byDefault());
  EXPECT_EQ(count(function(parts, "forward"), "saved \"exp.0\""), 0) << parts;
  EXPECT_EQ(count(function(parts, "backward"), "= tandem.exp"), 1) << parts;
  // Without the edit it is saved, and not computed again.
  parts = printed({joint.c_str(), nullptr}, "partition", byDefault());
  EXPECT_EQ(count(function(parts, "forward"), "saved \"exp.0\""), 1) << parts;
  EXPECT_EQ(count(function(parts, "backward"), "= tandem.exp"), 0) << parts;
}

TEST_P(Printed, P02_TheSameModuleGivesTheSameText) {
  for (const char *kind : {"default", "min-cut"}) {
    CompileOptions options;
    options.partition = kind;
    std::string text = printed({kExp, nullptr}, "partition", options);
    EXPECT_EQ(printed({kExp, nullptr}, "partition", options), text);
    // Also from what was printed on the way.
    std::string joint =
        printed({kExp, nullptr}, "joint", {}, /*withPlaces=*/true);
    EXPECT_EQ(printed({joint.c_str(), nullptr}, "partition", options), text);
  }
}

// exp has a view that is to be saved, and may itself be neither saved nor, for
// that, be computed again.
TEST_P(Printed, P07_NoFiniteCutSaysThePathAndTheReasonOfEachEdge) {
  constexpr const char *tagged = R"(
module attributes {tandem.phase = "capture"} {
  func.func @graph(
      %x: tensor<4x8xf32> {tandem.role = #tandem.role<input "x">},
      %w: tensor<8x4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
    %e = tandem.exp %x {tandem.recompute} : tensor<4x8xf32>
    %p = tandem.permute %e by [1, 0] {tandem.save} : tensor<4x8xf32> -> tensor<8x4xf32>
    %s = tandem.sin %p {tandem.recompute} : tensor<8x4xf32>
    %m = tandem.mul %s, %w : tensor<8x4xf32>
    %loss = tandem.reduce_sum %m over [0, 1] : tensor<8x4xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
})";
  for (const char *kind : {"default", "min-cut"}) {
    SCOPED_TRACE(kind);
    CompileOptions options;
    options.partition = kind;
    std::string error = errorOf({tagged, nullptr}, options);
    for (const char *line :
         {"row.mlir:7:10: error: the tags leave no partition: the backward "
          "needs the result of 'tandem.exp', which may neither be saved nor be "
          "computed again\n",
          "row.mlir:7:10: note: 'tandem.exp' may not be computed again: "
          "'tandem.save' on 'tandem.permute' at row.mlir:8:10\n",
          "row.mlir:7:10: note: 'tandem.exp' may not be saved: "
          "'tandem.recompute' on 'tandem.exp' at row.mlir:7:10\n",
          "row.mlir:8:10: note: 'tandem.permute' is a view of it\n",
          "row.mlir:9:10: note: 'tandem.sin' uses it, and may not be saved: "
          "'tandem.recompute' on 'tandem.sin' at row.mlir:9:10\n",
          "of the backward needs it\n"})
      EXPECT_PART(error, line);
    // Without one of them there is a partition.
    for (const char *tag : {"%x {tandem.recompute}", "[1, 0] {tandem.save}"}) {
      std::string text =
          edited(tagged, tag, std::string(tag, std::strcspn(tag, "{") - 1));
      EXPECT_EQ(errorOf({text.c_str(), nullptr}, options), "") << tag;
    }
  }
}

// What ranks do together is done once, in its order: what the backward needs of
// it is saved, whatever memory costs, and on all ranks the same.
TEST_P(Printed, P16_CollectivesAreNeitherRepeatedNorExchanged) {
  constexpr const char *reduced = R"(
module attributes {tandem.phase = "capture", tandem.mesh = #tandem.mesh<data = 2>} {
  func.func @graph(
      %x: tensor<4x8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %w: tensor<8x8xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
    %a = tandem.matmul %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %b = tandem.all_reduce sum %a over ["data"] : tensor<4x8xf32> -> tensor<4x8xf32>
    %c = tandem.all_reduce sum %b over ["data"] : tensor<4x8xf32> -> tensor<4x8xf32>
    %d = tandem.mul %b, %c : tensor<4x8xf32>
    %s = tandem.sin %d : tensor<4x8xf32>
    %loss = tandem.reduce_sum %s over [0, 1] : tensor<4x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
})";
  auto collectives = [](const std::string &text) {
    return count(text, "= tandem.all_reduce");
  };
  std::string joint =
      function(printed({reduced, nullptr}, "optimize"), "joint");
  for (const char *kind : {"default", "min-cut"})
    for (const char *budget : {"", "0"}) {
      if (std::string(kind) == "default" && *budget)
        continue;
      SCOPED_TRACE(std::string(kind) + budget);
      CompileOptions options;
      options.partition = kind;
      options.memoryBudget = budget;
      std::string text = printed({reduced, nullptr}, "partition", options);
      std::string forward = function(text, "forward"),
                  backward = function(text, "backward");
      EXPECT_EQ(collectives(forward), 2) << forward;
      EXPECT_EQ(collectives(forward) + collectives(backward),
                collectives(joint));
      // The second takes what the first gives.
      EXPECT_LT(forward.find("= tandem.matmul"),
                forward.find("= tandem.all_reduce"));
      EXPECT_EQ(count(forward, "saved \"all_reduce.0\""), 1) << forward;
      EXPECT_EQ(count(forward, "saved \"all_reduce.1\""), 1) << forward;
      EXPECT_EQ(printed({reduced, nullptr}, "partition", options), text);
    }
  // Neither does a region repeat them, which repeats all else of it.
  std::string region = reduced;
  for (const char *op :
       {"over [\"data\"] : ", "tandem.mul %b, %c : ", "tandem.sin %d : "})
    for (size_t at = 0; (at = region.find(op, at)) != std::string::npos;) {
      size_t end = at + std::strlen(op) - 3;
      region.insert(end, " {tandem.checkpoint = \"r\"}");
      at = end;
    }
  ASSERT_EQ(count(region, "tandem.checkpoint"), 4) << region;
  for (const char *kind : {"default", "min-cut"}) {
    CompileOptions options;
    options.partition = kind;
    std::string parts =
        printed({region.c_str(), nullptr}, "partition", options);
    EXPECT_EQ(collectives(function(parts, "forward")), 2) << parts;
    EXPECT_EQ(collectives(function(parts, "forward")) +
                  collectives(function(parts, "backward")),
              collectives(joint))
        << kind << parts;
  }
  std::string text = edited(reduced, "all_reduce sum %b over [\"data\"]",
                            "all_reduce sum %b over [\"data\"] "
                            "{tandem.recompute}");
  EXPECT_PART(errorOf({text.c_str(), nullptr}), "'tandem.all_reduce'");
}

// An op with an effect is never removed or reordered: behind functionalize no
// verifier lets it pass.
TEST_P(Printed, P16_OpsWithEffectsAreRefused) {
  std::string joint = printed({kExp, nullptr}, "joint");
  const std::string exp = "tandem.exp %arg0 ";
  size_t at = joint.find(exp);
  ASSERT_NE(at, std::string::npos);
  size_t line = joint.rfind('\n', at) + 1;
  std::string text = joint;
  text.insert(line, "    %ref = tandem.make_ref %arg0 {tandem.pass = "
                    "\"forward\"} : tensor<4x8xf32>\n");
  EXPECT_PART(errorOf({text.c_str(), nullptr}),
              "'tandem.make_ref', an op with a memory effect");
}
