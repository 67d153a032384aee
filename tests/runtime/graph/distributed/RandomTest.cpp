//===- RandomTest.cpp - random programs of workers, and of one process ----===//
//
// A program calls functions of workers in any order, with any of the values
// that it has; most of the results are used by no root. Its gradients are those
// of the same program where each call is a plain function, and the backward
// that of the run-time graph. The second and third backward of a context have
// other roots, or those of another worker.
//
//===----------------------------------------------------------------------===//
#include "runtime/dist.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <thread>

namespace tdm::dist::testing {
namespace {

Tensor number(double value) {
  Tensor made = Tensor::zeros(TDM_F64, {});
  check(tdm_tensor_write(made.get(), &value, sizeof value));
  return made;
}
double valueOf(const Tensor &tensor) {
  double value = 0;
  if (tensor.defined())
    check(tdm_tensor_read(tensor.get(), &value, sizeof value));
  return value;
}

/// What the functions of one worker work with.
struct State {
  Tensor leaf, kept;
};

/// How a function calls one of another worker.
using Call = std::function<TensorList(uint32_t to, const std::string &name,
                                      const TensorList &inputs, size_t wanted)>;

using Body = void (*)(State &state, uint32_t next, const Call &call,
                      const TensorList &in, TensorList &out);
struct Served {
  const char *name;
  size_t inputs, outputs;
  Body body;
};

const Served served[] = {
    {"mul", 2, 1,
     [](State &, uint32_t, const Call &, const TensorList &in,
        TensorList &out) { out[0] = mul(in[0], in[1]); }},
    {"add", 2, 1,
     [](State &, uint32_t, const Call &, const TensorList &in,
        TensorList &out) { out[0] = add(in[0], in[1]); }},
    {"times", 1, 1,
     [](State &state, uint32_t, const Call &, const TensorList &in,
        TensorList &out) { out[0] = mul(in[0], state.leaf); }},
    {"leaf", 0, 1,
     [](State &state, uint32_t, const Call &, const TensorList &,
        TensorList &out) { out[0] = state.leaf; }},
    {"two", 2, 2,
     [](State &, uint32_t, const Call &, const TensorList &in,
        TensorList &out) {
       out[0] = scale(in[0], 2);
       out[1] = scale(in[1], 3);
     }},
    {"same", 1, 2,
     [](State &, uint32_t, const Call &, const TensorList &in,
        TensorList &out) { out[0] = out[1] = in[0]; }},
    {"nested", 2, 1,
     [](State &state, uint32_t next, const Call &call, const TensorList &in,
        TensorList &out) {
       Tensor there = call(next, "times", {in[0]}, 1)[0];
       out[0] = add(mul(there, state.leaf), in[1]);
     }},
    {"drops", 1, 1,
     [](State &state, uint32_t next, const Call &call, const TensorList &in,
        TensorList &out) {
       (void)call(next, "times", {in[0]}, 1);
       out[0] = mul(in[0], state.leaf);
     }},
    {"keep", 1, 0,
     [](State &state, uint32_t, const Call &, const TensorList &in,
        TensorList &) { state.kept = add(state.kept, in[0]); }},
    {"kept", 0, 1,
     [](State &state, uint32_t, const Call &, const TensorList &,
        TensorList &out) { out[0] = scale(state.kept, 2); }},
    {"own mul", 2, 1, nullptr}, // without a call
    {"own add", 2, 1, nullptr},
};

struct Step {
  const Served *function;
  uint32_t to;
  size_t a, b; ///< values, by number
};
struct Backward {
  uint32_t caller; ///< the first has values as roots; others, what they kept
  std::vector<size_t> roots;
};
struct Program {
  uint32_t workers;
  std::vector<double> leaves;
  double input;
  std::vector<Step> steps;
  std::vector<Backward> backwards;
};

Program draw(uint64_t seed, uint32_t workers) {
  std::mt19937_64 random(seed);
  auto value = [&] {
    double size = 0.5 + double(random() % 1000) / 1000;
    return random() % 2 ? size : -size;
  };
  Program made{workers, {}, value(), {}, {}};
  for (uint32_t i = 0; i < workers; ++i)
    made.leaves.push_back(value());
  size_t values = 1;
  for (size_t i = 2 + random() % 9; i > 0; --i) {
    const Served &function = served[random() % std::size(served)];
    made.steps.push_back({&function, uint32_t(random() % workers),
                          random() % values, random() % values});
    values += function.outputs;
  }
  for (size_t i = 1 + random() % 3; i > 0; --i) {
    Backward one{random() % 4 ? 0 : uint32_t(random() % workers), {}};
    for (size_t k = 1 + random() % 2; k > 0; --k)
      one.roots.push_back(random() % values);
    made.backwards.push_back(one);
  }
  return made;
}

std::vector<State> makeStates(const Program &program) {
  std::vector<State> states;
  for (double value : program.leaves) {
    Tensor leaf = number(value).setRequiresGrad(true);
    states.push_back({leaf, leaf});
  }
  return states;
}

/// Returns the values; the first is the input.
TensorList run(const Program &program, const Call &call) {
  TensorList values{number(program.input).setRequiresGrad(true)};
  for (const Step &step : program.steps) {
    Tensor a = values[step.a], b = values[step.b];
    if (!step.function->body) {
      values.push_back(step.function->name[4] == 'm' ? mul(a, b) : add(a, b));
      continue;
    }
    TensorList inputs{a, b};
    inputs.resize(step.function->inputs);
    for (const Tensor &made :
         call(step.to, step.function->name, inputs, step.function->outputs))
      values.push_back(made);
  }
  return values;
}

TensorList rootsOf(const Backward &backward, const TensorList &values,
                   const std::vector<State> &states) {
  TensorList roots;
  if (backward.caller > 0)
    return {sum(states[backward.caller].kept)};
  for (size_t root : backward.roots)
    roots.push_back(sum(values[root]));
  return roots;
}

/// The gradients of the input and of the leaves after each backward.
using Slopes = std::vector<std::vector<double>>;

Slopes alone(const Program &program) {
  std::vector<State> states = makeStates(program);
  Call call = [&](uint32_t to, const std::string &name,
                  const TensorList &inputs, size_t wanted) {
    TensorList outputs(wanted);
    for (const Served &function : served)
      if (name == function.name)
        function.body(states[to], (to + 1) % program.workers, call, inputs,
                      outputs);
    return outputs;
  };
  TensorList values = run(program, call);
  Slopes slopes;
  for (const Backward &one : program.backwards) {
    backward(rootsOf(one, values, states), {}, TDM_RETAIN_GRAPH);
    slopes.push_back({valueOf(gradientOf(values[0]))});
    for (const State &state : states)
      slopes.back().push_back(valueOf(gradientOf(state.leaf)));
  }
  return slopes;
}

class Workers {
public:
  Workers(uint32_t count, const tdm_dist_loopback_options &network)
      : states(count) {
    tdm_dist_options options = TDM_DIST_OPTIONS_INIT;
    options.silence_ms = 20'000;
    options.limit_ms = 30'000;
    for (const tdm_dist_transport &transport : loopback(count, &network))
      workers.emplace_back(transport, &options);
    for (uint32_t i = 0; i < count; ++i)
      for (const Served &function : served)
        if (function.body)
          workers[i].serve(
              function.name, [this, i, body = function.body](
                                 const TensorList &in, TensorList &out) {
                body(states[i], (i + 1) % states.size(), callsOf(i), in, out);
              });
    for (uint32_t i = 0; i < count; ++i)
      workers[i].serve("slope", [this, i](const TensorList &, TensorList &out) {
        out[0] = number(
            valueOf(workers[i].gradient(tdm_dist_current(), states[i].leaf)));
      });
  }
  ~Workers() {
    std::vector<std::thread> threads;
    for (Worker &worker : workers)
      threads.emplace_back([&] { EXPECT_NO_THROW(worker.leave()); });
    for (std::thread &thread : threads)
      thread.join();
  }

