//===- DeviceThreadsTest.cpp - nodes of devices on threads of their own ---===//
//
// Row N31 and what of N18, N26, N28 and N29 belongs to the threads of devices,
// through the public API, on the driver emulator with three devices. A test
// that waits for itself has failed.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/graph/ApiNodes.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

using namespace tdm;
using namespace tdm::testing;

namespace {

using Body = std::function<void()>;

class DeviceThreads : public ::testing::Test {
protected:
  static void SetUpTestSuite() {
    setenv("TANDEM_CUDA_EMULATOR", TANDEM_EMULATOR, 1);
    setenv("TANDEM_EMULATOR_DEVICES", "3", 1);
  }
  void TearDown() override { tdm_set_device_threads(1); }
};

const char *const devices[] = {"cpu", "cuda-emu:0", "cuda-emu:1", "cuda-emu:2"};

/// `x` on another device, or a copy; the gradient goes the other way after
/// `body` ran.
Tensor moved(const Tensor &x, const std::string &to, Body body = {},
             const std::string &name = "move") {
  std::string from = x.device();
  return call(
      {name,
       [to](Node &, const TensorList &given, TensorList &outputs) {
         outputs[0] = given[0].copyTo(to.c_str());
       },
       [from, body](Node &, const TensorList &gradients, TensorList &results) {
         if (body)
           body();
         results[0] = gradients[0].copyTo(from.c_str());
       }},
      {x})[0];
}

Tensor leafOn(const char *device, const Floats &values) {
  return numbers(values).copyTo(device).setRequiresGrad(true);
}

Floats gradientOn(const Tensor &of) {
  Tensor found = gradientOf(of);
  return found.defined() ? valuesOf(found.copyTo("cpu")) : Floats();
}

/// Where things ran.
class Places {
public:
  Body noting(std::string what) {
    return [this, what = std::move(what)] { note(what); };
  }
  void note(const std::string &what) {
    std::lock_guard lock(mutex);
    seen[what].push_back(std::this_thread::get_id());
  }
  /// The one thread that `what` ran on.
  std::thread::id of(const std::string &what) {
    std::lock_guard lock(mutex);
    const std::vector<std::thread::id> &all = seen[what];
    EXPECT_FALSE(all.empty()) << what;
    for (std::thread::id one : all)
      EXPECT_EQ(one, all.front()) << what;
    return all.empty() ? std::thread::id() : all.front();
  }

private:
  std::mutex mutex;
  std::map<std::string, std::vector<std::thread::id>> seen;
};

/// The sum of its inputs, of one element, on the host.
Tensor sumOf(const TensorList &inputs) {
  std::vector<std::string> from;
  for (const Tensor &input : inputs)
    from.push_back(input.device());
  return call(
      {"sum",
       [](Node &, const TensorList &given, TensorList &outputs) {
         outputs[0] = numbers(Floats{0});
         for (const Tensor &one : given)
           outputs[0] = add(outputs[0], one.copyTo("cpu"));
       },
       [from](Node &, const TensorList &gradients, TensorList &results) {
         for (size_t i = 0; i < results.size(); ++i)
           results[i] = gradients[0].copyTo(from[i].c_str());
       }},
      inputs)[0];
}

} // namespace

TEST_F(DeviceThreads, N31_NodesOfEachDeviceRunOnItsThread) {
  Places places;
  Tensor w = leaf({1, 2}), v = leafOn(devices[2], {1, 2});
  addHook(w, [&](Tensor &) { places.note("host leaf"); });
  addHook(v, [&](Tensor &) { places.note("leaf of 1"); });
  Tensor a = moved(w, devices[1], places.noting("0"));
  Tensor b = moved(a, devices[2], places.noting("1"));
  Tensor y = moved(add(b, v), devices[0], places.noting("host"));
  auto run = [&] { backward({y}, {numbers({1, 3})}, TDM_RETAIN_GRAPH); };
  for (int i = 0; i < 5; ++i)
    run();
  EXPECT_EQ(gradientOn(w), (Floats{5, 15}));
  EXPECT_EQ(gradientOn(v), (Floats{5, 15}));
  std::thread::id own = std::this_thread::get_id();
  EXPECT_EQ(places.of("host"), own);
  EXPECT_EQ(places.of("host leaf"), own);
  EXPECT_NE(places.of("0"), own);
  EXPECT_NE(places.of("1"), own);
  EXPECT_NE(places.of("0"), places.of("1"));
  EXPECT_EQ(places.of("leaf of 1"), places.of("1"));
  // Another caller, the same threads.
  std::thread([&] {
    Places others;
    Tensor z = moved(moved(leaf(Floats{1}), devices[1], others.noting("0")),
                     devices[0], others.noting("host"));
    backward({z}, {numbers(Floats{1})});
    EXPECT_EQ(others.of("0"), places.of("0"));
    EXPECT_EQ(others.of("host"), std::this_thread::get_id());
  }).join();
}

