//===- Method.h - ways to compute a kernel, as rows of a table ------------===//
//
// Where several methods compute kernels of one kind, they are rows of one
// ordered table per target: what a method is called, whether it computes a
// kernel or the reason against it, how long it is expected to take, the scratch
// memory that it needs, its code, and what tuning varies of it. The pass
// tandem-choose-methods takes the first row that is good (or, where the table
// says so, the cheapest) and writes its name into the kernel's `schedule`,
// where another one can stand; emission, tuning and `tandem inspect --methods`
// read the same rows.
//
// A reason is a part of a sentence with both numbers: "expected 3x3 taps but
// got 5x5".
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_METHOD_H
#define TANDEM_PASSES_LOWER_COMMON_METHOD_H

#include "ir/Ops.h"

#include <optional>
#include <string>

namespace tandem::lower {

/// Whether a method computes a kernel.
class Fit {
public:
  static Fit good() { return {Good, ""}; }
  /// It does if it is asked for, but another one is expected to be faster.
  static Fit slower(const llvm::Twine &reason) {
    return {Slower, reason.str()};
  }
  /// It does not: there is no code, or too much.
  static Fit impossible(const llvm::Twine &reason) {
    return {Impossible, reason.str()};
  }

  bool isGood() const { return kind == Good; }
  bool isPossible() const { return kind != Impossible; }
  /// Empty if it is good.
  const std::string &reason() const { return why; }

private:
  enum Kind { Good, Slower, Impossible };
  Fit(Kind kind, std::string why) : kind(kind), why(std::move(why)) {}

  Kind kind;
  std::string why;
};

/// "6x5"
std::string crossed(llvm::ArrayRef<int64_t> sizes);
/// The type of an element, as MLIR prints it.
std::string textOf(mlir::Type type);

/// A row. `Subject` is what its functions see of a kernel, and what `emit`
/// writes code with; `Made` what that says of the code. `Round` is what tuning
/// varies, one side of a schedule after the other.
template <typename SubjectT, typename MadeT, typename RoundT = std::nullptr_t>
struct Method {
  using Subject = SubjectT;
  using Made = MadeT;

  llvm::StringLiteral name; ///< one of ir/ScheduleMethods.h
  llvm::StringLiteral summary;
  /// May write code that nothing uses, as that of where an operand lies.
  Fit (*fit)(Subject &);
  /// Writes the code of a kernel for which it is possible.
  mlir::FailureOr<Made> (*emit)(Subject &);
  /// The seconds of a kernel for which it is possible, if a model says them.
  double (*seconds)(Subject &) = nullptr;
  /// The bytes of scratch that the code of a kernel for which it is possible
  /// takes: of each thread, or for cuda of a launch. Null: none.
  int64_t (*scratch)(Subject &) = nullptr;
  llvm::ArrayRef<RoundT> rounds = {};
};

template <typename RowT> struct MethodTable {
  using Row = RowT;

  llvm::StringLiteral of; ///< "a convolution for cpu"
  /// In the order in which they are asked; one of them computes the kernel.
  llvm::ArrayRef<Row> rows;
  /// Of the good rows, the one of the least seconds is taken, which all have.
  bool takesCheapest = false;
  /// Tuning tries other rows than the table's choice: their results differ in
  /// the last bits.
  bool isTuned = false;
};

/// What a table says of a kernel, row by row.
struct MethodLog {
  struct Row {
    llvm::StringRef name, summary;
    Fit fit;
    std::optional<double> seconds; ///< null if it is not possible, or not known
    int64_t scratchBytes = 0;      ///< if it is possible
  };
  std::string of;
  llvm::SmallVector<Row> rows;
  /// The row that was taken; none if what was asked for is refused.
  std::optional<size_t> chosen;
  bool takesCheapest = false, isTuned = false;
};

/// A table without its types.
struct MethodChoices {
  llvm::StringRef of;
  size_t rows;
  bool takesCheapest, isTuned;
  llvm::function_ref<std::pair<llvm::StringRef, llvm::StringRef>(size_t)> about;
  llvm::function_ref<Fit(size_t)> fit;
  llvm::function_ref<std::optional<double>(size_t)> seconds;
  llvm::function_ref<int64_t(size_t)> scratch;
};

/// The row of a kernel.
struct ChosenMethod {
  size_t row = 0;
  llvm::StringRef name;
  int64_t scratchBytes = 0;
};

/// The row for a kernel: the one that its `schedule` names, or the table's
/// choice. Fails, with the reason at the kernel's location, where the one that
/// is named does not compute it. `log`, if there is one, gets what all rows
/// say.
mlir::FailureOr<ChosenMethod>
chooseMethod(KernelOp kernel, const MethodChoices &choices, MethodLog *log);

/// The same of a table, about which its rows are asked; no code of the kernel
/// is written.
template <typename Row>
mlir::FailureOr<ChosenMethod>
chooseByTable(KernelOp kernel, const MethodTable<Row> &table,
              typename Row::Subject &subject, MethodLog *log) {
  using Texts = std::pair<llvm::StringRef, llvm::StringRef>;
  auto about = [&](size_t i) -> Texts {
    return {table.rows[i].name, table.rows[i].summary};
  };
  auto fit = [&](size_t i) { return table.rows[i].fit(subject); };
  auto seconds = [&](size_t i) -> std::optional<double> {
    if (!table.rows[i].seconds)
      return std::nullopt;
    return table.rows[i].seconds(subject);
  };
  auto scratch = [&](size_t i) -> int64_t {
    return table.rows[i].scratch ? table.rows[i].scratch(subject) : 0;
  };
  return chooseMethod(kernel,
                      {table.of, table.rows.size(), table.takesCheapest,
                       table.isTuned, about, fit, seconds, scratch},
                      log);
}

/// Fails, with an error, if the code of a kernel takes other scratch than its
/// row says.
mlir::LogicalResult checkScratch(KernelOp kernel, const ChosenMethod &chosen,
                                 int64_t taken);

/// The code of a kernel by the table's row for it.
template <typename Row>
mlir::FailureOr<typename Row::Made>
emitByTable(KernelOp kernel, const MethodTable<Row> &table,
            typename Row::Subject &subject) {
  mlir::FailureOr<ChosenMethod> chosen =
      chooseByTable(kernel, table, subject, /*log=*/nullptr);
  if (failed(chosen))
    return mlir::failure();
  mlir::FailureOr<typename Row::Made> made =
      table.rows[chosen->row].emit(subject);
  if (failed(made) || failed(checkScratch(kernel, *chosen, made->scratchBytes)))
    return mlir::failure();
  return made;
}

/// The kernel's schedule with this method.
ScheduleAttr scheduleWith(KernelOp kernel, llvm::StringRef method);
/// Takes the method off a kernel that tandem-choose-methods gave it, which its
/// scratch tells; one that was asked for has none beside it, and stays.
void dropChosenMethod(KernelOp kernel);

/// The seconds of a kernel whose anchor makes `multiplyAdds`, whole vectors or
/// tiles of them, `narrow` ones at the rate of narrow types; the other ops and
/// the memory count as everywhere (passes/target/Rates.h).
double secondsOf(KernelOp kernel, mlir::Operation *anchor, double multiplyAdds,
                 bool narrow = false);

} // namespace tandem::lower

#endif
