//===- Streams.cpp - the rows on streams, timed on a device ---------------===//
//
// What the emulator proves by logs and clocks of its own (tests/cuda), seen on
// a real device: a stream is held up by filling much memory several times, and
// gradients must be right, and other branches done, all the same.
//
//===----------------------------------------------------------------------===//
#include "tools/bench/cuda/Streams.h"
#include "runtime/graph/Engine.h"
#include "runtime/graph/Leaf.h"

#include <chrono>

using namespace tandem;
using namespace tandem::graph;
using runtime::Backend;
using runtime::StreamScope;
using Clock = std::chrono::steady_clock;

namespace {

/// A node that doubles what it gets after its stream was held up.
class Doubling : public Node {
public:
  Doubling(Backend &backend, const Tensor &held, int fills)
      : backend(backend), held(held), fills(fills) {}
  std::string name() const override { return "doubling"; }
  Status run(Gradients &inputs, Gradients &outputs, const RunMode &) override {
    const Tensor &given = inputs[0].tensor;
    Stream stream = runtime::currentStream(backend.device());
    Tensor hold = held;
    for (int i = 0; i < fills; ++i)
      if (Status status =
              backend.zero(hold.mutableData(), hold.bytes(), stream);
          !status)
        return status;
    Result<Tensor> twice =
        Tensor::empty(given.dtype(), given.shape(), backend.device());
    if (!twice)
      return twice.status();
    given.storage()->useOn(stream);
    Status status =
        backend.add(given.dtype(), twice->mutableData(), given.data(),
                    given.data(), given.elements(), stream);
    for (Value &output : outputs)
      output = *twice;
    return status;
  }

private:
  Backend &backend;
  Tensor held;
  int fills;
};

/// 8 GiB, filled at 4 TB/s: 2 ms.
constexpr int kFills = 10;

class Check {
public:
  /// `heldBytes` are filled several times to hold a stream up. Times mean
  /// nothing where the device is emulated.
  Check(Backend &backend, int64_t heldBytes)
      : backend(backend), device(backend.device()), heldBytes(heldBytes) {
    for (int i = 0; i < 4; ++i)
      streams[i] = must(backend.side(30 + i));
  }

  /// Runs all rows; returns how many failed.
  int run() {
    row("S01", "a delay on one branch does not hold up another", [&] {
      auto [wa, wb] = std::pair(leaf(a()), leaf(b()));
      Value slow = node(a(), {wa.edge}, kFills);
      Value fast = node(b(), {wb.edge}, 0);
      StreamScope scope(device, s());
      Tensor one = filled(1), two = filled(2);
      finish();
      must(graph::backward(
          std::vector<Root>{{slow.edge, one}, {fast.edge, two}}));
      auto begin = Clock::now();
      must(backend.synchronize(b()));
      double fastTime = since(begin);
      must(backend.synchronize(a()));
      double slowTime = since(begin);
      notes["held_ms"] = slowTime * 1e3;
      notes["other_ms"] = fastTime * 1e3;
      bool isEmulated = device.kind == runtime::DeviceKind::CudaEmu;
      return holds(wa, 2) && holds(wb, 4) &&
             (isEmulated || fastTime < 0.5 * slowTime);
    });
    row("S03", "a root gradient that is filled late, on the caller's stream",
        [&] {
          Value w = leaf(a());
          Value top = node(a(), {w.edge}, 0);
          StreamScope scope(device, s());
          Tensor gradient = filled(0);
          hold(s(), kFills);
          must(gradient.fill(3));
          must(graph::backward(std::vector<Root>{{top.edge, gradient}}));
          return holds(w, 6);
        });
    row("S06", "after the call, the caller's stream has all gradients", [&] {
      Value w = leaf(a());
      Value top = node(b(), {w.edge}, kFills);
      StreamScope scope(device, s());
      must(graph::backward(std::vector<Root>{{top.edge, filled(1)}}));
      return holds(w, 2); // read on the caller's stream
    });
    row("S09", "a sum of two branches that are held up", [&] {
      Value w = leaf(c());
      Value x = node(a(), {w.edge}, kFills), y = node(b(), {w.edge}, kFills);
      StreamScope scope(device, s());
      Tensor one = filled(1);
      must(graph::backward(std::vector<Root>{{x.edge, one}, {y.edge, one}}));
      return holds(w, 4);
    });
    return failed;
  }

  nlohmann::ordered_json rows = nlohmann::ordered_json::array();

private:
  Stream s() { return streams[0]; }
  Stream a() { return streams[1]; }
  Stream b() { return streams[2]; }
  Stream c() { return streams[3]; }

  static double since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }
  template <typename T> static T must(Result<T> result) {
    if (!result)
      throw std::runtime_error(result.status().message());
    return std::move(*result);
  }
  static void must(const Status &status) {
    if (!status)
      throw std::runtime_error(status.message());
  }

  Tensor held() {
    int64_t shape[] = {heldBytes};
    return must(Tensor::empty(artifact::DType::U8, shape, device));
  }
  void hold(Stream stream, int count) {
    StreamScope scope(device, stream);
    Tensor much = held();
    for (int i = 0; i < count; ++i)
      must(backend.zero(much.mutableData(), much.bytes(), stream));
  }
  Tensor filled(double value) {
    int64_t shape[] = {1 << 16};
    Tensor tensor = must(Tensor::empty(artifact::DType::F32, shape, device));
    must(tensor.fill(value));
    return tensor;
  }
  Value leaf(Stream stream) {
    StreamScope scope(device, stream);
    return must(Leaf::make("w", filled(0)));
  }
  Value node(Stream stream, std::vector<Edge> edges, int count) {
    StreamScope scope(device, stream);
    Tensor like = filled(0);
    auto made = std::make_shared<Doubling>(backend, held(), count);
    for (Edge &edge : edges)
      must(made->addEdge(std::move(edge)));
    int input = must(made->addInput(like));
    return {like, {made, input}};
  }
  void finish() {
    for (Stream stream : streams)
      must(backend.synchronize(stream));
  }
  bool holds(const Value &w, double expected) {
    const Tensor &gradient = static_cast<Leaf &>(*w.edge.node).gradient();
    Tensor host = must(gradient.onHost());
    for (int64_t i : {int64_t(0), host.elements() - 1})
      if (host.at(i) != expected)
        return false;
    return true;
  }

  template <typename Body>
  void row(const char *id, const char *text, Body body) {
    notes = nlohmann::json::object();
    bool ok = false;
    std::string why;
    try {
      ok = body();
      finish();
    } catch (const std::exception &error) {
      why = error.what();
    }
    failed += !ok;
    nlohmann::ordered_json line = {
        {"row", id}, {"text", text}, {"holds", ok}, {"notes", notes}};
    if (!why.empty())
      line["message"] = why;
    rows.push_back(std::move(line));
  }

  Backend &backend;
  Device device;
  int64_t heldBytes;
  Stream streams[4] = {};
  nlohmann::json notes;
  int failed = 0;
};

} // namespace

Result<nlohmann::ordered_json> gpu::checkStreams(Device device) {
  if (device.isHost())
    return Status::usage("expected a device with streams but got '" +
                         runtime::toString(device) + "'");
  Result<Backend *> backend = runtime::backendOf(device);
  if (!backend)
    return std::move(backend).status();
  bool isEmulated = device.kind == runtime::DeviceKind::CudaEmu;
  Check check(**backend, isEmulated ? 1 << 10 : int64_t(8) << 30);
  int failed = check.run();
  return nlohmann::ordered_json{
      {"check", "streams"}, {"failed", failed}, {"rows", check.rows}};
}
