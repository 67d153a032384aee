//===- Dataset.h - arrays of rows, served in batches ----------------------===//
//
// The arrays given to a program's inputs, N rows each, and one tensor per input
// that holds the current batch. The batch is the first dimension of the inputs.
// An input of rank 0, or one whose first dimension is not the batch and whose
// array has exactly its shape, is the same in every batch. Arrays that would
// grow much by it stay in the types of their files and are converted as they
// are served; that they can be was checked before. The tensors are made once,
// so that serving a batch allocates nothing. Of rows that are mapped or made
// when they are needed, a thread gathers the next batch while the model
// computes (readAhead), into tensors of their own.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_DATASET_H
#define TANDEM_TOOLS_COMMANDS_DATASET_H

#include "runtime/comm/Shard.h"
#include "runtime/device/ThreadPool.h"
#include "tools/commands/Arrays.h"
#include "tools/commands/Augment.h"
#include "tools/commands/Background.h"
#include "tools/commands/ImageLayout.h"

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

/// Which rows of a pass's order: `index`, `index + of` and so on, of `of`
/// shares that are equally large.
struct RowShare {
  int64_t index = 0, of = 1;

  /// Fails with Usage unless the text is "INDEX/OF", as "0/4".
  static Result<RowShare> parse(std::string_view text);
};

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
  /// Returns how many rows a pass has.
  int64_t rows() const { return rows_ / share_.of; }
  int64_t batch() const { return batch_; }
  /// Returns whether there are rows that are not in memory.
  bool isStreamed() const { return isStreamed_; }

  /// Lets `gather` take so many rows too, which do not fill a batch.
  Status addRest(int64_t rows);

  /// Changes images as they are gathered, differently in each pass: those that
  /// imageLayoutOf knows, and others as [N, ..., H, W]. Fails with Usage where
  /// an input has no images.
  Status augment(const std::vector<std::string> &texts);
  /// Draws the rows of each pass by `weights`, one for each row: as many as
  /// there are, with replacement. Fails with Usage where they are no weights.
  Status drawBy(NamedArray weights);
  /// Shuffles each row with the `rows` next ones alone.
  void shuffleWithin(int64_t rows) { buffer_ = rows; }
  /// Returns in how many rows a row is shuffled; 0: in all.
  int64_t shuffleBuffer() const { return buffer_; }
  /// Takes a share of each pass alone; what is over goes to none.
  void take(RowShare share) { share_ = share; }
  RowShare share() const { return share_; }
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
  /// batch. Fails where a row that is made now cannot be, and names it.
  Status gather(std::span<const int64_t> rows);

  /// Where rows are not in memory, begins to gather these, of pass `epoch`, for
  /// the next call of `gather`, while something else is done.
  Status readAhead(std::span<const int64_t> rows, int64_t epoch);

  /// Returns what was gathered last as arguments of the program.
  std::span<const runtime::Argument> arguments() const {
    const Served &now = served_[current_];
    return now.isRest ? now.rest : now.arguments;
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
  struct Tensors {
    runtime::Tensor batch; ///< this rank's piece of it
    runtime::Tensor wide;  ///< before it is cut; undefined: it is not
    runtime::Tensor rest;  ///< the first rows of `batch`

    runtime::Tensor &whole() { return wide.defined() ? wide : batch; }
  };
  struct Column {
    const NamedArray *from = nullptr;
    const artifact::Value *value = nullptr; ///< rows are looked at, when made
    Tensors tensors[2];      ///< one is filled while the other is read
    int64_t rowElements = 0; ///< 0: the same in every batch
    int64_t first = 0; ///< of the batch's rows the first that is this rank's
    int64_t rows = 0;  ///< of the batch that are this rank's
    comm::Shard shard; ///< of these rows
    std::optional<Augmentation> augmentation;
    ImageLayout images = {}; ///< with an augmentation
  };
  /// A batch as arguments of the program.
  struct Served {
    std::vector<runtime::Argument> arguments, rest;
    bool isRest = false;
  };
  /// What a batch is filled with.
  struct Wanted {
    std::vector<int64_t> rows;
    uint64_t seed = 0;
    int64_t epoch = 0;
    bool operator==(const Wanted &) const = default;
  };

  void findBatch(const artifact::Program &program);
  std::vector<int64_t> drawnRows(uint64_t seed, int64_t epoch) const;
  void checkNames(const artifact::Program &program, const DataUse &use,
                  Problems &problems);
  Status cut(Column &column, const artifact::Slot &slot,
             const DataUse &use) const;
  static void takePiece(Column &column, int which);
  Status fill(int which, std::span<const int64_t> rows, uint64_t seed,
              int64_t epoch);
  Status fillRow(Column &column, int which, int64_t i, int64_t row,
                 uint64_t draw, std::vector<std::byte> &scratch) const;
  Status makeSecond();
  Status addRestTo(int which);
  Status takeSamples(const NamedArray &array);
  Status addColumn(const artifact::Manifest &manifest,
                   const artifact::Slot &slot, const DataUse &use,
                   Problems &problems);

  const artifact::Program *program_ = nullptr;
  int64_t rows_ = 0, batch_ = 0;
  std::string option_, rowsOf_;
  std::vector<NamedArray> arrays_;
  std::vector<Column> columns_;
  Served served_[2];
  int current_ = 0;         ///< of these, which is read
  bool isStreamed_ = false; ///< rows are not in memory
  std::optional<Wanted> ahead_;
  int64_t restRows_ = 0;
  /// Of the first rows of tars: their input, and the sum of their names.
  std::optional<std::pair<std::string, uint32_t>> samples_;
  std::optional<NamedArray> weights_;
  std::vector<double> sums_; ///< of the weights until each row
  int64_t buffer_ = 0;
  RowShare share_;
  uint64_t seed_ = 0;
  int64_t epoch_ = 0;
  std::vector<std::vector<std::byte>> scratch_; ///< of each thread: a row
  std::vector<std::string> notes_;
  std::unique_ptr<runtime::ThreadPool> pool_; ///< that makes rows
  std::unique_ptr<Background> background_;    ///< ends before the rest
};

/// The option `--on-nan=stop|report`.
void declareOnNaN(OptionTable &options, std::string &target);

/// True unless a number that is none ends the command.
bool goesOn(std::string_view onNaN);

/// Looks for NaN and infinity in the arrays: fails, or with "report" warns.
Status checkFinite(const Dataset &data, const std::string &onNaN);

/// Returns the order in which pass number `epoch` visits `rows` rows: as they
/// are or, with `shuffle`, in a permutation that depends on these numbers
/// alone: any of all, or where `buffer` is not 0 what a buffer of so many rows
/// gives, of which each step takes one at random and fills its place with the
/// next row.
std::vector<int64_t> rowOrder(int64_t rows, bool shuffle, uint64_t seed,
                              int64_t epoch, int64_t buffer = 0);

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
