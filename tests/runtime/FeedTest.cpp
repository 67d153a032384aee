//===- FeedTest.cpp - steps on the batches of a callback ------------------===//
//
// tdm_train beside tdm_step on the same batches; on the fake device nothing
// waits that was not told to, so that a batch that is written or read too early
// shows.
//
//===----------------------------------------------------------------------===//
#include "runtime/c_api/CApi.h"
#include "runtime/graph.h"
#include "tests/runtime/FakeDevice.h"
#include "tests/runtime/TestModel.h"

#include <cmath>
#include <gtest/gtest.h>
#include <thread>

using namespace tandem;
using namespace tandem::test;

namespace {

/// The numbers of batch `batch`.
std::vector<float> rows(int64_t batch, int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(
        std::sin(1.7 * static_cast<double>(i + 31 * batch))));
  return values;
}

struct Given {
  int64_t end = 1 << 30;     ///< there are so many batches
  int64_t stopAfter = -1;    ///< the batch behind whose step it stops
  int64_t fails = -1;        ///< the batch that cannot be made
  bool givesTensors = false; ///< of its own
  bool givesWrongShape = false;
  std::vector<float> losses;
  std::vector<int64_t> made, stepped;
  tdm_tensor *loss = nullptr;
  std::thread::id maker;
};

tdm_status next(void *user, int64_t batch, const tdm_argument *inputs,
                size_t count, int *isEnd) {
  auto &given = *static_cast<Given *>(user);
  given.made.push_back(batch);
  given.maker = std::this_thread::get_id();
  EXPECT_EQ(count, 2u);
  if (batch == given.fails)
    return tdm_fail(TDM_UNSUPPORTED, "the well is dry");
  *isEnd = batch == given.end;
  for (size_t i = 0; i < count && !*isEnd; ++i) {
    EXPECT_STREQ(inputs[i].name, i ? "y" : "x");
    EXPECT_STREQ(tdm_tensor_device(inputs[i].tensor), "cpu");
    int64_t elements = tdm_tensor_elements(inputs[i].tensor);
    EXPECT_EQ(elements, i ? 8 : 24);
    std::vector<float> values = rows(batch, elements);
    if (given.givesTensors || given.givesWrongShape) {
      tdm_tensor *own = nullptr;
      int64_t shape[] = {8, given.givesWrongShape ? 4 : 3};
      EXPECT_EQ(tdm_tensor_zeros(TDM_F32, i ? 1 : 2, shape, &own), TDM_OK);
      if (!given.givesWrongShape) {
        EXPECT_EQ(tdm_tensor_write(own, values.data(), 4 * values.size()),
                  TDM_OK);
      }
      EXPECT_EQ(tdm_tensor_assign(inputs[i].tensor, own), TDM_OK);
      tdm_tensor_free(own);
      continue;
    }
    EXPECT_EQ(
        tdm_tensor_write(inputs[i].tensor, values.data(), 4 * values.size()),
        TDM_OK);
  }
  return TDM_OK;
}

tdm_status stepped(void *user, int64_t batch, int *isEnd) {
  auto &given = *static_cast<Given *>(user);
  given.stepped.push_back(batch);
  float loss = 0;
  EXPECT_EQ(tdm_tensor_read(given.loss, &loss, sizeof loss), TDM_OK);
  given.losses.push_back(loss);
  *isEnd = batch == given.stopAfter;
  return TDM_OK;
}

class Feeds : public ::testing::Test {
protected:
  Feeds() { EXPECT_EQ(tdm_tensor_empty(&given.loss), TDM_OK); }
  ~Feeds() override { tdm_tensor_free(given.loss); }

  tdm_status train(int64_t most = 0, const char *program = nullptr) {
    tdm_feed feed = TDM_FEED_INIT;
    feed.user = &given;
    feed.next = next;
    feed.stepped = stepped;
    feed.steps = most;
    tdm_argument outputs[] = {{"loss", given.loss}};
    return tdm_train(&model, program, &feed, outputs, 1, &steps);
  }
  /// The losses of so many steps by themselves.
  static std::vector<float> alone(int64_t count) {
    tdm_model model{modelFor(regression())};
    std::vector<float> losses;
    for (int64_t batch = 0; batch < count; ++batch) {
      runtime::Tensor x = tensorOf(rows(batch, 24), {8, 3});
      runtime::Tensor y = tensorOf(rows(batch, 8), {8}), loss;
      runtime::Argument inputs[] = {{"x", &x}, {"y", &y}};
      runtime::Destination outputs[] = {{"loss", &loss}};
      EXPECT_TRUE(model.model.step(inputs, outputs).ok());
      losses.push_back(valuesOf(loss)[0]);
    }
    return losses;
  }

  tdm_model model{modelFor(regression())};
  Given given;
  int64_t steps = -1;
};

TEST_F(Feeds, AreThoseOfSteps) {
  ASSERT_EQ(train(50), TDM_OK) << tdm_last_error();
  EXPECT_EQ(steps, 50);
  EXPECT_EQ(given.losses, alone(50));
  EXPECT_EQ(given.made.size(), 50u) << "a batch that nobody wanted";
  EXPECT_NE(given.maker, std::this_thread::get_id());
}