TEST_F(DeviceThreads, N31_OneThreadModeAndGraphsOfOneDeviceStayWithTheCaller) {
  std::thread::id own = std::this_thread::get_id();
  Places places;
  EXPECT_EQ(tdm_set_device_threads(0), 1);
  Tensor w = leaf(Floats{1});
  Tensor y = moved(moved(w, devices[1], places.noting("0")), devices[2],
                   places.noting("1"));
  backward({y}, {numbers(Floats{1}).copyTo(devices[2])});
  EXPECT_EQ(places.of("0"), own);
  EXPECT_EQ(places.of("1"), own);
  EXPECT_EQ(tdm_set_device_threads(1), 0);
  Tensor v = leafOn(devices[1], {1});
  Tensor z = moved(moved(v, devices[1], places.noting("alone")), devices[1],
                   places.noting("alone"));
  backward({z}, {numbers(Floats{1}).copyTo(devices[1])});
  EXPECT_EQ(places.of("alone"), own);
}

TEST_F(DeviceThreads, N31_ThreadsSeeTheCallersModes) {
  std::vector<int> grad, anomaly; // of the device's thread alone
  auto look = [&] {
    grad.push_back(tdm_grad_mode());
    anomaly.push_back(tdm_set_anomaly_mode(TDM_ANOMALY_OFF));
    tdm_set_grad_mode(!grad.back()); // is not seen by the next
  };
  Tensor w = leaf(Floats{1});
  Tensor y =
      moved(moved(moved(w, devices[1], look), devices[1], look), devices[0]);
  backward({y}, {numbers(Floats{1})}, TDM_RETAIN_GRAPH);
  tdm_set_anomaly_mode(TDM_ANOMALY_NAN);
  backward({y}, {numbers(Floats{1})}, TDM_CREATE_GRAPH);
  EXPECT_EQ(tdm_set_anomaly_mode(TDM_ANOMALY_OFF), TDM_ANOMALY_NAN);
  EXPECT_EQ(tdm_grad_mode(), 1);
  EXPECT_EQ(grad, (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(anomaly, (std::vector<int>{TDM_ANOMALY_OFF, TDM_ANOMALY_OFF,
                                       TDM_ANOMALY_NAN, TDM_ANOMALY_NAN}));
}

TEST_F(DeviceThreads, S12_N31_CallbacksRunOnTheCallersThreadAfterAll) {
  std::thread::id own = std::this_thread::get_id(), called;
  std::atomic<bool> isDone{false};
  Tensor w = leaf(Floats{1});
  Tensor slow = moved(w, devices[2], [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    isDone = true;
  });
  Tensor quick = moved(w, devices[1], [&] {
    whenDone([&] {
      EXPECT_TRUE(isDone);
      called = std::this_thread::get_id();
    });
  });
  backward({sumOf({quick, slow})}, {numbers(Floats{1})});
  EXPECT_EQ(called, own);
}

// What comes to one input is added in the order of one thread, whichever device
// was faster: each of these orders gives another number.
TEST_F(DeviceThreads, G09_N31_SumsDoNotDependOnWhichDeviceIsFaster) {
  const float parts[] = {1, 1e8f, -1e8f, 3, 1e-3f, 7e7f, -7e7f, 0.3f};
  int round = 0;
  Tensor w = leaf(Floats{0});
  TensorList all;
  for (int i = 0; i < 8; ++i) {
    Tensor x = call(
        {"part",
         [](Node &, const TensorList &given, TensorList &outputs) {
           outputs[0] = given[0].copyTo("cpu");
         },
         [part = parts[i]](Node &, const TensorList &, TensorList &results) {
           results[0] = numbers(Floats{part});
         }},
        {w})[0];
    all.push_back(moved(x, devices[1 + i % 3], [&round, i] {
      std::this_thread::sleep_for(
          std::chrono::microseconds((i * 7 + round * 5) % 11 * 100));
    }));
  }
  Tensor y = sumOf(all);
  tdm_set_device_threads(0);
  Floats expected =
      valuesOf(grad({y}, {w}, {numbers(Floats{1})}, TDM_RETAIN_GRAPH)[0]);
  tdm_set_device_threads(1);
  for (; round < 20; ++round)
    EXPECT_EQ(
        valuesOf(grad({y}, {w}, {numbers(Floats{1})}, TDM_RETAIN_GRAPH)[0]),
        expected);
}

namespace {

/// A node on a device, whose backward runs the graph of the next depth, which
/// has nodes of the host and of two devices.
Tensor nested(const Tensor &x, int depth, std::atomic<int> &deepest,
              const std::function<void(int)> &bottom) {
  return moved(x, devices[1 + depth % 2], [&deepest, bottom, depth] {
    deepest = std::max(deepest.load(), depth);
    bottom(depth);
    if (depth == 0)
      return;
    Tensor v = leaf(Floats{1});
    Tensor inner;
    {
      GradMode on(true);
      inner = moved(moved(nested(v, depth - 1, deepest, bottom), devices[3]),
                    devices[0]);
    }
    backward({inner}, {numbers(Floats{2})});
    check(gradient(v) == Floats{2} ? TDM_OK
                                   : tdm_fail(TDM_FAILED, "a wrong gradient"));
  });
}

} // namespace

TEST_F(DeviceThreads, N29_N31_BackwardsNestOnDeviceThreads) {
  std::atomic<int> deepest{0};
  Tensor w = leaf(Floats{1});
  Tensor y = moved(nested(w, 600, deepest, [](int) {}), devices[0]);
  backward({y}, {numbers(Floats{1})});
  EXPECT_EQ(deepest, 600);
  EXPECT_EQ(gradient(w), (Floats{1}));
}

// Each device's thread waits for the other's, which waits for it.
TEST_F(DeviceThreads, N29_N31_BackwardsThatNestTheOtherWayRoundDoNotWait) {
  std::vector<std::thread> callers;
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        std::atomic<int> deepest{0};
        Tensor w = leaf(Floats{1});
        Tensor y = moved(nested(w, 3 + t % 2, deepest, [](int) {}), devices[0]);
        backward({y}, {numbers(Floats{1})});
        right += gradient(w) == Floats{1};
      }
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(right, 80);
}

TEST_F(DeviceThreads, N26_N29_AnErrorDrainsAllAndTheEngineGoesOn) {
  std::atomic<int> deepest{0}, after{0};
  for (int depth : {0, 1, 4}) {
    Tensor w = leaf(Floats{1});
    Tensor x = moved(w, devices[3], [&] { ++after; });
    Tensor wrong = nested(x, 4, deepest, [&](int now) {
      if (now == depth)
        throw std::runtime_error("wrong at depth " + std::to_string(now));
    });
    Tensor y = sumOf({moved(wrong, devices[0]), moved(wrong, devices[3])});
    EXPECT_EQ(messageOf([&] { backward({y}, {numbers(Floats{1})}); }),
              "wrong at depth " + std::to_string(depth));
    EXPECT_EQ(gradient(w), Floats());
    Tensor right = moved(moved(w, devices[1]), devices[0]);
    backward({right}, {numbers(Floats{1})});
    EXPECT_EQ(gradient(w), (Floats{1}));
  }
  EXPECT_EQ(after, 0);
}

// The outer backward fails on one device while a backward inside of it runs on
// another: that one ends, too.
TEST_F(DeviceThreads, N29_N31_AnOuterErrorStopsTheInner) {
  std::atomic<bool> isInside{false};
  std::atomic<int> ran{0};
  std::string inner;
  Tensor w = leaf(Floats{1});
  Tensor waits = moved(w, devices[1], [&] {
    GradMode on(true);
    Tensor chain = leaf(Floats{1});
    for (int i = 0; i < 2000; ++i)
      chain = moved(chain, devices[0], [&] {
        isInside = true;
        ++ran;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      });
    inner = messageOf([&] { backward({chain}, {numbers(Floats{1})}); });
  });
  Tensor fails = moved(w, devices[2], [&] {
    while (!isInside)
      std::this_thread::yield();
    throw std::runtime_error("the outer one");
  });
  Tensor y = sumOf({waits, fails});
  EXPECT_EQ(messageOf([&] { backward({y}, {numbers(Floats{1})}); }),
            "the outer one");
  EXPECT_LT(ran, 2000);
  expectMessage(inner, "the outer one");
}

TEST_F(DeviceThreads, N18_N31_HooksAreAddedAndRemovedFromOtherThreads) {
  std::atomic<int> calls{0};
  Tensor w = leaf(Floats{1}), v = leafOn(devices[2], {1});
  for (int i = 0; i < 20; ++i) {
    std::vector<Hook> mine;
    for (int j = 0; j < 4; ++j)
      mine.push_back(addHook(w, [&](Tensor &) { ++calls; }));
    Tensor a = moved(w, devices[1], [&] {
      for (Hook &hook : mine)
        EXPECT_TRUE(hook.remove());
    });
    Tensor b = moved(w, devices[2],
                     [&] { addHook(v, [&](Tensor &) { ++calls; }).remove(); });
    backward({sumOf({a, b, v, w})}, {numbers(Floats{1})});
  }
  EXPECT_EQ(calls, 0); // w waits for both
  EXPECT_EQ(gradient(w), (Floats{60}));
}

TEST_F(DeviceThreads, N28_ANaNOnADeviceNamesItsNode) {
  tdm_set_anomaly_mode(TDM_ANOMALY_NAN);
  tdm_set_location("model.cpp:7");
  Tensor w = leaf(Floats{1});
  Tensor bad = call({"bad",
                     [](Node &, const TensorList &given, TensorList &outputs) {
                       outputs[0] = given[0].copyTo(devices[1]);
                     },
                     [](Node &, const TensorList &, TensorList &results) {
                       results[0] =
                           numbers({std::numeric_limits<float>::quiet_NaN()});
                     }},
                    {w})[0];
  std::string message = messageOf(
      [&] { backward({moved(bad, devices[0])}, {numbers(Floats{1})}); });
  tdm_set_anomaly_mode(TDM_ANOMALY_OFF);
  tdm_set_location(nullptr);
  expectMessage(message, "'bad'");
  expectMessage(message, "model.cpp:7");
}

TEST_F(DeviceThreads, N23_N31_GradGivesTheSameAsOnOneThread) {
  Tensor w = leaf({1, 2}), v = leafOn(devices[2], {3, 4}), u = leaf({1, 1});
  auto make = [&] {
    Tensor a = moved(w, devices[2]);
    return moved(add(a, v), devices[0]);
  };
  for (int threads : {0, 1}) {
    tdm_set_device_threads(threads);
    std::vector<Tensor> got =
        grad({make()}, {w, v, u}, {numbers({5, 6})}, TDM_UNUSED_ZEROS);
    EXPECT_EQ(valuesOf(got[0]), (Floats{5, 6}));
    EXPECT_EQ(valuesOf(got[1].copyTo("cpu")), (Floats{5, 6}));
    EXPECT_EQ(valuesOf(got[2]), (Floats{0, 0}));
  }
  EXPECT_EQ(gradient(w), Floats());
}

// The thread of a device does not wait for itself.
TEST_F(DeviceThreads, N31_AHookMayEndTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        SetUpTestSuite();
        Tensor y = moved(moved(leaf(Floats{1}), devices[1], [] { exit(7); }),
                         devices[0]);
        backward({y}, {numbers(Floats{1})});
      },
      ::testing::ExitedWithCode(7), "");
}
