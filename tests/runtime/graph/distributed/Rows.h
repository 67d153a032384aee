//===- Rows.h - rows of distributed autograd, as each worker plays them ---===//
//
// A row is played by all workers, threads (RowsTest) or processes
// (RowsOverMpi): each sets up what it serves, the first one acts, and then all
// look at what they have. Through the public API alone.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_RUNTIME_GRAPH_DISTRIBUTED_ROWS_H
#define TANDEM_TESTS_RUNTIME_GRAPH_DISTRIBUTED_ROWS_H

#include "runtime/dist.hpp"

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>

namespace tdm::dist::testing {

/// One worker of a row.
struct Member {
  Worker worker;
  std::map<std::string, Tensor> leaves;
  std::vector<std::string> failures;
  std::map<std::string, int> ran; ///< how often, by name
  std::map<std::string, Tensor> kept;
  std::mutex mutex; ///< guards the maps
  std::condition_variable changed;
  std::map<std::string, size_t> flags;

  uint32_t number() const { return worker.number(); }
  uint32_t last() const { return worker.count() - 1; }

  void expect(bool holds, const std::string &what);
  void expectEqual(const Tensor &got, float wanted, const std::string &what);
  void expectError(const std::function<void()> &fn, const std::string &part,
                   const std::string &what);
  /// A leaf "name" of this worker with one element.
  Tensor leaf(const std::string &name, float value);
  /// Its gradient in the thread's context of another worker; empty: none.
  Tensor gradientAt(uint32_t at, const std::string &name);
  /// Runs `fn` with what another worker's counts are.
  tdm_dist_counts countsAt(uint32_t at);
  /// How often `noted` of this name ran at another worker.
  int ranAt(uint32_t at, const std::string &name);
  /// Passes its gradient on, and counts that it did.
  Tensor noted(const std::string &name, const Tensor &input);
};

struct Row {
  const char *name;
  void (*setUp)(Member &me); ///< on each worker
  void (*act)(Member &me);   ///< on the first, when all are set up
};
/// Contexts, and backwards through workers: D01 to D12.
const std::vector<Row> &rowsOfBackwards();
/// Leaves, errors, releases and what is left behind: D15 to D20.
const std::vector<Row> &rowsOfEnds();
std::vector<Row> rows();

void rest(int milliseconds);
/// "times": input times the leaf "w" of the worker, which is its number + 2.
void serveTimes(Member &me);
/// "chain": times w, and on through the next worker, up to the last one.
void serveChain(Member &me);

/// Plays a row as one of the workers.
void play(const Row &row, Member &me);

inline Tensor number(float value) {
  Tensor made = Tensor::zeros(TDM_F32, {});
  check(tdm_tensor_write(made.get(), &value, sizeof value));
  return made;
}
inline float valueOf(const Tensor &tensor) {
  float value = -1e9f;
  if (tensor.defined() && tensor.elements() == 1)
    check(tdm_tensor_read(tensor.get(), &value, sizeof value));
  return value;
}

} // namespace tdm::dist::testing

#endif
