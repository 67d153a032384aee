//===- TiedRowsTest.cpp - a parameter of several modules: row T11 ---------===//
#include "tests/training/TrainingTest.h"

#include "runtime/model/Model.h"

#include <algorithm>

using namespace tandem;
using namespace tandem::test;

namespace {

class TiedRows : public TrainingTest {
protected:
  void SetUp() override {
    TrainingTest::SetUp();
    trace("m", [](Trace &t) {
      Tensor x = t.input("x", {4, 3});
      Tensor labels = t.input("labels", {4}, DType::I64);
      Tensor w = t.parameter("embed.w", {2, 3}, Init::uniform(-0.5, 0.5),
                             DType::F32, {.alsoCalled = {"head.w", "tied"}});
      // Both layers have the one matrix, the first one transposed.
      Tensor logits = linear(matmul(linear(x, w), w), w);
      t.output("loss", crossEntropy(logits, labels));
    });
    EXPECT_RAN(compile("m", "m.tdm", {"--optimizer=adamw:lr=0.1"}));
    EXPECT_RAN(train("m.tdm", {"--steps=2", "--seed=1", "--save=w.st"}));
  }

  void write(const std::string &name,
             const std::map<std::string, io::ArrayView> &tensors) const {
    ASSERT_TRUE(io::writeSafetensors(path(name), tensors, {}).ok());
  }
  Ended from(const std::string &params) const {
    return train("m.tdm", {"--steps=1", "--seed=1", "--params=" + params,
                           "--save=" + params + ".out", "--force"});
  }
};

TEST_F(TiedRows, T11_OneGradientOneStateMovedOnce) {
  auto model = runtime::Model::load(path("m.tdm"), {.threads = 1});
  ASSERT_TRUE(model) << model.status().message();
  std::vector<std::string> states;
  for (const artifact::Value &value : model->manifest().values)
    if (value.role == artifact::Role::State &&
        value.name.find(':') != std::string::npos)
      states.push_back(value.name);
  EXPECT_EQ(states, (Words{"adamw.step:embed.w", "adamw.m:embed.w",
                           "adamw.v:embed.w"}));
  int grads = 0;
  for (const artifact::Slot &slot :
       model->manifest().findProgram("backward")->results)
    grads += slot.role == artifact::Role::Grad;
  EXPECT_EQ(grads, 1);
  EXPECT_EQ(tensor("w.st", "adamw.step:embed.w"), std::vector<float>{2});
  // It is one tensor, by all names.
  auto one = model->get("embed.w"), other = model->get("head.w");
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->data(), other->data());
  ASSERT_TRUE(
      model->set("tied", *runtime::Tensor::zeros(DType::F32, one->shape())));
  EXPECT_EQ(one->at(0), 0);
  // A checkpoint has it once.
  auto saved = io::Safetensors::read(path("w.st"));
  ASSERT_TRUE(saved);
  EXPECT_TRUE(saved->find("embed.w"));
  EXPECT_FALSE(saved->find("head.w"));
}

TEST_F(TiedRows, T11_EachNameLoads) {
  auto file = io::Safetensors::read(path("w.st"));
  ASSERT_TRUE(file);
  io::ArrayView w = *file->find("embed.w");
  write("first.st", {{"embed.w", w}});
  write("second.st", {{"head.w", w}});
  write("all.st", {{"embed.w", w}, {"head.w", w}, {"tied", w}});
  for (const char *name : {"first.st", "second.st", "all.st"}) {
    Ended ended = from(name);
    EXPECT_RAN(ended);
    EXPECT_EQ(tensor(std::string(name) + ".out", "embed.w"),
              tensor("first.st.out", "embed.w"))
        << name;
    // What fits is all of it, and none of its names is more than that.
    ended = train("m.tdm", {"--steps=1", std::string("--init-from=") + name});
    EXPECT_RAN(ended);
    EXPECT_NE(ended.err.find("gives 1 of 1 parameters and states;"),
              std::string::npos)
        << ended.err;
  }
}

TEST_F(TiedRows, T11_ShapesAreCheckedForBoth) {
  auto file = io::Safetensors::read(path("w.st"));
  ASSERT_TRUE(file);
  io::ArrayView w = *file->find("embed.w");
  std::vector<float> numbers(6, 0.5f);
  io::Array wide = io::test::arrayOf<float>(DType::F32, {3, 2}, numbers),
            same = io::test::arrayOf<float>(DType::F32, {2, 3}, numbers);
  write("wide.st", {{"embed.w", w}, {"head.w", wide}});
  Ended ended = from("wide.st");
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("tensors 'embed.w' (f32 [2, 3]) and 'head.w' (f32 "
                           "[3, 2]) are one parameter of the model: expected "
                           "them to be the same"),
            std::string::npos)
      << ended.err;
  write("other.st", {{"embed.w", w}, {"head.w", same}});
  ended = from("other.st");
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("but their elements differ"), std::string::npos)
      << ended.err;
  write("alone.st", {{"head.w", wide}});
  ended = from("alone.st");
  EXPECT_EQ(ended.code, 2);
  EXPECT_NE(ended.err.find("expected f32 [2, 3] but got f32 [3, 2]"),
            std::string::npos)
      << ended.err;
}

} // namespace
