//===- PassLog.cpp - what each pass of a compilation did ------------------===//
//
// Passes on functions run on several threads, each on a copy of the pass; MLIR
// says which of them are one (getThreadingSiblingOrThis). Which step of the
// list a pass is follows from its name, what it runs on, and the order.
//
//===----------------------------------------------------------------------===//
#include "compiler/PassLog.h"

#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/ADT/DenseMap.h"

#include <chrono>
#include <mutex>

using namespace mlir;
using namespace tandem;

using Clock = std::chrono::steady_clock;

/// Without the module of the whole compilation, so that a pass on all its
/// functions sees as many as one on the module.
static int64_t opsIn(Operation *op) {
  int64_t count = op->getParentOp() ? 0 : -1;
  op->walk([&](Operation *) { ++count; });
  return count;
}

/// Copies are made of copies, where passes nest.
static const Pass *originalOf(const Pass *pass) {
  const Pass *of = pass->getThreadingSiblingOrThis();
  return of == pass ? pass : originalOf(of);
}

namespace {
/// The rows of the steps that a pass manager runs.
class Rows {
public:
  Rows(ArrayRef<PassStep> steps, StringRef label, bool isCounted)
      : isCounted(isCounted) {
    for (const PassStep &step : steps) {
      PassWork &row = works.emplace_back();
      row.phase = step.phase;
      row.label = label.str();
      row.name = step.name;
      row.number = step.number;
      if (isCounted)
        row.before = row.after = 0;
      nests.push_back(step.nest.empty() ? "" : step.nest.back());
      isTaken.push_back(false);
    }
  }

  void begin(Pass *pass, Operation *op) {
    int64_t ops = isCounted ? opsIn(op) : 0;
    std::lock_guard lock(mutex);
    std::optional<size_t> at = placeOf(pass, op);
    if (!at)
      return;
    PassWork &row = works[*at];
    ++row.runs;
    if (isCounted)
      *row.before += ops;
    running[{pass, op}] = {*at, Clock::now()};
  }

  void end(Pass *pass, Operation *op) {
    Clock::time_point now = Clock::now();
    int64_t ops = isCounted ? opsIn(op) : 0;
    std::lock_guard lock(mutex);
    auto found = running.find({pass, op});
    if (found == running.end())
      return;
    PassWork &row = works[found->second.first];
    row.seconds +=
        std::chrono::duration<double>(now - found->second.second).count();
    if (isCounted)
      *row.after += ops;
    running.erase(found);
  }

  std::vector<PassWork> works;

private:
  /// Nothing for what is no step, as that which runs passes on functions.
  std::optional<size_t> placeOf(Pass *pass, Operation *op) {
    const Pass *one = originalOf(pass);
    if (auto known = places.find(one); known != places.end())
      return known->second;
    StringRef name = pass->getArgument();
    name.consume_front("tandem-");
    StringRef nest =
        op->getParentOp() ? op->getName().getStringRef() : StringRef();
    for (size_t i = first; i < works.size(); ++i)
      if (!isTaken[i] && works[i].name == name && nests[i] == nest) {
        isTaken[i] = true;
        // While a pass is on the module, no other one runs.
        if (nest.empty())
          first = i + 1;
        places[one] = i;
        return i;
      }
    return std::nullopt;
  }

  bool isCounted;
  std::mutex mutex;
  std::vector<std::string> nests; ///< what each step runs on; empty: module
  size_t first = 0;               ///< steps before it have run
  std::vector<bool> isTaken;
  llvm::DenseMap<const Pass *, size_t> places;
  llvm::DenseMap<std::pair<Pass *, Operation *>,
                 std::pair<size_t, Clock::time_point>>
      running;
};

class Watch : public PassInstrumentation {
public:
  explicit Watch(std::shared_ptr<Rows> rows) : rows(std::move(rows)) {}

  void runBeforePass(Pass *pass, Operation *op) override {
    rows->begin(pass, op);
  }
  void runAfterPass(Pass *pass, Operation *op) override { rows->end(pass, op); }

private:
  std::shared_ptr<Rows> rows;
};
} // namespace

std::function<void()> PassLog::watch(PassManager &manager,
                                     ArrayRef<PassStep> steps, StringRef label,
                                     bool isCounted) {
  auto rows = std::make_shared<Rows>(steps, label, isCounted);
  manager.addInstrumentation(std::make_unique<Watch>(rows));
  return [this, rows] {
    for (PassWork &row : rows->works)
      passes.push_back(std::move(row));
  };
}
