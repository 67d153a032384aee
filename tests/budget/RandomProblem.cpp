//===- RandomProblem.cpp - training steps made up from a seed -------------===//
#include "tests/budget/RandomProblem.h"

#include <algorithm>
#include <random>

using namespace tandem::budget;

namespace {

constexpr double kSecondsPerByte = 1e-10, kSecondsPerFlop = 1e-11;

/// Builds a step op by op; the backward follows from the forward.
class Builder {
public:
  explicit Builder(uint64_t seed) : random(seed) {}

  unsigned below(unsigned n) { return random() % n; }
  bool chance(unsigned percent) { return below(100) < percent; }

  unsigned value(int64_t bytes, bool inKernel, uint64_t kind = 0) {
    Value v;
    v.bytes = bytes;
    v.ownBytes = inKernel ? 0 : bytes;
    v.againBytes = v.ownBytes;
    v.saveSeconds =
        static_cast<double>(bytes) * kSecondsPerByte * (inKernel ? 2 : 1);
    v.kind = kind;
    return problem.addValue(v);
  }

  unsigned forward(std::vector<unsigned> operands, int64_t bytes, double flops,
                   bool inKernel, bool mayNotRepeat = false,
                   uint64_t kind = 0) {
    Op op;
    op.operands.assign(operands.begin(), operands.end());
    unsigned result = value(bytes, inKernel, kind);
    op.results = {result};
    op.flops = flops;
    op.seconds =
        flops * kSecondsPerFlop + static_cast<double>(bytes) * kSecondsPerByte;
    op.againSeconds = inKernel ? op.seconds / 8 : op.seconds;
    op.mayNotRepeat = mayNotRepeat;
    op.overwrites = inKernel;
    problem.addOp(op, /*isForward=*/true);
    return result;
  }

  /// Ops of the backward for all of the forward. `reads` says for each op which
  /// of its operands its backward reads (bits) and, with bit 31, its result.
  void backward(const std::vector<uint32_t> &reads, unsigned mostOps) {
    std::vector<unsigned> cotangent(problem.values.size(), kNone);
    unsigned last = problem.forwardOps - 1;
    cotangent[problem.ops[last].results[0]] = value(64, false);
    Op seed;
    seed.results = {cotangent[problem.ops[last].results[0]]};
    problem.addOp(seed, /*isForward=*/false);
    for (unsigned i = problem.forwardOps; i-- > 0;) {
      const Op made = problem.ops[i];
      unsigned dy = cotangent[made.results[0]];
      if (dy == kNone || problem.ops.size() + 2 > mostOps)
        continue;
      Op op;
      op.operands = {dy};
      for (unsigned k = 0; k < made.operands.size(); ++k)
        if (reads[i] >> k & 1)
          op.operands.push_back(made.operands[k]);
      if (reads[i] >> 31)
        op.operands.push_back(made.results[0]);
      op.seconds = 2 * made.seconds;
      op.overwrites = made.overwrites;
      std::vector<std::pair<unsigned, unsigned>> sums;
      for (unsigned operand : made.operands) {
        const Value &v = problem.values[operand];
        if (v.isFree) {
          Value gradient;
          gradient.ownBytes = v.bytes;
          gradient.isKept = true;
          op.results.push_back(problem.addValue(gradient));
          continue;
        }
        unsigned dx = value(v.bytes, false);
        op.results.push_back(dx);
        if (cotangent.size() < problem.values.size())
          cotangent.resize(problem.values.size(), kNone);
        if (cotangent[operand] == kNone)
          cotangent[operand] = dx;
        else
          sums.push_back({operand, dx});
      }
      problem.addOp(op, /*isForward=*/false);
      for (auto [operand, dx] : sums) {
        Op add;
        unsigned sum = value(problem.values[operand].bytes, false);
        add.operands = {cotangent[operand], dx};
        add.results = {sum};
        add.seconds = static_cast<double>(problem.values[operand].bytes) *
                      kSecondsPerByte;
        add.overwrites = true;
        cotangent[operand] = sum;
        cotangent.resize(problem.values.size(), kNone);
        problem.addOp(add, /*isForward=*/false);
      }
    }
  }

