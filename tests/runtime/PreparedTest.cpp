//===- PreparedTest.cpp - what is computed when parameters change ---------===//
//
// A model whose program "prepare" gives w * w and w + s, and whose "evaluate"
// gives x * (w * w) + (w + s): results must follow every write of w or s
// through the runtime, whoever calls.
//
//===----------------------------------------------------------------------===//
#include "runtime/tandem.hpp"
#include "tests/runtime/FakeDevice.h"
#include "tests/runtime/Maker.h"
#include "tests/runtime/io/Bytes.h"

#include <gtest/gtest.h>
#include <thread>

using namespace tandem;
using namespace tandem::runtime;
using namespace tandem::test;

namespace {

Maker preparing(bool hasInit = true) {
  Maker m;
  m.value(Role::Input, "x", {6});
  artifact::Value &w = m.value(Role::Param, "w", {6});
  w.init = artifact::Init::constant(2);
  if (!hasInit)
    w.init.reset();
  m.value(Role::State, "s", {6}).init = artifact::Init::constant(10);
  m.value(Role::Output, "o", {6});
  m.program("prepare");
  int64_t inW = m.argument(Role::Param, "w", {6});
  int64_t inS = m.argument(Role::State, "s", {6});
  m.launch("mul", {inW, inW}, m.result(Role::Prepared, "w.mul", {6}), 6);
  m.launch("add", {inW, inS}, m.result(Role::Prepared, "add", {6}), 6);
  m.program("evaluate");
  int64_t x = m.argument(Role::Input, "x", {6});
  m.argument(Role::Param, "w", {6});
  m.argument(Role::State, "s", {6});
  int64_t shift = m.argument(Role::Prepared, "add", {6});
  int64_t scale = m.argument(Role::Prepared, "w.mul", {6});
  int64_t part = m.arena(24);
  m.launch("mul", {x, scale}, part, 6);
  m.launch("add", {part, shift}, m.result(Role::Output, "o", {6}), 6);
  return m;
}

std::vector<float> evaluate(Model &model, const Tensor &x) {
  Tensor o;
  Argument in[] = {{"x", &x}};
  Destination out[] = {{"o", &o}};
  Status status = model.run("evaluate", in, out);
  EXPECT_TRUE(status.ok()) << status.message();
  return status ? valuesOf(o) : std::vector<float>();
}

/// x * w * w + w + s, where all elements of each are equal.
std::vector<float> expected(float x, float w, float s) {
  return std::vector<float>(6, x * w * w + w + s);
}

Tensor all(float value) { return filled({6}, value, 0); }

TEST(Prepared, FollowsWhatIsSet) {
  Model model = preparing().load();
  Tensor x = all(3);
  EXPECT_EQ(evaluate(model, x), expected(3, 2, 10));
  EXPECT_EQ(evaluate(model, x), expected(3, 2, 10));
  ASSERT_TRUE(model.set("w", all(5)).ok());
  EXPECT_EQ(evaluate(model, x), expected(3, 5, 10));
  ASSERT_TRUE(model.set("s", all(-1)).ok());
  EXPECT_EQ(evaluate(model, x), expected(3, 5, -1));
  ASSERT_TRUE(model.initialize(1).ok());
  EXPECT_EQ(evaluate(model, x), expected(3, 2, 10));
}

TEST(Prepared, FollowsWritesOfWhatWasGot) {
  Model model = preparing().load();
  Tensor x = all(3), w = *model.get("w");
  EXPECT_EQ(evaluate(model, x), expected(3, 2, 10));
  setAt(w, 4, 7);
  std::vector<float> seventh = expected(3, 2, 10);
  seventh[4] = 3 * 49 + 7 + 10;
  EXPECT_EQ(evaluate(model, x), seventh);
  ASSERT_TRUE(w.copyFrom(all(1)).ok());
  EXPECT_EQ(evaluate(model, x), expected(3, 1, 10));
}

TEST(Prepared, FollowsWhatIsLoaded) {
  io::test::Folder folder;
  const std::string artifact = folder / "m.tdm",
                    file = folder / "w.safetensors";
  artifact::Manifest manifest = preparing().manifest;
  bool isHost = testDevice().isHost();
  ASSERT_TRUE(
      writerFor(isHost ? manifest : forDevice(manifest)).write(artifact).ok());
  tdm::Model model(artifact, /*threads=*/1, /*seed=*/0,
                   toString(testDevice()).c_str());
  std::vector<float> xs(6, 3), ws(6, 5), os(6);
  tdm::Tensor x = tdm::Tensor::wrap(xs.data(), TDM_F32, {6});
  tdm::Tensor o = tdm::Tensor::wrap(os.data(), TDM_F32, {6});
  auto call = [&] {
    model.run("evaluate", {{"x", x}}, {{"o", o}});
    return os;
  };
  model.set("w", tdm::Tensor::wrap(ws.data(), TDM_F32, {6}));
  model.save(file);
  model.initialize(0);
  EXPECT_EQ(call(), expected(3, 2, 10));
  model.load(file);
  EXPECT_EQ(call(), expected(3, 5, 10));
}

// What is prepared stays: a write that the runtime does not see, which is
// forbidden, has no effect until one that it sees.
TEST(Prepared, RunsOnceForEachValue) {
  if (!testDevice().isHost())
    GTEST_SKIP() << "a device's memory has no pointers for this thread";
  Model model = preparing().load();
  Tensor x = all(3), w = *model.get("w");
  auto *raw = w.mutableData<float>();
  EXPECT_EQ(evaluate(model, x), expected(3, 2, 10));
  for (int i = 0; i < 6; ++i)
    raw[i] = 4;
  EXPECT_EQ(evaluate(model, x), expected(3, 2, 10));
  w.markWritten();
  EXPECT_EQ(evaluate(model, x), expected(3, 4, 10));
}

TEST(Prepared, ItsProgramCanBeCalled) {
  Model model = preparing().load();
  EXPECT_TRUE(model.run("prepare", {}, {}).ok());
  EXPECT_EQ(evaluate(model, all(3)), expected(3, 2, 10));
  Tensor taken;
  Destination out[] = {{"add", &taken}};
  expectMessage(model.run("prepare", {}, out), "unknown result 'add'");
  Tensor given = all(1);
  Argument in[] = {{"x", &given}, {"add", &given}};
  expectMessage(model.run("evaluate", in, {}), "unknown argument 'add'");
}

TEST(Prepared, NeedsEveryParameter) {
  Model model = preparing(/*hasInit=*/false).load();
  Tensor x = all(3);
  Argument in[] = {{"x", &x}};
  EXPECT_EQ(model.run("evaluate", in, {}).message(),
            "cannot run 'evaluate': param 'w' (index 1) has no value: it has "
            "no initial one and was not set");
  ASSERT_TRUE(model.set("w", all(5)).ok());
  EXPECT_EQ(evaluate(model, x), expected(3, 5, 10));
}

TEST(Prepared, ItsMemoryIsTheModels) {
  Model model = preparing().load();
  Tensor x = all(3), o = all(0);
  Argument in[] = {{"x", &x}};
  Destination out[] = {{"o", &o}};
  int64_t loaded = model.memory().current;
  ASSERT_TRUE(model.run("evaluate", in, out).ok());
  int64_t ran = model.memory().current;
  EXPECT_GE(ran, loaded + 2 * 24);
  ASSERT_TRUE(model.set("w", all(5)).ok());
  ASSERT_TRUE(model.run("evaluate", in, out).ok());
  EXPECT_EQ(model.memory().current, ran);
}

TEST(Prepared, ServesSeveralThreads) {
  Model model = preparing().load(/*threads=*/2);
  Tensor x = all(3);
  auto call = [&] {
    for (int i = 0; i < 50; ++i) {
      // Either value, but one for all of a call.
      std::vector<float> got = evaluate(model, x);
      EXPECT_TRUE(got == expected(3, 2, 10) || got == expected(3, 5, 10));
    }
  };
  std::thread first(call), second(call);
  for (int i = 0; i < 50; ++i)
    EXPECT_TRUE(model.set("w", all(i % 2 ? 5 : 2)).ok());
  first.join();
  second.join();
  EXPECT_EQ(evaluate(model, x), expected(3, 5, 10));
}

// A capture of a call records no preparation, so that what it reads must be
// there, and of the present values.
TEST(Prepared, IsCurrentBeforeACapture) {
  if (tensorDevice().kind != DeviceKind::CudaEmu)
    GTEST_SKIP() << "only the fake device captures here";
  FakeDevice &device = FakeDevice::at(0);
  Stream stream = device.makeStream();
  StreamScope scope(device.device(), stream);
  Model model = preparing().load();
  Tensor x = all(3), o = all(0);
  Argument in[] = {{"x", &x}};
  Destination out[] = {{"o", &o}};
  auto expectRefusal = [&] {
    device.beginCapture(stream);
    EXPECT_EQ(model.run("evaluate", in, out).message(),
              "cannot run 'evaluate': what 'prepare' computes of parameters "
              "and states is not there or not of their present values: run "
              "'evaluate' once before its stream is captured");
    EXPECT_FALSE(device.endCapture(stream)) << "the capture has ended";
  };
  expectRefusal();
  EXPECT_EQ(evaluate(model, x), expected(3, 2, 10));
  ASSERT_TRUE(model.set("w", all(5)).ok());
  expectRefusal();
  ASSERT_TRUE(model.run("evaluate", in, out).ok());
  EXPECT_EQ(valuesOf(o), expected(3, 5, 10));

  device.beginCapture(stream);
  EXPECT_TRUE(model.run("evaluate", in, out).ok());
  auto graph = device.endCapture(stream);
  ASSERT_TRUE(graph) << graph.status().message();
  ASSERT_TRUE(x.copyFrom(all(4)).ok());
  device.replay(stream, *graph);
  EXPECT_EQ(valuesOf(o), expected(4, 5, 10));
  // A replay is not a call: what it reads is what the last call prepared.
  ASSERT_TRUE(model.set("w", all(1)).ok());
  device.replay(stream, *graph);
  EXPECT_EQ(valuesOf(o), expected(4, 5, 10));
  EXPECT_EQ(evaluate(model, x), expected(4, 1, 10));
  device.replay(stream, *graph);
  EXPECT_EQ(valuesOf(o), expected(4, 1, 10));
}

//===----------------------------------------------------------------------===//
// The manifest's rules
//===----------------------------------------------------------------------===//

void expectRefused(const artifact::Manifest &m, const std::string &part) {
  expectMessage(validate(m, 0), part);
}

TEST(PreparedRules, BothProgramsAgree) {
  artifact::Manifest m = preparing().manifest;
  ASSERT_TRUE(validate(m, 0).ok()) << validate(m, 0).message();
  artifact::Manifest back = *artifact::fromJson(*artifact::toJson(m));
  EXPECT_TRUE(back == m);

  artifact::Manifest other = m;
  other.programs[1].arguments[3].name = "sub";
  expectRefused(other, "/programs/1/arguments/3: expected 'prepare' to have "
                       "the prepared 'sub'");
  expectRefused(other, "/programs/0/results/1: expected a program to take the "
                       "prepared 'add'");
  other = m;
  other.programs[1].arguments[3].shape = {7};
  expectRefused(other, "expected 'add' to have the type f32 [6] of 'prepare' "
                       "but got f32 [7]");
  other = m;
  other.programs[1].arguments[3].dtype = artifact::DType::BF16;
  expectRefused(other, "expected 'add' to have the type f32 [6] of 'prepare' "
                       "but got bf16 [6]");
  other = m;
  other.programs.erase(other.programs.begin());
  expectRefused(other, "expected 'prepare' to have the prepared 'w.mul'");
  other = m;
  other.programs.pop_back();
  expectRefused(other, "expected a program to take the prepared 'w.mul'");
}

TEST(PreparedRules, RolesStandWhereTheyMay) {
  artifact::Manifest m = preparing().manifest, other = m;
  other.programs[0].arguments[0] = m.programs[1].arguments[0];
  expectRefused(other, "/programs/0/arguments/0/role: 'input' cannot stand "
                       "here");
  other = m;
  other.programs[0].results[0].role = Role::Output;
  expectRefused(other, "/programs/0/results/0/role: 'output' cannot stand "
                       "here");
  other = m;
  other.programs[1].name = "forward";
  expectRefused(other, "/programs/1/arguments/3/role: 'prepared' cannot stand "
                       "here");
  other = m;
  other.values[0].role = Role::Prepared;
  expectRefused(other, "/values/0/role: expected 'input'");
  other = m;
  other.programs[0].launches.pop_back();
  expectRefused(other, "expected a launch that writes 'add' but got none");
  // What is prepared serves other calls, so that none may overwrite it.
  other = m;
  other.programs[1].launches[0].buffers[2] = 3;
  expectRefused(other, "expected an update in place of 'add'");
}

TEST(PreparedRules, ItsBytesAreANumber) {
  artifact::Manifest m = preparing().manifest;
  m.stepMemory.emplace().prepared = 192;
  artifact::Manifest back = *artifact::fromJson(*artifact::toJson(m));
  EXPECT_EQ(back.stepMemory->prepared, 192);
  EXPECT_EQ(back.stepMemory->peak(), 192);
  m.stepMemory->prepared = -1;
  expectRefused(m, "/step_memory/prepared");
}

} // namespace
