//===- ContextTest.cpp - what a context holds, and for how long -----------===//
//
// Rows of groups C and B that the runtime answers for: versions of what lies in
// outputs, values that are not checked, donation, hooks on saved values,
// failures while running, and memory.
//
//===----------------------------------------------------------------------===//
#include "runtime/dlpack.h"
#include "tests/runtime/Maker.h"

#include <atomic>
#include <map>
#include <thread>

using namespace tandem;
using namespace tandem::runtime;
using namespace tandem::test;
using artifact::Slot;

namespace {

using Values = std::vector<float>;

/// o = 2 x, q = o * x. The backward of q reads o (the output's own storage),
/// the private value p = x + 1, and x: g(x) = cq * o + cq * p * x. It doubles p
/// in place first if `donates`, and then g(x) = cq * o + cq * 2 p * x.
Maker keeps(bool donates = false) {
  Maker m;
  m.value(Role::Input, "x", {4}).requiresGrad = true;
  m.value(Role::Output, "o", {4});
  m.value(Role::Output, "q", {4});
  m.value(Role::Output, "rows", {2, 2});
  m.program("forward");
  Slot *slot = nullptr;
  int64_t x = m.argument(Role::Input, "x", {4});
  int64_t o = m.result(Role::Output, "o", {4});
  int64_t q = m.result(Role::Output, "q", {4});
  int64_t p = m.result(Role::Saved, "p", {4});
  m.result(Role::Saved, "o.0", {4}, &slot);
  m.manifest.programs.back().buffers.pop_back(); // it has none
  slot->alias = aliasOfOutput("o");
  slot->where = "'tandem.mul' at m.mlir:4:3";
  m.launch("twice", {x}, o, 4);
  m.launch("mul", {o, x}, q, 4);
  m.launch("increment", {x}, p, 4);
  m.alias("rows", {2, 2}, aliasOfOutput("o", {View::reshape({2, 2})}));
  m.program("backward");
  int64_t cq = m.argument(Role::Cotangent, "q", {4});
  int64_t was = m.argument(Role::Saved, "o.0", {4});
  p = m.argument(Role::Saved, "p", {4});
  x = m.argument(Role::Input, "x", {4}, &slot);
  slot->where = "'tandem.sin' at m.mlir:5:3";
  int64_t g = m.result(Role::Grad, "x", {4});
  int64_t first = m.arena(16), second = m.arena(16);
  if (donates)
    m.launch("twice", {p}, p, 4);
  m.launch("mul", {cq, was}, first, 4);
  m.launch("mul", {cq, p}, second, 4);
  m.launch("mul", {second, x}, second, 4);
  m.launch("add", {first, second}, g, 4);
  return m;
}

const Values plain = {0, 2 + 2, 4 + 6, 6 + 12},
             donated = {0, 2 + 4, 4 + 12, 6 + 24};

class Contexts : public ::testing::Test {
protected:
  Model model = keeps().load();
  Tensor x = filled({4}), one = filled({4}, 1, 0), o, q, g;
  std::vector<Argument> inputs = {{"x", &x}};
  std::vector<Destination> outputs = {{"o", &o}, {"q", &q}};
  std::vector<Argument> cotangents = {{"q", &one}};
  std::vector<Destination> grads = {{"x", &g}};
  BackwardOptions retain{true, false};

