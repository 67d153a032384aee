//===- Fixtures.h - what PyTorch computed (make-fixtures) -----------------===//
#ifndef TANDEM_TESTS_OPTIMIZERS_FIXTURES_H
#define TANDEM_TESTS_OPTIMIZERS_FIXTURES_H

#include "tests/semantics/Harness.h"

#include <fstream>
#include <sstream>

namespace tandem::test {

struct Fixture {
  std::string spec;
  Numbers numbers;
};

/// The lines of a file of fixtures.
inline std::vector<Fixture> fixturesOf(const std::string &file) {
  std::ifstream in(std::string(TANDEM_FIXTURES) + "/" + file);
  EXPECT_TRUE(in) << file;
  std::vector<Fixture> fixtures;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    Fixture fixture;
    words >> fixture.spec;
    for (double number; words >> number;)
      fixture.numbers.push_back(number);
    fixtures.push_back(std::move(fixture));
  }
  EXPECT_FALSE(fixtures.empty()) << file;
  return fixtures;
}

/// As make-fixtures draws them.
inline Numbers drawn(int64_t count, int64_t seed) {
  Numbers numbers(count);
  for (int64_t i = 0; i < count; ++i)
    numbers[i] =
        static_cast<double>((i * 7919 + seed * 104729 + 13) % 1009) / 504.5 - 1;
  return numbers;
}

/// Parameters of the shapes that make-fixtures has, and the gradients of its
/// steps.
class Steps {
public:
  static constexpr int kParams = 5;
  static const Shape &shape(int p) {
    static const Shape shapes[kParams] = {{3, 5}, {7}, {}, {2, 3, 2}, {6, 2}};
    return shapes[p];
  }
  static int64_t elements(int p) {
    int64_t count = 1;
    for (int64_t size : shape(p))
      count *= size;
    return count;
  }
  static const std::string &name(int p) {
    static const std::string names[kParams] = {"p0", "p1", "p2", "p3", "p4"};
    return names[p];
  }
  /// A model that has them, and a loss that reaches all.
  static Source source(DType type) {
    return {nullptr, [type](Trace &t) {
              std::optional<Tensor> loss;
              for (int p = 0; p < kParams; ++p) {
                Tensor w =
                    t.parameter(name(p), shape(p), Init::constant(1), type);
                Tensor one = sum(w);
                loss = loss ? *loss + one : one;
              }
              t.output("loss", *loss);
            }};
  }

  explicit Steps(CompiledMachine &m, DType type) : m(m), type(type) {
    for (int p = 0; p < kParams; ++p)
      m.set(name(p), drawn(elements(p), p));
  }

  /// The next update. A gradient that is not finite stands at `bad`.
  void update(bool isBad = false) {
    ++count;
    runtime::Tensor gradients[kParams];
    std::vector<runtime::Argument> arguments;
    for (int p = 0; p < kParams; ++p) {
      if (p != 2 || count % 5 <= 2) {
        Numbers gradient = drawn(elements(p), 5 * p + count);
        Numbers value = m.contents(name(p));
        for (size_t i = 0; i < gradient.size(); ++i)
          gradient[i] += 0.25 * value[i];
        if (isBad)
          gradient[0] = std::numeric_limits<double>::infinity();
        gradients[p] =
            *tensorOf(type, shape(p), gradient).copyTo(m.model.device());
      }
      arguments.emplace_back(name(p), &gradients[p]);
    }
    Status status = m.model.update(arguments);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  Numbers values() {
    Numbers all;
    for (int p = 0; p < kParams; ++p) {
      Numbers own = m.contents(name(p));
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }

  int count = 0;

private:
  CompiledMachine &m;
  DType type;
};

} // namespace tandem::test

#endif
