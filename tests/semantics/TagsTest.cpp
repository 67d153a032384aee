//===- TagsTest.cpp - tags and gradients: rows P06, P08, P12, P15 ---------===//
//
// Whatever is tagged, a program computes the same bits: each program is
// compiled with and without its tags, for both partitions.
//
//===----------------------------------------------------------------------===//
#include "passes/plan/StepMemory.h"
#include "tests/semantics/JointPrograms.h"
#include "tests/support/TestModule.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;
using namespace tandem::test::joint;

namespace {

class Tags : public RowTest {
protected:
  /// Runs both programs, forward and backward, and expects the same of them.
  void expectSame(const Source &plain, const Source &tagged,
                  const CompileOptions &options = {},
                  const CompileOptions &taggedOptions = {}) const;
  /// The peak of a step.
  int64_t peakOf(const Source &source, const CompileOptions &options) const;
  /// What the forward saves, of the printed programs.
  std::string signature(const Source &source, const CompileOptions &options,
                        const std::string &program) const;
};

const char *const kPartitions[] = {"default", "min-cut"};

Numbers numbers(size_t count, double scale) {
  Numbers list;
  for (size_t i = 0; i < count; ++i)
    list.push_back(scale * std::sin(static_cast<double>(3 * i + 1)));
  return list;
}

std::string replacedAll(std::string text, const std::string &from,
                        const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
       at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// A region that writes a state and reads what it wrote. `tag` for its ops.
constexpr const char *kWriting = R"(
module attributes {tandem.phase = "capture"} {
  func.func @graph(
      %x: tensor<4x8xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %w: tensor<8x8xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
      %s: !tandem.ref<8xf32> {tandem.role = #tandem.role<state "s">})
      -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
    %a = tandem.matmul %x, %w {TAG} : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %b = tandem.tanh %a {TAG} : tensor<4x8xf32>
    %c = tandem.matmul %b, %w {TAG} : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %h = tandem.tanh %c {TAG} : tensor<4x8xf32>
    %s0 = tandem.read %s {TAG} : !tandem.ref<8xf32>
    %r = tandem.reduce_sum %h over [0] {TAG, tandem.no_grad} : tensor<4x8xf32> -> tensor<8xf32>
    %s1 = tandem.mul %s0, %r {TAG, tandem.no_grad} : tensor<8xf32>
    tandem.write %s1 into %s {TAG, tandem.no_grad} : tensor<8xf32>, !tandem.ref<8xf32>
    %s2 = tandem.read %s {TAG} : !tandem.ref<8xf32>
    %sb = tandem.broadcast %s2 to [4, 8] along [1] {TAG} : tensor<8xf32> -> tensor<4x8xf32>
    %p = tandem.mul %h, %sb {TAG} : tensor<4x8xf32>
    %y = tandem.matmul %p, %w {TAG} : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %z = tandem.sin %y : tensor<4x8xf32>
    %loss = tandem.reduce_sum %z over [0, 1] : tensor<4x8xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
})";

Source writing(bool isTagged) {
  static const std::string texts[] = {
      replacedAll(replacedAll(kWriting, "{TAG, ", "{"), " {TAG}", ""),
      replacedAll(kWriting, "TAG", "tandem.checkpoint = \"block\"")};
  return {texts[isTagged].c_str(), [isTagged](Trace &t) {
            Tensor x = t.input("x", {4, 8}, DType::F32, {.requiresGrad = true});
            Tensor w = t.parameter("w", {8, 8}, Init::constant(1));
            Tensor s = t.state("s", {8}, Init::constant(1));
            auto block = [&] {
              Tensor h = tanh(matmul(tanh(matmul(x, w)), w));
              {
                NoGradScope scope = t.noGrad();
                s.mul_(sum(h, {0}));
              }
              return matmul(h * s, w);
            };
            Tensor y = isTagged ? t.checkpoint("block", block) : block();
            t.output("loss", sum(sin(y)));
          }};
}

/// A block of two layers, `count` times with the same parameters.
Source blocks(int count, bool isTagged) {
  static std::map<std::pair<int, bool>, std::string> texts;
  std::string &text = texts[{count, isTagged}];
  const std::string type = "tensor<64x32xf32>", square = "tensor<32x32xf32>";
  std::string body, h = "%x";
  for (int i = 0; i < count; ++i) {
    std::string tag =
        isTagged ? " {tandem.checkpoint = \"block" + std::to_string(i) + "\"}"
                 : "";
    for (const char *w : {"%w", "%v"}) {
      std::string name = "%" + std::string(w + 1) + std::to_string(i);
      body += name + "m = tandem.matmul " + h + ", " + w + tag + " : " + type +
              ", " + square + " -> " + type + "\n";
      body += name + "t = tandem.sin " + name + "m" + tag + " : " + type + "\n";
      h = name + "t";
    }
  }
  body += "%q = tandem.reduce_sum " + h + " over [0, 1] : " + type +
          " -> tensor<f32>\nreturn %q : tensor<f32>";
  auto parameter = [&](const std::string &name) {
    return argument("%" + name, "param \"" + name + "\" {requires_grad}",
                    square);
  };
  text = graph(argument("%x", "input \"x\"", type) + ", " + parameter("w") +
                   ", " + parameter("v"),
               output("loss", "tensor<f32>"), body);
  return {text.c_str(), [count, isTagged](Trace &t) {
            Tensor h = t.input("x", {64, 32});
            Tensor w = t.parameter("w", {32, 32}, Init::constant(1));
            Tensor v = t.parameter("v", {32, 32}, Init::constant(1));
            auto block = [&] { return sin(matmul(sin(matmul(h, w)), v)); };
            for (int i = 0; i < count; ++i)
              h = isTagged ? t.checkpoint("block", block) : block();
            t.output("loss", sum(h));
          }};
}

} // namespace

TANDEM_COMPILED_WAYS(Tags);

void Tags::expectSame(const Source &plain, const Source &tagged,
                      const CompileOptions &options,
                      const CompileOptions &taggedOptions) const {
  std::unique_ptr<CompiledMachine> machines[] = {
      compiled(plain, options), compiled(tagged, taggedOptions)};
  for (auto &m : machines) {
    ASSERT_TRUE(m);
    for (const artifact::Value &value : m->model.manifest().values) {
      if (value.role == artifact::Role::Output)
        continue;
      size_t count = 1;
      for (int64_t size : value.shape)
        count *= static_cast<size_t>(size);
      m->set(value.name, numbers(count, 0.5));
    }
    for (int step = 0; step < 2; ++step) {
      ASSERT_EQ(m->forward(), "");
      ASSERT_EQ(m->backward({{"loss", {1}}}), "");
    }
  }
  EXPECT_EQ(machines[0]->outputs, machines[1]->outputs);
  EXPECT_EQ(machines[0]->gradients, machines[1]->gradients);
  EXPECT_FALSE(machines[0]->gradients.empty());
  for (const artifact::Value &value : machines[0]->model.manifest().values)
    if (value.role == artifact::Role::State)
      EXPECT_EQ(machines[0]->contents(value.name),
                machines[1]->contents(value.name));
}

int64_t Tags::peakOf(const Source &source,
                     const CompileOptions &options) const {
  std::string text = printed(source, "plan", options);
  TestModule module;
  module.context.allowUnregisteredDialects();
  EXPECT_TRUE(module.parse(text)) << module.diagnostics;
  return module.module ? stepMemory(*module.module).peak() : 0;
}

std::string Tags::signature(const Source &source, const CompileOptions &options,
                            const std::string &program) const {
  std::string text = printed(source, "partition", options);
  size_t at = text.find("func.func @" + program + "(");
  EXPECT_NE(at, std::string::npos) << text;
  return text.substr(at, text.find('\n', at) - at);
}

TEST_P(Tags, P15_ARegionThatWritesWritesOnce) {
  for (const char *partition : kPartitions) {
    CompileOptions options;
    options.partition = partition;
    // The new value of the state is saved as the forward saw it, and of the
    // rest only what leaves the region.
    std::string forward = signature(writing(true), options, "forward");
    EXPECT_EQ(count(forward, "#tandem.role<saved"), 2) << forward;
    EXPECT_PART(forward, "saved \"mul.0\"");
    EXPECT_PART(forward, "saved \"matmul.2\"");
    std::string backward = signature(writing(true), options, "backward");
    EXPECT_EQ(count(backward, "update of"), 0) << backward;
    expectSame(writing(false), writing(true), options, options);
  }
}

TEST_P(Tags, P12_BlocksUsedTwiceNeedLessMemory) {
  for (const char *partition : kPartitions) {
    CompileOptions options;
    options.partition = partition;
    for (int count : {1, 2, 4}) {
      int64_t plain = peakOf(blocks(count, false), options);
      int64_t tagged = peakOf(blocks(count, true), options);
      EXPECT_LE(tagged, plain) << partition << ", " << count << " blocks";
      if (count == 4)
        EXPECT_LT(tagged, plain) << partition;
      expectSame(blocks(count, false), blocks(count, true), options, options);
    }
    // Of each block but the last, what it gives to the next one.
    EXPECT_EQ(count(signature(blocks(4, true), options, "forward"),
                    "gives it to region"),
              3);
  }
}

TEST_P(Tags, P06_TagsLeaveEveryBit) {
  for (const char *partition : kPartitions) {
    CompileOptions options, tagged;
    options.partition = tagged.partition = partition;
    Source source = blocks(2, false);
    if (isTraced()) {
      tagged.save = "matmul";
      tagged.recompute = "sin";
    } else {
      static std::string text;
      text = replacedAll(source.text, "tandem.sin %w0m",
                         "tandem.sin %w0m {tandem.recompute}");
      text = replacedAll(text, "%v : ", "%v {tandem.save} : ");
      source.text = text.c_str();
    }
    expectSame(blocks(2, false), source, options, tagged);
    std::string forward = signature(source, tagged, "forward");
    EXPECT_EQ(count(forward, "'tandem.save' on"), isTraced() ? 4 : 2)
        << forward;
    EXPECT_EQ(count(forward, "saved \"sin.0\""), 0) << forward;
  }
}
