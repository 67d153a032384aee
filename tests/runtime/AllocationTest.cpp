//===- AllocationTest.cpp - a step allocates nothing ----------------------===//
//
// Counts every allocation of the program (CountAllocations.h). After the first
// call, training by steps, training by forward, backward and update, evaluation
// with strided inputs, and a program that mutates make none; on the host, on a
// device, and there with tensors of the host.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/CountAllocations.h"
#include "tests/runtime/FakeDevice.h"
#include "tests/runtime/Maker.h"

#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::runtime;
using namespace tandem::test;

namespace {

/// Where a test's models and tensors are.
struct Where {
  const char *name;
  bool isOnDevice, areTensors;
};

class Place : public ::testing::TestWithParam<Where> {
protected:
  Place() {
    isAllocationCounted = [] { return FakeDevice::inside == 0; };
    Device device = FakeDevice::at(0).device();
    testDevice() = GetParam().isOnDevice ? device : Device{};
    tensorDevice() = GetParam().areTensors ? device : Device{};
  }
  ~Place() override { FakeDevice::at(0).finishAll(); }
};

class Allocation : public Place {
protected:
  Model model = modelFor(regression());
  Tensor x = sampleX(), y = sampleY(), one = tensorOf({1}, {});
  Tensor loss, pred, gw, gb;
  std::vector<Argument> inputs = {{"x", &x}, {"y", &y}};
  std::vector<Destination> outputs = {{"loss", &loss}, {"pred", &pred}};
  std::vector<Argument> cotangents = {{"loss", &one}};
  std::vector<Destination> grads = {{"w", &gw}, {"b", &gb}};
  std::vector<Argument> given = {{"w", &gw}, {"b", &gb}};

