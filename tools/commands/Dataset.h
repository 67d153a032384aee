//===- Dataset.h - arrays of rows, served in batches ----------------------===//
//
// The arrays given to a program's inputs, N rows each, and one tensor per input
// that holds the current batch. The batch is the first dimension of the inputs.
// An input of rank 0, or one whose first dimension is not the batch and whose
// array has exactly its shape, is the same in every batch. Arrays that would
// grow much by it stay in the types of their files and are converted as they
// are served; that they can be was checked before. The tensors are made once,
// so that serving a batch allocates nothing.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_DATASET_H
#define TANDEM_TOOLS_COMMANDS_DATASET_H

#include "runtime/comm/Shard.h"
#include "tools/commands/Arrays.h"
#include "tools/commands/Augment.h"

namespace tandem::commands {

/// What a data set is made for.
struct DataUse {
  std::string option; ///< that gives the arrays: "--data"
  /// Given though the program may have no such inputs.
  std::vector<std::string> also = {};
  /// For each argument, whether it is needed; empty: all inputs are.
  std::vector<char> needs = {};
  bool mayBeEmpty = false; ///< no rows are fine
  /// An array that is longer in the input's type than in its own, and than this
  /// many bytes, is converted batch by batch; others at once.
  int64_t atOnce = int64_t(64) << 20;
  /// Whose ranks take their pieces of each batch; null: the program takes it
  /// whole.
  const runtime::Model *ranks = nullptr;
};

/// Of several sizes, returns the program of that name in the first one whose
/// rows the arrays have; `program` itself where there is none, or one size.
const artifact::Program &programForRows(const artifact::Manifest &manifest,
                                        const artifact::Program &program,
                                        const std::vector<NamedArray> &arrays);

class Dataset {
public:
  /// Matches arrays with the inputs of `program` of `manifest`, which must
  /// outlive the result. With ranks, `manifest` is that of whole values. Fails
  /// with Usage, naming everything that is missing, unknown, of the wrong
  /// shape, or no number that the input takes.
  static Result<Dataset> match(const artifact::Manifest &manifest,
                               const artifact::Program &program,
                               std::vector<NamedArray> arrays,
                               const DataUse &use);

  /// Returns the program that the batches are for: that of the first size that
  /// the arrays fit.
  const artifact::Program &program() const { return *program_; }
  int64_t rows() const { return rows_; }
  int64_t batch() const { return batch_; }

  /// Lets `gather` take so many rows too, which do not fill a batch.
  Status addRest(int64_t rows);

  /// Changes images as they are gathered, differently in each pass. Fails with
  /// Usage where an input has no images.
  Status augment(const std::vector<std::string> &texts);
  /// Draws the rows of each pass by `weights`, one for each row: as many as
  /// there are, with replacement. Fails with Usage where they are no weights.
  Status drawBy(NamedArray weights);
  /// Returns the rows of pass number `epoch`, as rowOrder or by the weights.
  std::vector<int64_t> order(bool shuffle, uint64_t seed, int64_t epoch) const;
  /// Returns the weights, or null.
  const NamedArray *weights() const { return weights_ ? &*weights_ : nullptr; }

  /// What is gathered from here on is of this pass.
  void beginPass(uint64_t seed, int64_t epoch) {
    seed_ = seed;
    epoch_ = epoch;
  }
  /// Returns what is done to the images of input `name`; empty: nothing.
  std::string augmentationOf(std::string_view name) const;

  /// Copies the given rows, `batch()` of them or those of `addRest`, into the
  /// batch.
  void gather(std::span<const int64_t> rows);

  /// Has the system read these rows, where they are in mapped files, while
  /// something else is done.
  void readAhead(std::span<const int64_t> rows) const;

  /// Returns what was gathered last as arguments of the program.
  std::span<const runtime::Argument> arguments() const {
    return isRest_ ? rest_ : arguments_;
  }

  /// Returns the whole array `name`, or nothing.
  std::optional<io::ArrayView> array(std::string_view name) const;

  /// The same with how it is read; null if there is none.
  const NamedArray *named(std::string_view name) const;

  /// Returns, for each array with NaN or infinity, a text that names it and the
  /// first such element.
  std::vector<std::string> nonFinite() const;

  /// Returns which of `rows`, a batch, are not finite, the first few; of ranks,
  /// those of this one: "row 3 of --data 'x' ('x.npy')". Empty if none is.
  std::string nonFiniteRows(std::span<const int64_t> rows) const;

  /// Returns what the user should know of the arrays.
  const std::vector<std::string> &notes() const { return notes_; }

private:
  struct Column {
    const NamedArray *from = nullptr;
    runtime::Tensor batch;   ///< this rank's piece of it
    int64_t rowElements = 0; ///< 0: the same in every batch
    int64_t first = 0;    ///< of the batch's rows the first that is this rank's
    int64_t rows = 0;     ///< of the batch that are this rank's
    comm::Shard shard;    ///< of these rows
    runtime::Tensor wide; ///< before they are cut; undefined: they are not
    runtime::Tensor rest; ///< the first rows of `batch`
    std::optional<Augmentation> augmentation;
  };

  void findBatch(const artifact::Program &program);
  void checkNames(const artifact::Program &program, const DataUse &use,
                  Problems &problems);
  Status cut(Column &column, const artifact::Slot &slot,
             const DataUse &use) const;
  static void takePiece(Column &column);
  Status addColumn(const artifact::Manifest &manifest,
                   const artifact::Slot &slot, const DataUse &use,
                   Problems &problems);

  const artifact::Program *program_ = nullptr;
  int64_t rows_ = 0, batch_ = 0;
  std::string option_, rowsOf_;
  std::vector<NamedArray> arrays_;
  std::vector<Column> columns_;
  std::vector<runtime::Argument> arguments_, rest_;
  bool isRest_ = false;
  std::optional<NamedArray> weights_;
  std::vector<double> sums_; ///< of the weights until each row
  uint64_t seed_ = 0;
  int64_t epoch_ = 0;
  std::vector<std::byte> scratch_; ///< an image
  std::vector<std::string> notes_;
};

/// The option `--on-nan=stop|report`.
void declareOnNaN(OptionTable &options, std::string &target);

/// True unless a number that is none ends the command.
bool goesOn(std::string_view onNaN);

/// Looks for NaN and infinity in the arrays: fails, or with "report" warns.
Status checkFinite(const Dataset &data, const std::string &onNaN);

/// Returns the order in which pass number `epoch` visits `rows` rows: as they
/// are or, with `shuffle`, in a permutation that depends on these numbers
/// alone.
std::vector<int64_t> rowOrder(int64_t rows, bool shuffle, uint64_t seed,
                              int64_t epoch);

/// Returns a well mixed 64-bit value for each counter (SplitMix64: Steele, Lea,
/// Flood, "Fast splittable pseudorandom number generators", 2014).
inline uint64_t mix(uint64_t counter) {
  uint64_t z = counter + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

} // namespace tandem::commands

#endif