  Context forward(Model &of, std::shared_ptr<const SavedHooks> hooks = {}) {
    Result<Context> context = of.forward(inputs, outputs, std::move(hooks));
    EXPECT_TRUE(context) << context.status().message();
    return context ? std::move(*context) : Context();
  }
  Status backward(Context &context, const BackwardOptions &options = {}) {
    return model.backward(context, cotangents, grads, options);
  }
};

TEST_F(Contexts, C05_ASavedOutputThatWasWritten) {
  Context context = forward(model);
  ASSERT_TRUE(backward(context, retain).ok());
  EXPECT_EQ(valuesOf(g), plain);
  uint64_t version = o.version();
  ASSERT_TRUE(o.fill(0).ok());
  expectMessage(backward(context),
                "saved 'o.0' (index 1), which 'tandem.mul' at m.mlir:4:3 "
                "saved, was written after the forward: expected version " +
                    std::to_string(version) + " but got " +
                    std::to_string(version + 1));
  EXPECT_TRUE(context.live());
}

TEST_F(Contexts, C05_EqualBytesAndRuntimeWrites) {
  Context context = forward(model);
  ASSERT_TRUE(x.copyFrom(*filled({4}).dense()).ok());
  expectMessage(backward(context),
                "input 'x' (index 3), which 'tandem.sin' at m.mlir:5:3 saved, "
                "was written after the forward");
}

TEST_F(Contexts, C06_WritesThroughViewsAndBases) {
  Tensor rows;
  outputs.push_back({"rows", &rows});
  Context context = forward(model);
  EXPECT_EQ(rows.storage(), o.storage());
  ASSERT_TRUE(rows.slice(0, 1)->fill(0).ok());
  EXPECT_FALSE(backward(context).ok());
  // The saved value is a view; its base is written.
  Tensor base = filled({8}), part = *base.slice(0, 4);
  std::vector<Argument> in = {{"x", &part}};
  Result<Context> second = model.forward(in, {});
  ASSERT_TRUE(second);
  ASSERT_TRUE(base.slice(6, 8)->fill(0).ok());
  EXPECT_FALSE(model.backward(*second, cotangents, grads).ok())
      << "versions belong to storage";
}

TEST_F(Contexts, C05_OutputsInPlacesOfTheCaller) {
  // Dense, aligned and where the model is: the saved value lies there. With
  // gaps, or not asked for: it is private, and writes do not matter.
  o = filled({4});
  Context direct = forward(model);
  ASSERT_TRUE(o.fill(0).ok());
  EXPECT_EQ(backward(direct).ok(), o.device() != testDevice());
  Tensor gaps = filled({8});
  o = *gaps.view(Sizes{4}, Sizes{2});
  Context copied = forward(model);
  EXPECT_EQ(valuesOf(o), Values({0, 2, 4, 6}));
  ASSERT_TRUE(gaps.fill(0).ok());
  ASSERT_TRUE(backward(copied).ok());
  EXPECT_EQ(valuesOf(g), plain);
  outputs = {{"q", &q}};
  Context dropped = forward(model);
  Context other = forward(model);
  g = Tensor();
  ASSERT_TRUE(backward(dropped).ok());
  EXPECT_EQ(valuesOf(g), plain);
  outputs = {};
  Context none = forward(model);
  Tensor rows;
  outputs = {{"rows", &rows}};
  Context viewed = forward(model);
  EXPECT_EQ(valuesOf(rows), Values({0, 2, 4, 6}));
  ASSERT_TRUE(rows.fill(0).ok());
  EXPECT_FALSE(backward(viewed).ok()) << "the view shares the saved storage";
  ASSERT_TRUE(backward(none).ok());
}

TEST_F(Contexts, C05_AGradientOverASavedOutput) {
  Context context = forward(model);
  g = o; // the destination is what the backward reads
  ASSERT_TRUE(backward(context).ok());
  EXPECT_EQ(valuesOf(g), plain);
}

TEST_F(Contexts, C09_DLPackAndUnchecked) {
  Context context = forward(model);
  DLManagedTensor *exported = *o.toDLPack();
  if (o.device().isHost()) // behind the runtime's back
    static_cast<float *>(exported->dl_tensor.data)[0] = 5;
  ASSERT_TRUE(backward(context, retain).ok()) << "not reported yet";
  o.markWritten();
  EXPECT_FALSE(backward(context).ok());
  exported->deleter(exported);
  EXPECT_FALSE(o.resizeStorage(0).ok()) << "it was exported";

  Maker m = keeps();
  m.manifest.programs[0].results[3].unchecked = true;
  m.manifest.programs[1].arguments[1].unchecked = true;
  model = m.load();
  o = Tensor();
  Context unchecked = forward(model);
  ASSERT_TRUE(o.fill(1).ok());
  ASSERT_TRUE(backward(unchecked, retain).ok());
  EXPECT_EQ(valuesOf(g), Values({1, 1 + 2, 1 + 6, 1 + 12}));
  x.markWritten();
  expectMessage(backward(unchecked, retain), "'tandem.sin'");
  // Not checked, but it must be there.
  Context freed = forward(model);
  ASSERT_TRUE(o.resizeStorage(0).ok());
  expectMessage(backward(freed), "saved 'o.0' (index 1): expected a tensor "
                                 "with elements but its storage has 0 bytes");
}

TEST_F(Contexts, C03_B12_DonationAndRetainGraph) {
  model = keeps(true).load();
  Context context = forward(model);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(backward(context, retain).ok());
    EXPECT_EQ(valuesOf(g), donated) << "each call sees the original";
  }
  ASSERT_TRUE(backward(context).ok());
  EXPECT_EQ(valuesOf(g), donated);
  EXPECT_FALSE(context.live());
  Context again = forward(model);
  ASSERT_TRUE(backward(again).ok()) << "the buffer is filled anew";
  EXPECT_EQ(valuesOf(g), donated);
}