  /// Returns the allocations of 100 calls of `fn` after a first one.
  template <typename Fn> int64_t countAfterFirst(Fn fn) {
    int64_t before = allocations;
    EXPECT_TRUE(fn());
    EXPECT_GT(allocations, before) << "the first call has to allocate";
    before = allocations;
    int64_t onDevice = FakeDevice::at(0).allocations;
    bool ok = true;
    for (int i = 0; i < 100; ++i)
      ok &= fn();
    int64_t count = allocations - before;
    EXPECT_TRUE(ok);
    return count + FakeDevice::at(0).allocations - onDevice;
  }
};

TEST_P(Allocation, StepsAllocateNothing) {
  std::vector<Destination> lossOnly = {{"loss", &loss}};
  EXPECT_EQ(countAfterFirst([&] { return model.step(inputs, lossOnly).ok(); }),
            0);
}

TEST_P(Allocation, C04_ForwardBackwardUpdateAllocateNothing) {
  EXPECT_EQ(countAfterFirst([&] {
              Result<Context> context = model.forward(inputs, outputs);
              return context && model.backward(*context, cotangents, grads) &&
                     model.update(given);
            }),
            0);
}

TEST_P(Allocation, DroppedContextsAndStridedInputsAllocateNothing) {
  Tensor columns = filled({3, 8});
  x = *columns.view(std::vector<int64_t>{8, 3}, std::vector<int64_t>{1, 8});
  Tensor strided = filled({16});
  pred = *strided.view(std::vector<int64_t>{8}, std::vector<int64_t>{2});
  EXPECT_EQ(
      countAfterFirst([&] { return model.forward(inputs, outputs).ok(); }), 0);
}

/// Views of inputs and outputs, saved outputs, undefined cotangents, donation,
/// changed handles: all of one model.
Maker mutating() {
  Maker m;
  artifact::Slot *slot = nullptr;
  m.value(Role::Input, "x", {2, 3});
  m.value(Role::Input, "y", {6}).requiresGrad = true;
  m.value(Role::Output, "o", {6});
  m.value(Role::Output, "q", {6});
  m.value(Role::Output, "t", {3, 2});
  m.value(Role::Output, "rows", {3, 2});
  m.program("forward");
  int64_t inX = m.argument(Role::Input, "x", {2, 3}, &slot);
  slot->metadata = aliasOf("x", {View::permute({1, 0}), View::permute({1, 0})});
  int64_t inY = m.argument(Role::Input, "y", {6});
  int64_t o = m.result(Role::Output, "o", {6});
  int64_t q = m.result(Role::Output, "q", {6});
  int64_t p = m.result(Role::Saved, "p", {6});
  m.result(Role::Saved, "o.0", {6}, &slot);
  m.manifest.programs.back().buffers.pop_back();
  slot->alias = aliasOfOutput("o");
  m.update("x", {2, 3});
  m.launch("mul", {inX, inY}, o, 6);
  m.launch("mul", {inY, inY}, q, 6);
  m.launch("copy", {inX}, p, 6);
  m.launch("increment", {inX}, inX, 6);
  m.alias("t", {3, 2}, aliasOf("x", {View::permute({1, 0})}));
  m.alias("rows", {3, 2}, aliasOfOutput("o", {View::reshape({3, 2})}));
  m.program("backward");
  int64_t co = m.argument(Role::Cotangent, "o", {6});
  int64_t cq = m.argument(Role::Cotangent, "q", {6});
  p = m.argument(Role::Saved, "p", {6});
  int64_t was = m.argument(Role::Saved, "o.0", {6});
  int64_t g = m.result(Role::Grad, "y", {6});
  int64_t part = m.arena(24);
  m.launch("add", {p, was}, p, 6).needs = {{"o"}};
  m.launch("mul", {p, co}, part, 6).needs = {{"o"}};
  artifact::Launch &sum = m.launch("add", {part, cq}, g, 6);
  sum.choices.resize(3);
  sum.choices[0].when = {{"o"}, {"q"}};
  sum.choices[1].when = {{"o"}};
  sum.choices[1].copy = 0;
  sum.choices[2].when = {{"q"}};
  sum.choices[2].copy = 1;
  m.manifest.programs.back().results[0].needs = {{"o", "q"}};
  return m;
}

TEST_P(Allocation, C04_MutationAllocatesNothing) {
  Model mutates = mutating().load();
  Tensor a = filled({2, 3}), b = filled({6}), ct = filled({6});
  Tensor o, q, t, rows, g;
  std::vector<Argument> in = {{"x", &a}, {"y", &b}};
  std::vector<Destination> out = {
      {"o", &o}, {"q", &q}, {"t", &t}, {"rows", &rows}};
  std::vector<Argument> one = {{"o", &ct}}, other = {{"q", &ct}};
  std::vector<Destination> to = {{"y", &g}};
  EXPECT_EQ(countAfterFirst([&] {
              Result<Context> context = mutates.forward(in, out);
              return context &&
                     mutates.backward(*context, one, to, {true, false}) &&
                     mutates.backward(*context, other, to);
            }),
            0);
}

TEST_P(Allocation, PreparedValuesAllocateNothing) {
  Maker m;
  m.value(Role::Input, "x", {6});
  m.value(Role::Param, "w", {6});
  m.value(Role::Output, "o", {6});
  m.program("prepare");
  int64_t w = m.argument(Role::Param, "w", {6});
  m.launch("mul", {w, w}, m.result(Role::Prepared, "w.mul", {6}), 6);
  m.program("evaluate");
  int64_t in = m.argument(Role::Input, "x", {6});
  int64_t scale = m.argument(Role::Prepared, "w.mul", {6});
  m.launch("mul", {in, scale}, m.result(Role::Output, "o", {6}), 6);
  Model prepares = m.load();
  Tensor a = filled({6}), o = filled({6}), other = filled({6}, 1);
  std::vector<Argument> given = {{"x", &a}};
  std::vector<Destination> to = {{"o", &o}};
  EXPECT_EQ(countAfterFirst([&] {
              return prepares.set("w", other) &&
                     prepares.run("evaluate", given, to) &&
                     prepares.run("evaluate", given, to);
            }),
            0);
}

INSTANTIATE_TEST_SUITE_P(
    On, Allocation,
    ::testing::Values(Where{"Host", false, false}, Where{"Device", true, true},
                      Where{"DeviceFromHost", true, false}),
    [](const auto &info) { return info.param.name; });

} // namespace