// Without outputs the host waits for no step, and batches are still not written
// before they were read.
TEST_F(Feeds, AreNotWrittenBeforeTheyWereRead) {
  tdm_feed feed = TDM_FEED_INIT;
  feed.user = &given;
  feed.next = next;
  feed.steps = 20;
  ASSERT_EQ(tdm_train(&model, nullptr, &feed, nullptr, 0, nullptr), TDM_OK);
  tdm_model other{modelFor(regression())};
  for (int64_t batch = 0; batch < 20; ++batch) {
    runtime::Tensor x = tensorOf(rows(batch, 24), {8, 3});
    runtime::Tensor y = tensorOf(rows(batch, 8), {8});
    runtime::Argument inputs[] = {{"x", &x}, {"y", &y}};
    ASSERT_TRUE(other.model.step(inputs, {}).ok());
  }
  EXPECT_EQ(valuesOf(*model.model.get("w")->onHost()),
            valuesOf(*other.model.get("w")->onHost()));
}

TEST_F(Feeds, EndWithTheBatchesOrWhereTheCallerSays) {
  given.end = 7;
  ASSERT_EQ(train(), TDM_OK) << tdm_last_error();
  EXPECT_EQ(steps, 7);
  EXPECT_EQ(given.losses, alone(7));
  EXPECT_EQ(given.stepped, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6}));
  given.end = 0;
  ASSERT_EQ(train(), TDM_OK);
  EXPECT_EQ(steps, 0);
  given.end = 100;
  given.stopAfter = 3;
  ASSERT_EQ(train(), TDM_OK);
  EXPECT_EQ(steps, 4);
}

TEST_F(Feeds, TakeTensorsOfTheCallers) {
  given.givesTensors = true;
  ASSERT_EQ(train(20), TDM_OK) << tdm_last_error();
  EXPECT_EQ(given.losses, alone(20));
  given.givesTensors = false;
  given.givesWrongShape = true;
  EXPECT_EQ(train(20), TDM_USAGE);
  EXPECT_STREQ(tdm_last_error(), "batch 0, input 'x': expected f32 [8, 3] but "
                                 "got f32 [8, 4]");
  EXPECT_EQ(steps, 0);
}

tdm_status nextLabels(void *, int64_t batch, const tdm_argument *inputs, size_t,
                      int *) {
  std::vector<float> x = rows(batch, 24);
  std::vector<int32_t> y(8, 1);
  y[3] = batch == 2 ? 10 : 9;
  EXPECT_EQ(tdm_tensor_write(inputs[0].tensor, x.data(), 4 * x.size()), TDM_OK);
  return tdm_tensor_write(inputs[1].tensor, y.data(), 4 * y.size());
}

// Labels beyond their classes went to a device that nobody asks what it has.
TEST_F(Feeds, LabelsAreChecked) {
  tdm_model labelled{modelFor(labelledRegression(artifact::DType::I32))};
  tdm_feed feed = TDM_FEED_INIT;
  feed.next = nextLabels;
  EXPECT_EQ(tdm_train(&labelled, nullptr, &feed, nullptr, 0, &steps),
            TDM_USAGE);
  EXPECT_EQ(steps, 2);
  std::string said = tdm_last_error();
  EXPECT_NE(said.find("input 'y'"), std::string::npos) << said;
  EXPECT_NE(said.find("but row 3 is 10"), std::string::npos) << said;
}

// An error of the callback is that of the call; what was done before stays.
TEST_F(Feeds, SayWhatTheCallbackSays) {
  given.fails = 5;
  EXPECT_EQ(train(), TDM_UNSUPPORTED);
  EXPECT_STREQ(tdm_last_error(), "the well is dry");
  EXPECT_EQ(steps, 5);
  EXPECT_EQ(given.losses, alone(5));
}

TEST_F(Feeds, RefuseWhatIsWrong) {
  EXPECT_EQ(train(1, "stride"), TDM_USAGE);
  EXPECT_STREQ(tdm_last_error(), "the artifact has no program 'stride'");
  EXPECT_EQ(train(-1), TDM_USAGE);
  tdm_feed feed = TDM_FEED_INIT;
  EXPECT_EQ(tdm_train(&model, nullptr, &feed, nullptr, 0, nullptr), TDM_USAGE);
  EXPECT_STREQ(tdm_last_error(),
               "expected a callback for batches but got null");
  feed.next = next;
  feed.struct_size = 3;
  EXPECT_EQ(tdm_train(&model, nullptr, &feed, nullptr, 0, nullptr), TDM_USAGE);
  EXPECT_EQ(tdm_train(&model, nullptr, nullptr, nullptr, 0, nullptr),
            TDM_USAGE);
  EXPECT_EQ(tdm_train(nullptr, nullptr, &feed, nullptr, 0, nullptr), TDM_USAGE);
  EXPECT_TRUE(given.made.empty());
}

} // namespace
