//===- RenewedTest.cpp - prepared values that a step gives anew -----------===//
//
// "prepare" gives w * w; "step" gives x * (w * w), adds x to w, and leaves the
// new w * w behind; "move" adds x to w alone. Whoever writes w, and however, a
// step must see its square: a copy that is out of date would be a wrong number
// that nobody notices.
//
//===----------------------------------------------------------------------===//
#include "runtime/dlpack.h"
#include "runtime/tandem.hpp"
#include "tests/runtime/FakeDevice.h"
#include "tests/runtime/Maker.h"
#include "tests/runtime/io/Bytes.h"

#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::runtime;
using namespace tandem::test;

namespace {

enum class Gives { InPlace, Beside, Nothing };

Maker stepping(Gives gives = Gives::InPlace) {
  Maker m;
  m.value(Role::Input, "x", {6});
  m.value(Role::Param, "w", {6}).init = artifact::Init::constant(2);
  m.value(Role::Output, "o", {6});
  m.program("prepare");
  int64_t source = m.argument(Role::Param, "w", {6});
  m.launch("mul", {source, source}, m.result(Role::Prepared, "w.mul", {6}), 6);
  m.program("step");
  int64_t x = m.argument(Role::Input, "x", {6});
  int64_t w = m.argument(Role::Param, "w", {6});
  int64_t squares = m.argument(Role::Prepared, "w.mul", {6});
  m.launch("mul", {x, squares}, m.result(Role::Output, "o", {6}), 6);
  m.update("w", {6});
  m.launch("add", {w, x}, w, 6);
  if (gives == Gives::InPlace)
    m.update("w.mul", {6});
  else if (gives == Gives::Beside)
    squares = m.result(Role::Update, "w.mul", {6});
  if (gives != Gives::Nothing)
    m.launch("mul", {w, w}, squares, 6);
  m.program("accumulate");
  x = m.argument(Role::Input, "x", {6});
  squares = m.argument(Role::Prepared, "w.mul", {6});
  m.launch("mul", {x, squares}, m.result(Role::Output, "o", {6}), 6);
  m.program("move");
  x = m.argument(Role::Input, "x", {6});
  w = m.argument(Role::Param, "w", {6});
  m.update("w", {6});
  m.launch("add", {w, x}, w, 6);
  return m;
}

Tensor all(float value) { return filled({6}, value, 0); }
std::vector<float> six(float value) { return std::vector<float>(6, value); }

std::vector<float> run(Model &model, float value, const char *name = "step") {
  Tensor x = all(value), o;
  Argument in[] = {{"x", &x}};
  Destination out[] = {{"o", &o}};
  bool gives = std::string_view(name) != "move";
  Status status =
      model.run(name, in, std::span<const Destination>(out, gives ? 1 : 0));
  EXPECT_TRUE(status.ok()) << status.message();
  return status && gives ? valuesOf(o) : std::vector<float>();
}

TEST(Renewed, FollowsItsSteps) {
  for (Gives gives : {Gives::InPlace, Gives::Beside, Gives::Nothing}) {
    Model model = stepping(gives).load();
    EXPECT_EQ(run(model, 3), six(3 * 4));
    EXPECT_EQ(run(model, 1), six(1 * 25));
    EXPECT_EQ(run(model, 7, "accumulate"), six(7 * 36));
    EXPECT_EQ(run(model, 2), six(2 * 36));
    EXPECT_EQ(run(model, 1), six(1 * 64));
  }
}

TEST(Renewed, FollowsOtherWriters) {
  Model model = stepping().load();
  EXPECT_EQ(run(model, 3), six(3 * 4));
  ASSERT_TRUE(model.set("w", all(1)).ok());
  EXPECT_EQ(run(model, 3), six(3 * 1));
  run(model, 2, "move"); // w is 6
  EXPECT_EQ(run(model, 1), six(1 * 36));
  Tensor w = *model.get("w");
  setAt(w, 0, 2);
  std::vector<float> first = six(49);
  first[0] = 4;
  EXPECT_EQ(run(model, 1, "accumulate"), first);
  ASSERT_TRUE(model.initialize(1).ok());
  EXPECT_EQ(run(model, 1), six(4));
}

// Only what the runtime does not see, through an address that it gave to none
// of its callers, has no effect: it does not prepare before each step.
TEST(Renewed, IsNotPreparedEachTime) {
  if (!testDevice().isHost())
    GTEST_SKIP() << "a device's memory has no pointers for this thread";
  Model model = stepping().load();
  Tensor w = *model.get("w");
  auto *raw = w.mutableData<float>();
  EXPECT_EQ(run(model, 3), six(3 * 4));
  std::fill_n(raw, 6, 100.0f);
  EXPECT_EQ(run(model, 1), six(1 * 25));
}

// A caller who has the address writes without a word, also when the handle by
// which it was had is gone.
TEST(Renewed, FollowsAddressesOfTheCaller) {
  if (!testDevice().isHost())
    GTEST_SKIP() << "a device's memory has no pointers for this thread";
  io::test::Folder folder;
  const std::string artifact = folder / "m.tdm";
  ASSERT_TRUE(writerFor(stepping().manifest).write(artifact).ok());
  for (bool exports : {false, true}) {
    tdm::Model model(artifact, /*threads=*/1);
    std::vector<float> xs(6, 1), os(6);
    tdm::Tensor x = tdm::Tensor::wrap(xs.data(), TDM_F32, {6});
    tdm::Tensor o = tdm::Tensor::wrap(os.data(), TDM_F32, {6});
    auto step = [&] {
      model.run("step", {{"x", x}}, {{"o", o}});
      return os;
    };
    EXPECT_EQ(step(), six(4)); // w is 3
    float *raw = nullptr;
    if (exports) {
      DLManagedTensor *shared = nullptr;
      ASSERT_EQ(tdm_tensor_to_dlpack(model.parameter("w").get(), &shared),
                TDM_OK);
      raw = static_cast<float *>(shared->dl_tensor.data);
      shared->deleter(shared);
    } else {
      raw = model.parameter("w").data<float>();
    }
    EXPECT_EQ(step(), six(9)); // w is 4
    std::fill_n(raw, 6, 10.0f);
    EXPECT_EQ(step(), six(100)); // w is 11
    EXPECT_EQ(step(), six(121));
    std::fill_n(raw, 6, 1.0f);
    EXPECT_EQ(step(), six(1));
  }
}

// What is prepared serves all sizes of an artifact. (A call of the second one
// read a null address, and so did "evaluate" of one that prepares.)
TEST(Renewed, ServesAllSizes) {
  Maker m = stepping();
  artifact::Manifest &all = m.manifest;
  artifact::Value x = *all.findValue("x"), o = *all.findOutput("o");
  x.shape = o.shape = {2, 3};
  all.sizes = {{"six", {}, {}, {}}, {"two by three", {x, o}, {}, {}}};
  artifact::Program step = *all.findProgram("step");
  step.size = 1;
  step.arguments[0].shape = step.results[0].shape = {2, 3};
  all.programs.push_back(step);
  Model model = m.load();
  EXPECT_EQ(run(model, 3), six(3 * 4)); // w is 5
  Tensor ones = filled({2, 3}, 1, 0), made;
  Argument in[] = {{"x", &ones}};
  Destination out[] = {{"o", &made}};
  Status status = model.run("step", in, out);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(valuesOf(made), six(25)); // w is 6
  EXPECT_EQ(run(model, 1), six(36));
}

// A replay is no call, and what it writes no version tells: a capture prepares
// for its own, and what was captured once is not trusted any more.
TEST(Renewed, FollowsReplays) {
  if (tensorDevice().kind != DeviceKind::CudaEmu)
    GTEST_SKIP() << "only the fake device captures here";
  FakeDevice &device = FakeDevice::at(0);
  Stream stream = device.makeStream();
  StreamScope scope(device.device(), stream);
  for (const char *captured : {"step", "move"}) {
    Model model = stepping().load();
    int64_t loaded = model.memory().current;
    ASSERT_TRUE(model.set("w", all(3)).ok());
    Tensor x = all(1), o = all(0);
    Argument in[] = {{"x", &x}};
    Destination out[] = {{"o", &o}};
    bool gives = std::string_view(captured) == "step";
    device.beginCapture(stream);
    EXPECT_TRUE(
        model
            .run(captured, in, std::span<const Destination>(out, gives ? 1 : 0))
            .ok());
    auto graph = device.endCapture(stream);
    ASSERT_TRUE(graph) << graph.status().message();
    // No capture can have new memory.
    EXPECT_LE(model.memory().current, loaded);
    device.replay(stream, *graph); // w is 4
    if (gives)
      EXPECT_EQ(valuesOf(o), six(9));
    EXPECT_EQ(run(model, 1), six(16)); // w is 5
    ASSERT_TRUE(model.set("w", all(7)).ok());
    device.replay(stream, *graph); // w is 8
    if (gives)
      EXPECT_EQ(valuesOf(o), six(49));
    EXPECT_EQ(run(model, 1), six(64));
  }
}

// What it updates has the type that was prepared, and a name of its own.
TEST(RenewedRules, AreChecked) {
  artifact::Manifest m = stepping().manifest, other = m;
  ASSERT_TRUE(validate(m, 0).ok()) << validate(m, 0).message();
  other.programs[1].results[2].shape = {7};
  expectMessage(validate(other, 0),
                "expected 'w.mul' to have the type f32 [6] but got f32 [7]");
  other = m;
  other.programs[1].results[2].name = "w.exp";
  expectMessage(validate(other, 0), "there is no input, param or state "
                                    "'w.exp'");
  other = m;
  other.programs[0].results[0].name = "w";
  for (int i : {1, 2})
    for (artifact::Slot &slot : other.programs[i].arguments)
      if (slot.role == Role::Prepared)
        slot.name = "w";
  other.programs[1].results.pop_back();
  other.programs[1].launches.pop_back();
  expectMessage(validate(other, 0),
                "'w' is the name of a value, too, and is updated");
  other = m;
  other.programs[1].name = "forward";
  expectMessage(validate(other, 0), "'prepared' cannot stand here");
}

} // namespace
