//===- Members.cpp - what the workers of a row have in common -------------===//
#include "tests/runtime/graph/distributed/Rows.h"

#include <chrono>
#include <thread>

namespace tdm::dist::testing {

void Member::expect(bool holds, const std::string &what) {
  std::lock_guard lock(mutex);
  if (!holds)
    failures.push_back("worker " + std::to_string(number()) + ": " + what);
}

void Member::expectEqual(const Tensor &got, float wanted,
                         const std::string &what) {
  float value = valueOf(got);
  expect(value == wanted, what + ": expected " + std::to_string(wanted) +
                              " but got " +
                              (got.defined() ? std::to_string(value) : "none"));
}

void Member::expectError(const std::function<void()> &fn,
                         const std::string &part, const std::string &what) {
  try {
    fn();
    expect(false, what + ": expected an error with '" + part + "'");
  } catch (const Error &error) {
    expect(std::string(error.what()).find(part) != std::string::npos,
           what + ": expected '" + part + "' in '" + error.what() + "'");
  }
}

Tensor Member::leaf(const std::string &name, float value) {
  Tensor made = testing::number(value).setRequiresGrad(true);
  std::lock_guard lock(mutex);
  leaves[name] = made;
  return made;
}

/// A name as a tensor of bytes.
static Tensor textTensor(const std::string &text) {
  Tensor made = Tensor::zeros(TDM_U8, {static_cast<int64_t>(text.size())});
  check(tdm_tensor_write(made.get(), text.data(), text.size()));
  return made;
}
static std::string textOf(const Tensor &tensor) {
  std::string text(static_cast<size_t>(tensor.elements()), ' ');
  check(tdm_tensor_read(tensor.get(), text.data(), text.size()));
  return text;
}

Tensor Member::gradientAt(uint32_t at, const std::string &name) {
  return worker.call(at, "gradient", {textTensor(name)})[0];
}

tdm_dist_counts Member::countsAt(uint32_t at) {
  TensorList got = worker.call(at, "counts", {}, 2);
  tdm_dist_counts counts = TDM_DIST_COUNTS_INIT;
  counts.contexts = static_cast<size_t>(valueOf(got[0]));
  counts.backwards = static_cast<size_t>(valueOf(got[1]));
  return counts;
}

int Member::ranAt(uint32_t at, const std::string &name) {
  return static_cast<int>(
      valueOf(worker.call(at, "ran", {textTensor(name)})[0]));
}

Tensor Member::noted(const std::string &name, const Tensor &input) {
  tdm::Function function{
      name,
      [](Node &, const TensorList &inputs, TensorList &outputs) {
        outputs[0] = scale(inputs[0], 1);
      },
      [this, name](Node &, const TensorList &gradients, TensorList &results) {
        {
          std::lock_guard lock(mutex);
          ++ran[name];
        }
        results[0] = gradients[0];
      }};
  return tdm::call(function, {input})[0];
}

void play(const Row &row, Member &me) {
  // Names that all workers serve: what the row looks at afterwards.
  me.worker.serve("gradient", [&me](const TensorList &in, TensorList &out) {
    Tensor leaf;
    {
      std::lock_guard lock(me.mutex);
      leaf = me.leaves.at(textOf(in[0]));
    }
    out[0] = me.worker.gradient(tdm_dist_current(), leaf);
  });
  me.worker.serve("counts", [&me](const TensorList &, TensorList &out) {
    tdm_dist_counts counts = me.worker.counts();
    out[0] = number(static_cast<float>(counts.contexts));
    out[1] = number(static_cast<float>(counts.backwards));
  });
  me.worker.serve("ran", [&me](const TensorList &in, TensorList &out) {
    std::lock_guard lock(me.mutex);
    out[0] = number(static_cast<float>(me.ran[textOf(in[0])]));
  });
  try {
    row.setUp(me);
    me.worker.meet("set up");
    if (me.number() == 0)
      row.act(me);
    me.worker.meet("done");
  } catch (const std::exception &error) {
    me.expect(false, std::string("not expected: ") + error.what());
    (void)tdm_dist_enter(me.worker.get(), 0);
    try {
      me.worker.meet("done");
    } catch (const Error &) {
    }
  }
  try {
    me.worker.leave();
    tdm_dist_counts counts = me.worker.counts();
    me.expect(counts.backwards == 0, "a backward is left");
    me.expect(counts.contexts == 0, "a context is left");
  } catch (const Error &error) {
    me.expect(false, std::string("leaving: ") + error.what());
  }
}

void rest(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

void serveTimes(Member &me) {
  Tensor w = me.leaf("w", static_cast<float>(me.number() + 2));
  me.worker.serve("times", [w](const TensorList &in, TensorList &out) {
    out[0] = mul(in[0], w);
  });
}

void serveChain(Member &me) {
  serveTimes(me);
  me.worker.serve("chain", [&me](const TensorList &in, TensorList &out) {
    Tensor own = me.worker.call(me.number(), "times", in)[0];
    out[0] = me.number() == me.last()
                 ? own
                 : me.worker.call(me.number() + 1, "chain", {own})[0];
  });
}

std::vector<Row> rows() {
  std::vector<Row> all = rowsOfBackwards();
  all.insert(all.end(), rowsOfEnds().begin(), rowsOfEnds().end());
  return all;
}

} // namespace tdm::dist::testing
