//===- Steps.h - training steps of a model on ranks and on one process ----===//
#ifndef TANDEM_TESTS_SHARD_STEPS_H
#define TANDEM_TESTS_SHARD_STEPS_H

#include "tests/shard/Models.h"
#include "tests/shard/Ranks.h"

#include "mlir/IR/Diagnostics.h"

#include <functional>
#include <memory>

namespace tandem::test {

/// How a model is compiled.
struct Request {
  std::string mesh, parallel, plan;
  std::string optimizer = "adamw:lr=0.05"; ///< empty: only to `optimize`
  std::string clip = {};
  bool accumulates = false;
  Sizes sizes = {};
  std::string lossScale = {};
  std::vector<std::string> groups = {};
  std::string schedule = {}, ema = {}, swa = {}, noise = {};
  bool centralizes = false;
  std::string batchNorm = {};
};

inline constexpr const char *kSgd = "sgd:lr=0.1";
/// Columns of one product, and rows of the next.
inline constexpr const char *kMegatron = R"({
  "(q|k|v|up)\\.w": ["tensor", null], "(q|k|v|up)\\.bias": ["tensor"],
  "(out|down)\\.w": [null, "tensor"]})";

using Model = std::function<void(Trace &, const Sizes &)>;

class Compiled {
public:
  Compiled(const Model &program, const Request &setup);
  mlir::func::FuncOp function(llvm::StringRef name) {
    return module->lookupSymbol<mlir::func::FuncOp>(name);
  }
  /// The collectives of a function: "all_reduce", ...
  std::map<std::string, int> collectives(llvm::StringRef name);

  mlir::MLIRContext context;
  std::string diagnostics;
  mlir::ScopedDiagnosticHandler handler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  bool isMade = false;

private:
  void stamp(const Request &setup);
};

/// Numbers that look random, the same for the same seed.
class Numbers {
public:
  explicit Numbers(uint64_t seed) : state(seed) {}
  double operator()() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state >> 33) / static_cast<double>(1u << 31);
  }

private:
  uint64_t state;
};

/// What `step` starts with. Of the integers, a quarter are `ignored`; the rows
/// of a batch have more of them the later they are.
Values startOf(mlir::func::FuncOp step, uint64_t seed);

/// True if all elements are the same, but for rounding.
bool isNear(const Array &a, const Array &b);

/// New values in place of the old ones.
void follow(Values &values, const Values &results);

/// Three steps on ranks are those of one process. Returns the program of ranks.
std::unique_ptr<Compiled> expectEqual(const Model &model, const Request &setup);

} // namespace tandem::test

#endif