TEST_F(Contexts, C04_MemoryComesBack) {
  Tensor rows;
  outputs.push_back({"rows", &rows});
  int64_t steady = 0;
  for (int i = 0; i < 1000; ++i) {
    Context context = forward(model);
    if (i % 3 == 0)
      o = rows = Tensor();
    if (i % 2 == 0) {
      ASSERT_TRUE(backward(context).ok());
    }
    if (i % 5 == 0)
      o = q = rows = g = Tensor();
    if (i == 30)
      steady = model.memory().current;
    if (i % 30 == 0 && i) {
      ASSERT_EQ(model.memory().current, steady) << i;
    }
  }
  // A used context refers to nothing of the caller.
  Context context = forward(model);
  EXPECT_GT(x.storage().use_count(), 1);
  ASSERT_TRUE(backward(context).ok());
  EXPECT_EQ(x.storage().use_count(), 1);
  rows = Tensor();
  EXPECT_EQ(o.storage().use_count(), 1);
}

TEST_F(Contexts, C14_CotangentsAndGradientsAreTheCallers) {
  Context context = forward(model);
  ASSERT_TRUE(backward(context).ok());
  EXPECT_EQ(one.storage().use_count(), 1) << "the cotangent is not held";
  EXPECT_EQ(g.storage().use_count(), 1) << "nor is the gradient";
  // Later steps compute another gradient, elsewhere.
  Tensor gradient = g;
  g = Tensor();
  Values before = valuesOf(gradient);
  setAt(x, 0, 1);
  Context next = forward(model);
  ASSERT_TRUE(backward(next).ok());
  EXPECT_NE(valuesOf(g), before);
  EXPECT_NE(g.storage(), gradient.storage());
  EXPECT_EQ(valuesOf(gradient), before);
}

TEST_F(Contexts, A17_OutputsOutliveContextAndNextForward) {
  Tensor first;
  {
    Context context = forward(model);
    first = o;
    o = q = Tensor();
  }
  Tensor x2 = filled({4}, 100);
  inputs = {{"x", &x2}};
  Context context = forward(model);
  EXPECT_EQ(valuesOf(first), Values({0, 2, 4, 6}));
}

TEST_F(Contexts, C11_ProgramUnloaded) {
  Context context = forward(model);
  model = keeps().load();
  expectMessage(backward(context), "the context belongs to another model");
  EXPECT_TRUE(context.live());
  context = Context();
}

TEST_F(Contexts, C10_C13_ManyThreads) {
  std::atomic<int> done{0}, used{0}, wrong{0};
  for (int round = 0; round < 20; ++round) {
    Context shared = forward(model);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        Tensor mine;
        std::vector<Destination> to = {{"x", &mine}};
        Status status = model.backward(shared, cotangents, to);
        (status ? done : used) += 1;
        if (status ? valuesOf(mine) != plain
                   : status.message().find("already used") == std::string::npos)
          ++wrong;
        // And a context of its own, of which others know nothing.
        Tensor own = filled({4}), out;
        std::vector<Argument> in = {{"x", &own}};
        std::vector<Destination> to2 = {{"o", &out}};
        Result<Context> context = model.forward(in, to2);
        if (!context || !model.backward(*context, cotangents, to).ok() ||
            valuesOf(mine) != plain)
          ++wrong;
        (void)t;
      });
    for (std::thread &thread : threads)
      thread.join();
  }
  EXPECT_EQ(done, 20);
  EXPECT_EQ(used, 40);
  EXPECT_EQ(wrong, 0);
}

//===----------------------------------------------------------------------===//
// Hooks
//===----------------------------------------------------------------------===//

struct Log {
  std::vector<std::string> packed, unpacked;
  std::map<std::string, Tensor> held;
  std::function<Result<Tensor>(std::string_view, const Tensor &)> give =
      [](std::string_view, const Tensor &tensor) { return tensor; };
  bool writes = false, fails = false;
};

std::shared_ptr<const SavedHooks> hooksOf(Log &log) {
  auto hooks = std::make_shared<SavedHooks>();
  hooks->pack = [&log](std::string_view name,
                       const Tensor &value) -> Result<std::shared_ptr<void>> {
    log.packed.emplace_back(name);
    if (log.fails)
      return Status::failed("the disk is full");
    if (log.writes)
      (void)Tensor(value).fill(0).ok();
    return std::static_pointer_cast<void>(std::make_shared<Tensor>(value));
  };
  hooks->unpack =
      [&log](std::string_view name,
             const std::shared_ptr<void> &packed) -> Result<Tensor> {
    log.unpacked.emplace_back(name);
    return log.give(name, *static_cast<Tensor *>(packed.get()));
  };
  return hooks;
}

