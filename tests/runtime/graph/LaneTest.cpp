//===- LaneTest.cpp - what lanes of a backward hand to each other ---------===//
#include "tests/runtime/FakeDevice.h"
#include "tests/runtime/graph/TestNodes.h"

#include <gtest/gtest.h>

namespace tandem::graph::testing {
namespace {

using test::FakeDevice;

// A slot kept the fence that it had handed on, and gave it back once more.
TEST(Lanes, N31_TheFenceOfAGradientIsGivenBackOnce) {
  FakeDevice &device = FakeDevice::at(0);
  int64_t before = device.fencesInUse;
  int64_t shape[] = {4};
  Tensor onDevice =
      *Tensor::empty(artifact::DType::F32, shape, device.device());
  Tensor onHost = *Tensor::zeros(artifact::DType::F32, shape);
  auto nodeOn = [&](runtime::Stream stream, std::vector<Edge> edges) {
    runtime::StreamScope scope(device.device(), stream);
    return FunctionNode::make("pass", onDevice, std::move(edges), passOn());
  };
  runtime::Stream early = device.makeStream(), late = device.makeStream();
  Value end = nodeOn(early, {});
  Value left = nodeOn(late, {end.edge}), right = nodeOn(late, {end.edge});
  Value host = FunctionNode::make("host", onHost, {}, passOn());
  std::vector<Root> roots = {
      {left.edge, onDevice}, {right.edge, onDevice}, {host.edge, onHost}};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(backward(roots).message(), "");
    EXPECT_EQ(device.fencesInUse, before);
  }
}

} // namespace
} // namespace tandem::graph::testing
