//===- Roofs.cpp - what the machine can do --------------------------------===//
#include "tools/bench/cpu/Roofs.h"

#include "tools/commands/FmaLoops.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

using namespace tandem;
using namespace tandem::bench;

namespace {

/// Iterations of the loop in a call of one thread.
constexpr int64_t kSteps = 400000;
using Clock = std::chrono::steady_clock;

/// Runs `body(part)` on as many threads at once; returns the seconds from when
/// the last was there until the last was done.
template <typename Body> double together(int threads, const Body &body) {
  std::atomic<int> missing = threads;
  std::vector<Clock::time_point> begins(threads), ends(threads);
  auto enter = [&](int part) {
    --missing;
    while (missing > 0)
      ;
    begins[part] = Clock::now();
    body(part);
    ends[part] = Clock::now();
  };
  std::vector<std::thread> others;
  for (int part = 1; part < threads; ++part)
    others.emplace_back(enter, part);
  enter(0);
  for (std::thread &other : others)
    other.join();
  std::chrono::duration<double> spent =
      *std::max_element(ends.begin(), ends.end()) -
      *std::max_element(begins.begin(), begins.end());
  return spent.count();
}

template <typename Body>
Contender parallel(std::string name, int threads, Body body) {
  Contender contender;
  contender.name = std::move(name);
  contender.group = Contender::Roof;
  contender.sample = [=] { return together(threads, body); };
  return contender;
}

std::shared_ptr<std::vector<char>> memory(double bytes) {
  return std::make_shared<std::vector<char>>(static_cast<size_t>(bytes), 1);
}

} // namespace

double bench::roofFlops(DType dtype) {
  return commands::widestFmaLoop(dtype).flops * kSteps;
}

Contender bench::fmaRoof(int threads, DType dtype) {
  auto run = commands::widestFmaLoop(dtype).run;
  return parallel("roof", threads, [run](int) { run(kSteps); });
}

Contender bench::copyOf(double bytes, int threads) {
  auto from = memory(bytes / 2), to = memory(bytes / 2);
  return parallel("copy", threads, [=](int64_t part) {
    size_t begin = from->size() * part / threads;
    size_t end = from->size() * (part + 1) / threads;
    std::memcpy(to->data() + begin, from->data() + begin, end - begin);
  });
}

Contender bench::triad(int64_t elements, int threads) {
  auto array = [&](float value) {
    return std::make_shared<std::vector<float>>(elements, value);
  };
  auto a = array(0), b = array(1), c = array(2);
  return parallel("triad", threads, [=](int64_t part) {
    float *to = a->data();
    const float *x = b->data(), *y = c->data();
    int64_t end = elements * (part + 1) / threads;
    for (int64_t i = elements * part / threads; i < end; ++i)
      to[i] = x[i] + 3.0F * y[i];
  });
}