  std::mt19937_64 random;
  Problem problem;
};

} // namespace

Problem tandem::budget::randomProblem(uint64_t seed, unsigned mostOps) {
  Builder b(seed);
  unsigned forwardOps = 3 + b.below(std::max(1u, mostOps * 2 / 5 - 3));
  std::vector<unsigned> values;
  std::vector<uint32_t> reads;
  auto recent = [&] {
    // The last few, or, as a residual connection has it, one of long ago.
    unsigned reach = b.chance(15) ? values.size() : 3;
    reach = std::min<unsigned>(reach, values.size());
    return values[values.size() - 1 - b.below(reach)];
  };
  Value input;
  input.bytes = 1024;
  input.isFree = true;
  values.push_back(b.problem.addValue(input));
  for (unsigned i = 0; i < forwardOps; ++i) {
    int64_t bytes = 256 << b.below(6);
    unsigned x = recent();
    unsigned result;
    unsigned kind = b.below(100);
    if (kind < 35) { // a contraction with a parameter
      Value weight;
      weight.bytes = 512;
      weight.isFree = true;
      unsigned w = b.problem.addValue(weight);
      result = b.forward({x, w}, bytes,
                         100.0 * static_cast<double>(bytes) * (1 + b.below(4)),
                         /*inKernel=*/false, b.chance(8));
      reads.push_back(3);
    } else if (kind < 75) { // pointwise, of one or two values
      std::vector<unsigned> operands = {x};
      if (unsigned y = recent(); b.chance(40) && y != x)
        operands.push_back(y);
      bytes = std::max<int64_t>(b.problem.values[x].bytes, 256);
      result =
          b.forward(operands, bytes, static_cast<double>(bytes), b.chance(60));
      constexpr uint32_t patterns[] = {0, 1, 3, 1u << 31, 1u | 1u << 31};
      reads.push_back(patterns[b.below(5)]);
    } else { // a reduction
      result = b.forward({x}, 64, static_cast<double>(bytes), false);
      reads.push_back(b.chance(50) ? 1 : 1u << 31);
    }
    if (b.chance(4))
      b.problem.values[result].mustSave = true;
    else if (b.chance(4))
      b.problem.values[result].mustRecompute =
          !b.problem.ops.back().mayNotRepeat;
    values.push_back(result);
  }
  b.backward(reads, mostOps);
  b.problem.residentBytes = 4096;
  return std::move(b.problem);
}

Problem tandem::budget::layeredProblem(unsigned layers) {
  Builder b(0);
  std::vector<uint32_t> reads;
  constexpr int64_t kBytes = 1 << 20;
  constexpr double kFlops = 1 << 26;
  Value free;
  free.bytes = kBytes;
  free.isFree = true;
  unsigned x = b.problem.addValue(free);
  auto product = [&](unsigned operand, int64_t bytes, uint64_t kind) {
    unsigned w = b.problem.addValue(free);
    reads.push_back(3);
    return b.forward({operand, w}, bytes, kFlops, false, false, kind);
  };
  auto pointwise = [&](std::vector<unsigned> operands, int64_t bytes,
                       uint32_t read, bool inKernel, uint64_t kind) {
    reads.push_back(read);
    return b.forward(std::move(operands), bytes, kBytes / 4.0, inKernel, false,
                     kind);
  };
  for (unsigned i = 0; i < layers; ++i) {
    unsigned norm = pointwise({x}, kBytes, 1, true, 1);
    unsigned qkv = product(norm, 3 * kBytes, 2);
    unsigned mixed = pointwise({qkv}, kBytes, 1u | 1u << 31, false, 3);
    unsigned projected = product(mixed, kBytes, 4);
    x = pointwise({x, projected}, kBytes, 0, false, 5);
    unsigned wide = product(x, 4 * kBytes, 6);
    unsigned bent = pointwise({wide}, 4 * kBytes, 1, true, 7);
    unsigned narrow = product(bent, kBytes, 8);
    x = pointwise({x, narrow}, kBytes, 0, false, 9);
  }
  b.backward(reads, ~0u);
  return std::move(b.problem);
}