TEST_F(Contexts, C12_HooksRunAtForwardAndBeforeUse) {
  for (bool donates : {false, true}) {
    model = keeps(donates).load();
    Log log;
    Context first = forward(model, hooksOf(log));
    std::vector<std::string> names = {"p", "o.0", "x"};
    EXPECT_EQ(log.packed, names);
    EXPECT_TRUE(log.unpacked.empty());
    // Another forward does not touch what a hook holds on to.
    Tensor other = filled({4}, 50);
    o = q = Tensor();
    inputs = {{"x", &other}};
    Context second = forward(model, hooksOf(log));
    ASSERT_TRUE(backward(first, retain).ok());
    EXPECT_EQ(valuesOf(g), donates ? donated : plain);
    ASSERT_TRUE(backward(first).ok());
    EXPECT_EQ(valuesOf(g), donates ? donated : plain);
    EXPECT_EQ(log.unpacked.size(), 6u);
    inputs = {{"x", &x}};
    o = q = g = Tensor();
  }
}

TEST_F(Contexts, C12_PackedValuesMayBeCopies) {
  Log log;
  log.give = [](std::string_view, const Tensor &tensor) -> Result<Tensor> {
    Tensor wide = *Tensor::zeros(DType::F32, Sizes{8});
    Tensor view = *wide.view(Sizes{4}, Sizes{2});
    if (Status status = view.copyFrom(tensor); !status)
      return status;
    return view;
  };
  Context context = forward(model, hooksOf(log));
  // The hook's handle is of what the forward read.
  EXPECT_EQ(x.storage().use_count(), x.device() == testDevice() ? 2 : 1);
  ASSERT_TRUE(backward(context).ok());
  EXPECT_EQ(valuesOf(g), plain);
  EXPECT_EQ(x.storage().use_count(), 1);
}

TEST_F(Contexts, C12_HooksThatFail) {
  Log log;
  log.writes = true;
  Result<Context> context = model.forward(inputs, outputs, hooksOf(log));
  expectMessage(context.status(), "the pack hook of 'p' wrote the value: "
                                  "expected version");
  log.writes = false;
  log.fails = true;
  context = model.forward(inputs, outputs, hooksOf(log));
  // The hook's error came with words in front of its own.
  EXPECT_EQ(context.status().message(), "the disk is full");
  auto half = std::make_shared<SavedHooks>();
  EXPECT_FALSE(model.forward(inputs, outputs, half));
  EXPECT_TRUE(model.forward(inputs, outputs)) << "the model still works";
}

TEST_F(Contexts, C12_C15_UnpackFailsWhileRunning) {
  struct Row {
    std::function<Result<Tensor>(std::string_view, const Tensor &)> give;
    const char *message;
  } rows[] = {
      {[](auto, auto &) -> Result<Tensor> { return filled({5}); },
       "cannot run 'backward': saved 'o.0' (index 1): expected f32 [4] from "
       "the unpack hook but got f32 [5]"},
      {[](auto, auto &) -> Result<Tensor> {
         return filled({4}).to(DType::F64);
       },
       "expected f32 [4] from the unpack hook but got f64 [4]"},
      {[](auto, auto &) -> Result<Tensor> { return Tensor(); },
       "but got an undefined tensor"},
      {[](auto, auto &) -> Result<Tensor> { return Status::failed("gone"); },
       "gone"},
      {[](auto, auto &) -> Result<Tensor> { throw std::runtime_error("oh"); },
       "oh"},
      {[&](auto, auto &) -> Result<Tensor> { return model.initialize(0); },
       "a hook cannot call the model that calls it"}};
  for (const Row &row : rows) {
    Log log;
    log.give = row.give;
    Context context = forward(model, hooksOf(log));
    // In its checks: intact.
    Tensor wrong = filled({3});
    std::vector<Argument> bad = {{"q", &wrong}};
    EXPECT_FALSE(model.backward(context, bad, grads).ok());
    EXPECT_TRUE(context.live());
    EXPECT_TRUE(log.unpacked.empty());
    // While running: released whole, even if it was to be retained.
    expectMessage(backward(context, retain), row.message);
    EXPECT_FALSE(context.live());
    EXPECT_FALSE(g.defined());
    expectMessage(backward(context),
                  "the context was released when an earlier backward failed: ");
    expectMessage(backward(context), row.message);
  }
  Context fresh = forward(model);
  ASSERT_TRUE(backward(fresh, retain).ok());
  ASSERT_TRUE(backward(fresh).ok());
  // The pool's contexts forget an earlier failure.
  expectMessage(backward(fresh), "already used");
}

// An error of an unpack hook, and what it threw, came with words in front.
TEST_F(Contexts, C12_AnErrorOfAnUnpackHookIsItsOwnText) {
  for (bool throws : {false, true}) {
    Log log;
    log.give = [throws](auto, auto &) -> Result<Tensor> {
      if (throws)
        throw std::runtime_error("the text");
      return Status::unsupported("the text");
    };
    Context context = forward(model, hooksOf(log));
    Status status = backward(context);
    EXPECT_EQ(status.message(), "the text");
    EXPECT_EQ(status.code(), throws ? Code::Failed : Code::Unsupported);
  }
}

} // namespace
