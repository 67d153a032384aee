//===- RanksOfThreadsTest.cpp - the C API's models over threads -----------===//
#include "runtime/comm.hpp"
#include "tests/runtime/cli/RankedClassifier.h"

#include <gtest/gtest.h>
#include <thread>

namespace tandem::commands::test {
namespace {

class RanksOfThreads : public ::testing::Test {
protected:
  std::string write(const std::string &name,
                    const artifact::Manifest &manifest) const {
    auto object = io::readFile(TANDEM_CLASSIFIER_OBJECT);
    EXPECT_TRUE(object.ok());
    artifact::ArtifactWriter writer;
    writer.setObject(std::string(io::asText(*object)));
    writer.setManifest(manifest);
    Status status = writer.write(folder / name);
    EXPECT_TRUE(status.ok()) << status.message();
    return folder / name;
  }

  /// Does five steps with the rows of this rank; returns the loss of the last.
  static float train(tdm::Model &model, int rank, int ranks) {
    Array x = features(20), y = labels(20);
    int count = 4 / ranks;
    std::vector<float> rows(size_t(count) * 3);
    std::vector<int32_t> classes(static_cast<size_t>(count));
    float loss = 0;
    for (int step = 0; step < 5; ++step) {
      for (int i = 0; i < count; ++i) {
        int row = step * 4 + rank * count + i;
        classes[size_t(i)] = row % 2;
        std::memcpy(&rows[size_t(i) * 3], x.bytes.data() + row * 12, 12);
      }
      auto input = tdm::Tensor::wrap(rows.data(), TDM_F32, {count, 3});
      auto target = tdm::Tensor::wrap(classes.data(), TDM_I32, {count});
      auto result = tdm::Tensor::wrap(&loss, TDM_F32, {});
      model.step({{"x", input}, {"labels", target}}, {{"loss", result}});
    }
    return loss;
  }

  io::test::Folder folder;
};

TEST_F(RanksOfThreads, X18_trainSaveAndLoadWholeValues) {
  std::string alone = write("one.tdm", classifierManifest());
  tdm::Model one(alone, 1, 7);
  float expected = train(one, 0, 1);
  one.save(folder / "one.safetensors");
  for (int ranks : {2, 4}) {
    std::string path = write("many.tdm", trained(ranks));
    std::string saved = folder / "many.safetensors";
    auto comms = tdm::comm::loopback(static_cast<uint32_t>(ranks));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank, mine = comms[size_t(rank)]]() mutable {
        tdm::Model model(path, 1, 7);
        tdm::comm::use(model, mine);
        EXPECT_EQ(train(model, rank, ranks), expected);
        model.save(saved);
        mine.barrier();
        model.load(folder / "one.safetensors");
        mine.barrier();
      });
    comms.clear();
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_EQ(io::test::load(saved),
              io::test::load(folder / "one.safetensors"));
  }
}

TEST_F(RanksOfThreads, X19_predictTakesAndGivesWholeValues) {
  std::string path = write("p.tdm", predicted({{"data", 2}, {"tensor", 2}}));
  auto comms = tdm::comm::loopback(4);
  std::vector<std::vector<float>> outputs(4);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 4; ++rank)
    threads.emplace_back([&, rank, mine = comms[size_t(rank)]] {
      tdm::Model model(path);
      tdm::comm::use(model, mine);
      Array x = features(21);
      auto input = tdm::Tensor::wrap(x.bytes.data(), TDM_F32, {21, 3});
      outputs[size_t(rank)].resize(21 * 4);
      auto result =
          tdm::Tensor::wrap(outputs[size_t(rank)].data(), TDM_F32, {21, 4});
      model.predict({{"x", input}}, {{"logits", result}});
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::vector<float> &output : outputs)
    EXPECT_EQ(output, outputs[0]);
  // Column c is the product with row c of the whole parameter.
  EXPECT_NE(outputs[0][0], outputs[0][2]);
}

TEST_F(RanksOfThreads, ranksAreThereBeforeACall) {
  tdm::Model model(write("many.tdm", trained(2)));
  tdm_tensor *tensor = nullptr;
  EXPECT_EQ(tdm_get(model.get(), "w", &tensor), TDM_USAGE);
  EXPECT_STREQ(tdm_last_error(),
               "the artifact is for 2 ranks together, of the mesh data=2: "
               "expected a communicator of as many");
  auto three = tdm::comm::loopback(3);
  EXPECT_EQ(tdm_model_set_communicator(model.get(), three[0].get()), TDM_USAGE);
  EXPECT_STREQ(tdm_last_error(),
               "expected 2 ranks, for the mesh data=2, but got 3");
  EXPECT_EQ(tdm_model_set_communicator(nullptr, three[0].get()), TDM_USAGE);
  EXPECT_EQ(tdm_model_set_communicator(model.get(), nullptr), TDM_USAGE);
}

} // namespace
} // namespace tandem::commands::test
