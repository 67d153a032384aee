//===- RanksOfThreadsTest.cpp - the C API's models over threads -----------===//
#include "runtime/comm.hpp"
#include "runtime/io/TensorFiles.h"
#include "tests/runtime/cli/RankedClassifier.h"

#include <atomic>
#include <gtest/gtest.h>
#include <map>
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

TEST_F(RanksOfThreads, savedFilesHaveValuesOfOneMomentBesideOtherThreads) {
  tdm::Model model(write("one.tdm", classifierManifest()), 1, 7);
  auto read = [](const std::string &path) {
    std::map<std::string, std::vector<std::byte>> all;
    auto files = io::TensorFiles::open(path);
    EXPECT_TRUE(files.ok()) << files.status().message();
    for (const auto &[name, entry] : files->entries())
      all[name] = files->read(name)->bytes;
    return all;
  };
  std::vector<decltype(read(""))> seeds;
  for (uint64_t seed : {0u, 1u}) {
    model.initialize(seed);
    model.save(folder / "of-seed.safetensors");
    seeds.push_back(read(folder / "of-seed.safetensors"));
  }
  ASSERT_NE(seeds[0], seeds[1]);
  std::atomic<bool> isDone = false;
  std::thread writer([&] {
    for (uint64_t i = 0; !isDone; ++i)
      model.initialize(i % 2);
  });
  const std::string index = folder / "w.safetensors.index.json";
  for (int i = 0; i < 300; ++i) {
    std::string path = i % 10 ? folder / "w.safetensors" : index;
    model.save(path);
    auto saved = read(path);
    EXPECT_TRUE(saved == seeds[0] || saved == seeds[1]) << "torn: " << i;
  }
  isDone = true;
  writer.join();
}

/// The same tensors.
void expectSame(const std::string &index, const std::string &file) {
  auto pieces = io::TensorFiles::open(index), one = io::TensorFiles::open(file);
  ASSERT_TRUE(pieces.ok()) << pieces.status().message();
  ASSERT_TRUE(one.ok()) << one.status().message();
  EXPECT_EQ(pieces->entries().size(), one->entries().size());
  EXPECT_EQ(pieces->metadata(), one->metadata());
  for (const auto &[name, entry] : one->entries())
    EXPECT_EQ(pieces->read(name)->bytes, one->read(name)->bytes) << name;
}

TEST_F(RanksOfThreads, X05_X18_eachRankSavesItsOwnFileAndLoadsOnAnyNumber) {
  const std::string index = folder / "w.safetensors.index.json";
  // Runs `use` on each of so many ranks.
  auto onRanks = [&](const artifact::Manifest &manifest, int ranks,
                     const std::function<void(tdm::Model &, int)> &use) {
    std::string path = write("many.tdm", manifest);
    auto comms = tdm::comm::loopback(static_cast<uint32_t>(ranks));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank, mine = comms[size_t(rank)]]() mutable {
        tdm::Model model(path, 1, uint64_t(ranks));
        tdm::comm::use(model, mine);
        use(model, rank);
        mine.barrier();
      });
    comms.clear();
    for (std::thread &thread : threads)
      thread.join();
  };
  // What is alike on all ranks is written once.
  onRanks(trained(4), 4, [&](tdm::Model &model, int rank) {
    train(model, rank, 4);
    model.save(index);
    model.save(folder / "w.safetensors");
  });
  expectSame(index, folder / "w.safetensors");
  for (int ranks : {1, 2, 4}) {
    onRanks(trained(ranks), ranks, [&](tdm::Model &model, int) {
      model.load(index);
      model.save(folder / "again.safetensors");
    });
    EXPECT_EQ(io::test::load(folder / "again.safetensors"),
              io::test::load(folder / "w.safetensors"));
  }
  // And what is cut, by those that have it: on three ranks, two of which have
  // each piece.
  using Mesh = std::vector<artifact::MeshAxis>;
  for (const Mesh &mesh :
       {Mesh{{"data", 1}, {"tensor", 3}}, Mesh{{"data", 2}, {"tensor", 3}}}) {
    int ranks = int(mesh[0].size * 3);
    onRanks(predicted(mesh), ranks, [&](tdm::Model &model, int) {
      model.save(index);
      model.save(folder / "p.safetensors");
      model.load(folder.path());
      model.save(folder / "again.safetensors");
    });
    expectSame(index, folder / "p.safetensors");
    EXPECT_EQ(io::test::load(folder / "again.safetensors"),
              io::test::load(folder / "p.safetensors"));
    auto files = io::TensorFiles::open(index);
    ASSERT_TRUE(files.ok()) << files.status().message();
    EXPECT_EQ(files->entries().at("w").pieces.size(), 3u);
  }
  // One that has another number of rows is refused by name.
  std::string three = write("p.tdm", predicted({{"data", 1}, {"tensor", 1}}));
  tdm::Model other(three);
  EXPECT_EQ(tdm_load(other.get(), index.c_str()), TDM_FAILED);
  EXPECT_NE(std::string(tdm_last_error()).find("'w': expected f32"),
            std::string::npos)
      << tdm_last_error();
  // And nothing of another kind is replaced.
  EXPECT_EQ(tdm_save(other.get(), three.c_str()), TDM_USAGE);
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
