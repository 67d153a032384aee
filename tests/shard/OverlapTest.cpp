//===- OverlapTest.cpp - steps that communicate while they compute --------===//
//
// Row X14: what reads what a collective writes waits for it, and for no later
// one. Models are compiled for two ranks and trained on threads over a
// connection that delays each exchange and looks at its memory while it does.
// The bits are those of ranks that communicate in the caller's thread alone.
//
//===----------------------------------------------------------------------===//
#include "tests/shard/Models.h"

#include "compiler/Compile.h"
#include "ir/Dialect.h"
#include "runtime/comm/PeerCommunicator.h"
#include "runtime/comm/ThreadPeers.h"
#include "runtime/model/Model.h"
#include "tests/support/TestKernels.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

using namespace mlir;
using namespace tandem;

namespace {

constexpr int ranks = 2;

/// What happened on the connections of all ranks.
struct Seen {
  std::atomic<int> exchanges{0}; ///< on a thread that is not the caller's
  std::atomic<int> changed{0};   ///< whose memory was written meanwhile
};

/// Delays each exchange, in which nobody may write what is sent.
class SlowPeers : public comm::Peers {
public:
  SlowPeers(std::shared_ptr<comm::Peers> fast, Seen &seen)
      : fast(std::move(fast)), seen(seen) {}
  int rank() const override { return fast->rank(); }
  int ranks() const override { return fast->ranks(); }
  Status exchange(int tag, std::span<const comm::Outgoing> outgoing,
                  std::span<const comm::Incoming> incoming,
                  comm::Milliseconds limit) override {
    if (std::this_thread::get_id() == caller)
      return fast->exchange(tag, outgoing, incoming, limit);
    ++seen.exchanges;
    std::vector<std::string> before;
    for (const comm::Outgoing &message : outgoing)
      before.emplace_back(static_cast<const char *>(message.data),
                          size_t(message.bytes));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    for (size_t i = 0; i < before.size(); ++i)
      seen.changed += std::memcmp(before[i].data(), outgoing[i].data,
                                  before[i].size()) != 0;
    return fast->exchange(tag, outgoing, incoming, limit);
  }
  void fail(const std::string &reason) override { fast->fail(reason); }

private:
  std::shared_ptr<comm::Peers> fast;
  Seen &seen;
  std::thread::id caller = std::this_thread::get_id();
};

/// Layers whose gradients take longer to send than to compute.
void wide(Trace &trace) {
  Tensor h = trace.input("x", {32, 512});
  for (const char *name : {"first", "second", "third"}) {
    ModuleScope scope = trace.module(name);
    h = tanh(linear(h, trace.parameter("w", {512, 512}, Init::uniform(-1, 1)),
                    trace.parameter("bias", {512}, Init::constant(0.1))));
  }
  trace.output("loss", mean(h * h));
}

artifact::ArtifactReader compiled(const std::function<void(Trace &)> &program,
                                  const std::string &parallel) {
  Trace trace("model");
  program(trace);
  auto text = trace.finish();
  EXPECT_TRUE(text.ok()) << text.status().message();
  DialectRegistry registry;
  registerCompiler(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadDialect<TandemDialect>();
  auto module = parseSourceString<ModuleOp>(*text, &context);
  EXPECT_TRUE(module);
  CompileOptions options;
  auto kernels = testKernels();
  options.kernels = kernels.get();
  options.threads = 1;
  options.effort = 0;
  options.mesh = "data=" + std::to_string(ranks);
  options.parallel = parallel;
  options.optimizer = "adamw:lr=0.05";
  std::vector<PhaseTime> times;
  Status status = runPhases(*module, options, times);
  EXPECT_TRUE(status.ok()) << status.message();
  auto writer = emitArtifact(*module, options, times);
  EXPECT_TRUE(writer) << writer.status().message();
  auto bytes = writer->bytes();
  EXPECT_TRUE(bytes) << bytes.status().message();
  auto reader =
      artifact::ArtifactReader::fromMemory(std::as_bytes(std::span(*bytes)));
  EXPECT_TRUE(reader) << reader.status().message();
  return *reader;
}

/// The bytes of all parameters and states after three steps, on each rank.
std::vector<std::string> trained(const artifact::ArtifactReader &reader,
                                 bool overlaps, Seen &seen) {
  std::vector<std::string> result(ranks);
  auto peers = comm::makeThreadPeers(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      std::shared_ptr<comm::Communicator> world = comm::makePeerCommunicator(
          std::make_shared<SlowPeers>(std::move(peers[size_t(rank)]), seen),
          std::chrono::seconds(20), overlaps);
      runtime::Options options;
      options.threads = 1;
      auto model = runtime::Model::load(reader, options);
      ASSERT_TRUE(model) << model.status().message();
      Status status = model->setCommunicator(world);
      ASSERT_TRUE(status.ok()) << status.message();
      const artifact::Program *step = model->manifest().findProgram("step");
      ASSERT_TRUE(step);
      for (int i = 0; i < 3; ++i) {
        std::vector<runtime::Tensor> values;
        std::vector<runtime::Argument> inputs;
        values.reserve(step->arguments.size());
        for (const artifact::Slot &slot : step->arguments)
          if (slot.role == artifact::Role::Input) {
            auto made = runtime::Tensor::zeros(slot.dtype, slot.shape);
            ASSERT_TRUE(made) << made.status().message();
            for (int64_t e = 0; e < made->elements(); ++e)
              if (slot.dtype == artifact::DType::F32)
                made->mutableData<float>()[e] =
                    float((e * 7 + i + rank) % 11) / 11;
              else
                made->mutableData<int64_t>()[e] = (e + i + rank) % 4;
            values.push_back(*made);
            inputs.emplace_back(slot.name, &values.back());
          }
        status = model->run("step", inputs, {});
        ASSERT_TRUE(status.ok()) << status.message();
      }
      for (const artifact::Value &value : model->manifest().values)
        if (value.role == artifact::Role::Param ||
            value.role == artifact::Role::State) {
          auto got = model->get(value.name);
          ASSERT_TRUE(got) << got.status().message();
          result[size_t(rank)].append(got->data<char>(), size_t(got->bytes()));
        }
    });
  for (std::thread &thread : threads)
    thread.join();
  return result;
}

class Overlap : public ::testing::TestWithParam<const char *> {};

TEST_P(Overlap, X14_WhatReadsACollectiveWaitsForIt) {
  const std::function<void(Trace &)> models[] = {
      wide, [](Trace &trace) { test::decoder(trace, {}); },
      [](Trace &trace) { test::convolutions(trace, {}); }};
  for (const auto &model : models) {
    artifact::ArtifactReader reader = compiled(model, GetParam());
    Seen alone, beside;
    std::vector<std::string> expected = trained(reader, false, alone);
    EXPECT_EQ(alone.exchanges, 0);
    EXPECT_TRUE(trained(reader, true, beside) == expected);
    EXPECT_GT(beside.exchanges, 0);
    EXPECT_EQ(beside.changed, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, Overlap,
                         ::testing::Values("ddp", "zero1", "zero2", "fsdp"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });

} // namespace