  Slopes together(const Program &program) {
    states = makeStates(program);
    Context context(workers[0]);
    TensorList values = run(program, callsOf(0));
    Slopes slopes;
    for (const Backward &one : program.backwards) {
      TensorList roots = rootsOf(one, values, states);
      bool isLast = &one == &program.backwards.back();
      if (one.caller > 0) // it takes part, if it did not yet
        (void)workers[0].call(one.caller, "slope", {});
      workers[one.caller].backward(context.number(), roots,
                                   isLast ? 0 : TDM_RETAIN_GRAPH);
      for (Worker &worker : workers)
        EXPECT_EQ(worker.counts().backwards, 0u);
      slopes.push_back({valueOf(context.gradient(values[0]))});
      for (uint32_t i = 0; i < workers.size(); ++i)
        slopes.back().push_back(valueOf(workers[0].call(i, "slope", {})[0]));
    }
    return slopes;
  }

private:
  Call callsOf(uint32_t from) {
    return [this, from](uint32_t to, const std::string &name,
                        const TensorList &inputs, size_t wanted) {
      return workers[from].call(to, name.c_str(), inputs, wanted);
    };
  }

  std::vector<State> states;
  std::vector<Worker> workers;
};

std::string describe(const Program &program) {
  std::string text;
  for (const Step &step : program.steps)
    text += std::string(step.function->name) + " at " +
            std::to_string(step.to) + " of " + std::to_string(step.a) + ", " +
            std::to_string(step.b) + "; ";
  for (const Backward &one : program.backwards) {
    text += "backward at " + std::to_string(one.caller) + " of";
    for (size_t root : one.roots)
      text += " " + std::to_string(root);
    text += "; ";
  }
  return text;
}

class RandomPrograms : public ::testing::TestWithParam<uint32_t> {
protected:
  void compare(int programs, const tdm_dist_loopback_options &network) {
    constexpr double tolerance = 1e-9;
    int wrong = 0;
    Workers workers(GetParam(), network);
    for (int seed = 0; seed < programs; ++seed) {
      Program program = draw(uint64_t(seed), GetParam());
      SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(program));
      Slopes wanted = alone(program), got;
      bool isRight = true;
      try {
        got = workers.together(program);
      } catch (const Error &error) {
        isRight = false;
        ADD_FAILURE() << error.what();
      }
      for (size_t i = 0; i < got.size(); ++i)
        for (size_t k = 0; k < got[i].size(); ++k)
          isRight &= std::abs(got[i][k] - wanted[i][k]) <=
                     tolerance * (1 + std::abs(wanted[i][k]));
      if (!isRight && ++wrong <= 3)
        ADD_FAILURE() << "got " << ::testing::PrintToString(got)
                      << ", expected " << ::testing::PrintToString(wanted);
    }
    EXPECT_EQ(wrong, 0) << "of " << programs << " programs";
  }
};

TEST_P(RandomPrograms, AreAsInOneProcess) {
  compare(300, TDM_DIST_LOOPBACK_OPTIONS_INIT);
}

TEST_P(RandomPrograms, AreAsInOneProcessOnALossyNetwork) {
  tdm_dist_loopback_options network = TDM_DIST_LOOPBACK_OPTIONS_INIT;
  network.seed = 5;
  network.loss = network.repeat = 0.15;
  network.reorder = 0.3;
  compare(20, network);
}

INSTANTIATE_TEST_SUITE_P(, RandomPrograms, ::testing::Values(2, 3, 4));

} // namespace
} // namespace tdm::dist::testing
