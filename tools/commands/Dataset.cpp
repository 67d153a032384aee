//===- Dataset.cpp - arrays of rows, served in batches --------------------===//
#include "tools/commands/Dataset.h"

#include "runtime/artifact/NearestName.h"
#include "runtime/io/Elements.h"
#include "tools/commands/Print.h"
#include "tools/commands/Ranks.h"
#include "tools/commands/RowSource.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

namespace tandem::commands {

using artifact::DType;
using artifact::Slot;
using runtime::Tensor;

namespace {

/// Returns "f32 [N, 8]": what the rows for an input of this shape look like.
std::string rowsText(const Slot &slot) {
  std::string text = runtime::toString(slot.shape);
  text.replace(1, text.find_first_of(",]") - 1, "N");
  return std::string(spelling(slot.dtype)) + " " + text;
}

bool sameShape(std::span<const int64_t> a, std::span<const int64_t> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

/// Converts an array that was checked, unless it grows beyond `limit` by it.
Status castAtOnce(NamedArray &named, artifact::DType to, int64_t limit) {
  io::ArrayView array = named.view();
  int64_t elements =
      int64_t(array.bytes.size()) / artifact::byteSize(array.dtype);
  int64_t bytes = elements * artifact::byteSize(to);
  bool isSame = array.dtype == to && !named.cast.scales;
  // What is mapped may be larger than the memory.
  if (isSame || (named.memory && bytes > limit) ||
      bytes > std::max(limit, int64_t(array.bytes.size())))
    return Status::success();
  auto converted = io::castArray(array, to, named.cast);
  if (!converted)
    return std::move(converted).status();
  named.array = *std::move(converted);
  named.memory = nullptr;
  named.cast = {};
  return Status::success();
}

} // namespace

const artifact::Program &programForRows(const artifact::Manifest &manifest,
                                        const artifact::Program &program,
                                        const std::vector<NamedArray> &arrays) {
  auto fits = [&](const artifact::Program &one) {
    int64_t batch = 0;
    for (const Slot *slot : inputsOf(one)) {
      if (slot->shape.empty())
        continue;
      batch = batch ? batch : slot->shape[0];
      for (const NamedArray &given : arrays) {
        std::span<const int64_t> shape = given.array.shape,
                                 wanted = slot->shape;
        if (given.name != slot->name)
          continue;
        bool isBatched = !shape.empty() && wanted[0] == batch;
        if (!sameShape(shape.subspan(isBatched), wanted.subspan(isBatched)))
          return false;
      }
    }
    return true;
  };
  for (const artifact::Program &one : manifest.programs)
    if (!manifest.sizes.empty() && one.name == program.name && fits(one))
      return one;
  return program;
}

void Dataset::findBatch(const artifact::Program &program) {
  for (const Slot *slot : inputsOf(program))
    if (!slot->shape.empty() && batch_ == 0)
      batch_ = slot->shape[0];
}

void Dataset::checkNames(const artifact::Program &program, const DataUse &use,
                         Problems &problems) {
  if (batch_ == 0)
    problems.add("program '" + program.name +
                 "' has no input whose first dimension could be the batch: "
                 "expected one of at least 1");
  std::vector<const Slot *> inputs = inputsOf(program);
  std::string known;
  std::vector<std::string_view> names;
  for (const Slot *slot : inputs) {
    known += (known.empty() ? "'" : ", '") + slot->name + "'";
    names.push_back(slot->name);
  }
  for (const NamedArray &given : arrays_)
    if (std::ranges::find(use.also, given.name) == use.also.end() &&
        std::none_of(inputs.begin(), inputs.end(),
                     [&](const Slot *s) { return s->name == given.name; }))
      problems.add(option_ + " '" + given.name + "': program '" + program.name +
                   "' has no such input" + didYouMean(given.name, names) +
                   "; it has " + (known.empty() ? "none" : known));
}

/// Makes the tensors of a column.
Status Dataset::cut(Column &column, const Slot &slot,
                    const DataUse &use) const {
  const runtime::Model *model = use.ranks;
  const artifact::Value *value =
      model ? model->manifest().findValue(slot.name) : nullptr;
  const comm::MeshCommunicators *ranks =
      model ? model->communicators() : nullptr;
  column.shard = value && ranks ? comm::shardOf(ranks->mesh(), *value,
                                                ranks->world().rank())
                                : comm::allOf(slot.shape);
  const std::vector<int64_t> &sizes = column.shard.sizes;
  auto batch = Tensor::zeros(slot.dtype, sizes);
  if (!batch)
    return std::move(batch).status();
  column.tensors[0].batch = std::move(*batch);
  column.rows = sizes.empty() ? 0 : sizes[0];
  if (column.shard.isWhole())
    return Status::success();
  std::vector<int64_t> wide = column.shard.whole;
  if (wide[0] == batch_) {
    // Other rows are not even converted.
    column.rows = column.shard.held(0);
    wide[0] = sizes[0];
    column.shard.whole[0] = sizes[0];
    column.first = std::exchange(column.shard.begins[0], 0);
  }
  if (column.shard.isWhole())
    return Status::success();
  auto rows = Tensor::zeros(slot.dtype, wide);
  if (!rows)
    return std::move(rows).status();
  column.tensors[0].wide = std::move(*rows);
  return Status::success();
}

/// True if the array is of bytes, as those of images, and the model's value
/// takes each of the 256: rows need not be looked at.
static bool takesAllBytes(const artifact::Value &value,
                          const NamedArray &array) {
  if (array.array.dtype != DType::U8 || value.high)
    return false;
  std::array<std::byte, 256> all;
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = std::byte(i);
  int64_t count = all.size();
  io::ArrayView view(DType::U8, std::span(&count, 1), all);
  return io::checkCast(view, value.dtype, array.cast).ok();
}

/// Matches one input with its array. Problems are collected; what is returned
/// is a want of memory.
Status Dataset::addColumn(const artifact::Manifest &manifest, const Slot &slot,
                          const DataUse &use, Problems &problems) {
  auto found = std::find_if(
      arrays_.begin(), arrays_.end(),
      [&](const NamedArray &given) { return given.name == slot.name; });
  bool batched = !slot.shape.empty() && slot.shape[0] == batch_;
  std::string expected =
      batched ? rowsText(slot) : runtime::describe(slot.dtype, slot.shape);
  std::string name = option_ + " '" + slot.name + "'";
  if (found == arrays_.end()) {
    problems.add("missing " + name + " (" + expected + ")");
    return Status::success();
  }
  std::span<const int64_t> shape = found->array.shape;
  bool fits =
      shape.size() == slot.shape.size() &&
      (batched ? sameShape(shape.subspan(1), std::span(slot.shape).subspan(1))
               : sameShape(shape, slot.shape));
  if (!fits) {
    problems.add(name + ": expected " + expected + " but got " +
                 runtime::describe(found->array.dtype, shape));
    return Status::success();
  }
  std::vector<std::string> notes;
  const artifact::Value *value = manifest.findValue(slot.name);
  auto look = [&] {
    if (found->rows && !batched)
      return Status::usage("expected an array of at most 64 MiB for an input "
                           "without rows");
    if (Status status = takeSamples(*found); !status)
      return status;
    // Rows that are made later are looked at then.
    Status status;
    const io::Array &array = found->array;
    if (value && !found->rows)
      for (io::ArrayView piece(array.dtype, array.shape, {});
           status && found->nextPiece(piece.bytes);)
        status = checkNumbers(piece, *value, found->cast, notes,
                              found->firstOf(piece.bytes));
    return status;
  };
  if (Status status = look(); !status) {
    problems.add(name + ": " + status.message());
    return Status::success();
  }
  for (const std::string &text : notes)
    notes_.push_back(name + ": " + text);
  int64_t rows = batched ? shape[0] : 0; // `shape` ends with the old array
  if (!found->rows)
    if (Status status = castAtOnce(*found, slot.dtype, use.atOnce); !status)
      return status;
  Column column;
  column.from = &*found;
  if (Status status = cut(column, slot, use); !status)
    return status;
  Tensor &wide = column.tensors[0].whole();
  isStreamed_ |= found->rows || found->memory;
  if (found->rows && value && !takesAllBytes(*value, *found))
    column.value = value;
  if (batched) {
    if (rowsOf_.empty()) {
      rowsOf_ = slot.name;
      rows_ = rows;
    } else if (rows != rows_) {
      problems.add(name + ": expected " + std::to_string(rows_) +
                   " rows, as '" + rowsOf_ + "' has, but got " +
                   std::to_string(rows));
    }
    column.rowElements = wide.elements() / wide.shape()[0];
  } else {
    io::castElements(found->view().bytes.data(), found->array.dtype,
                     wide.mutableData<std::byte>(), slot.dtype, wide.elements(),
                     found->cast);
    takePiece(column, 0);
  }
  columns_.push_back(std::move(column));
  return Status::success();
}

/// Rows of tars belong together where their samples have the same names.
Status Dataset::takeSamples(const NamedArray &array) {
  if (!array.samples)
    return Status::success();
  if (!samples_)
    samples_ = {array.name, *array.samples};
  return samples_->second == *array.samples
             ? Status::success()
             : Status::usage("its samples are others than those of '" +
                             samples_->first + "'");
}

Result<Dataset> Dataset::match(const artifact::Manifest &manifest,
                               const artifact::Program &asked,
                               std::vector<NamedArray> arrays,
                               const DataUse &use) {
  Dataset data;
  const artifact::Program &program = programForRows(manifest, asked, arrays);
  data.program_ = &program;
  data.arrays_ = std::move(arrays);
  data.option_ = use.option;
  Problems problems;
  data.findBatch(program);
  data.checkNames(program, use, problems);
  if (data.batch_ == 0)
    return problems.status();
  std::vector<const Slot *> inputs =
      use.needs.empty() ? inputsOf(program) : inputsOf(program, use.needs);
  for (const Slot *slot : inputs)
    if (Status status = data.addColumn(manifest, *slot, use, problems); !status)
      return status;
  if (problems.none() && data.rowsOf_.empty())
    problems.add("no input that is needed has rows");
  if (problems.none() && data.rows_ == 0 && !use.mayBeEmpty)
    problems.add(use.option + ": expected at least one row but got none");
  if (!problems.none())
    return problems.status();
  for (size_t i = 0; i < inputs.size(); ++i)
    data.served_[0].arguments.push_back(
        {inputs[i]->name, &data.columns_[i].tensors[0].batch});
  data.scratch_.resize(1);
  for (const NamedArray &given : data.arrays_)
    if (given.rows && !data.pool_) {
      data.pool_ = std::make_unique<runtime::ThreadPool>(threadsOfRank());
      data.scratch_.resize(size_t(data.pool_->threads()));
    }
  return data;
}

Status Dataset::augment(const std::vector<std::string> &texts) {
  for (const std::string &text : texts) {
    auto made = Augmentation::parse(text);
    if (!made)
      return std::move(made).status();
    std::vector<std::string_view> names;
    Column *column = nullptr;
    for (Column &one : columns_) {
      names.push_back(one.from->name);
      if (one.from->name == made->name)
        column = &one;
    }
    const std::string who = "--augment '" + made->name + "': ";
    if (!column)
      return Status::usage(who + "there is no such input" +
                           didYouMean(made->name, names));
    if (column->augmentation)
      return Status::usage(who + "it is there twice");
    const Tensor &wide = column->tensors[0].whole();
    if (column->rowElements == 0 || wide.rank() < 3)
      return Status::usage(who +
                           "expected rows of images, [N, ..., H, W], but "
                           "got " +
                           runtime::describe(wide.dtype(), wide.shape()));
    std::span<const int64_t> shape = wide.shape();
    auto layout = imageLayoutOf(shape);
    column->images =
        layout ? *layout
               : ImageLayout{shape[shape.size() - 2], shape.back(), 1, true};
    if (!column->images.hasPlanes)
      notes_.push_back(who + "rows of " +
                       runtime::describe(wide.dtype(), shape) +
                       " are images [H, W, C], as folders of images are read");
    int64_t least = std::min(column->images.height, column->images.width);
    if (made->pad >= least)
      return Status::usage(
          who + "expected a crop of less than " + std::to_string(least) +
          ", the side of an image, but got " + std::to_string(made->pad));
    for (std::vector<std::byte> &scratch : scratch_)
      scratch.reserve(
          size_t(column->rowElements * artifact::byteSize(wide.dtype())));
    column->augmentation = *std::move(made);
  }
  // An image and its mask are moved together, along the same dimensions.
  for (const Column &image : columns_)
    for (Column &other : columns_) {
      const Tensor &mask = other.tensors[0].whole();
      if (image.augmentation && !image.images.hasPlanes && other.augmentation &&
          mask.rank() == 4 && !imageLayoutOf(mask.shape()) &&
          mask.shape()[1] == image.images.height &&
          mask.shape()[2] == image.images.width)
        return Status::usage(
            "--augment '" + other.from->name +
            "': expected [N, H, W], or 1 or 3 channels behind the pixels, "
            "beside the images [H, W, C] of '" +
            image.from->name + "', but got " +
            runtime::describe(mask.dtype(), mask.shape()));
    }
  return Status::success();
}

Status Dataset::drawBy(NamedArray weights) {
  io::ArrayView view = weights.view();
  if (view.shape.size() != 1 || view.shape[0] != rows_)
    return Status::usage("--weights: expected " + std::to_string(rows_) +
                         " numbers, one for each row, but got " +
                         runtime::describe(view.dtype, view.shape));
  if (weights.rows)
    return Status::unsupported("--weights: all rows are drawn by it, and it is "
                               "larger than 64 MiB: expected an .npy with the "
                               "same numbers");
  double sum = 0;
  for (int64_t row = 0; row < rows_; ++row) {
    double weight = io::elementAsDouble(view.dtype, view.bytes.data(), row);
    if (!(weight >= 0) || !std::isfinite(weight))
      return Status::usage("--weights: expected numbers from 0 on, but that of "
                           "row " +
                           std::to_string(row) + " is " +
                           io::elementText(view, row));
    sums_.push_back(sum += weight);
  }
  if (!std::isfinite(sum))
    return Status::usage("--weights: expected a sum that f64 holds, up to "
                         "1.797e+308, but got " +
                         numberText(sum));
  if (!(sum > 0))
    return Status::usage("--weights: expected a sum above 0 but got " +
                         numberText(sum));
  // A product with a sum that is hardly above 0 would be rounded to few
  // numbers.
  if (sum < 0x1p-500)
    for (double &until : sums_)
      until *= 0x1p500;
  weights_ = std::move(weights);
  return Status::success();
}

Result<RowShare> RowShare::parse(std::string_view text) {
  constexpr int64_t most = 1000000;
  RowShare share;
  const char *end = text.data() + text.size();
  auto [slash, noIndex] = std::from_chars(text.data(), end, share.index);
  if (noIndex == std::errc() && slash != end && *slash == '/') {
    auto [stop, noCount] = std::from_chars(slash + 1, end, share.of);
    if (noCount == std::errc() && stop == end && share.of <= most &&
        share.index >= 0 && share.index < share.of)
      return share;
  }
  return Status::usage("expected INDEX/OF with an index from 0 to OF - 1, as "
                       "0/4, and OF at most " +
                       std::to_string(most) + ", but got " +
                       io::inQuotes(text));
}

std::vector<int64_t> Dataset::drawnRows(uint64_t seed, int64_t epoch) const {
  std::vector<int64_t> rows(static_cast<size_t>(rows_));
  uint64_t counter = mix(mix(seed + 2) ^ uint64_t(epoch));
  for (int64_t &row : rows) {
    // 53 bits: a number below 1, so that one below the sum. A row without
    // weight has the sum of the one before, which is not above it.
    double part = double(mix(counter++) >> 11) * 0x1p-53 * sums_.back();
    auto found = std::ranges::upper_bound(sums_, part);
    if (found == sums_.end()) // the product was rounded up
      found = std::ranges::lower_bound(sums_, sums_.back());
    row = found - sums_.begin();
  }
  return rows;
}

std::vector<int64_t> Dataset::order(bool shuffle, uint64_t seed,
                                    int64_t epoch) const {
  std::vector<int64_t> order =
      weights_ ? drawnRows(seed, epoch)
               : rowOrder(rows_, shuffle, seed, epoch, buffer_);
  if (share_.of == 1)
    return order;
  for (int64_t i = 0; i < rows(); ++i)
    order[size_t(i)] = order[size_t(i * share_.of + share_.index)];
  order.resize(size_t(rows()));
  return order;
}

std::string Dataset::augmentationOf(std::string_view name) const {
  for (const Column &column : columns_)
    if (column.from->name == name && column.augmentation)
      return column.augmentation->text;
  return "";
}

std::optional<io::ArrayView> Dataset::array(std::string_view name) const {
  const NamedArray *found = named(name);
  return found ? std::optional(found->view()) : std::nullopt;
}

const NamedArray *Dataset::named(std::string_view name) const {
  for (const NamedArray &given : arrays_)
    if (given.name == name)
      return &given;
  return nullptr;
}

std::vector<std::string> Dataset::nonFinite() const {
  std::vector<std::string> texts;
  for (const NamedArray &given : arrays_) {
    std::optional<int64_t> index;
    if (!io::isInteger(given.array.dtype) && !given.rows)
      for (io::Bytes piece; !index && given.nextPiece(piece);)
        if ((index = io::firstNonFinite({given.array.dtype, {}, piece})))
          *index += given.firstOf(piece);
    if (index)
      texts.push_back(
          option_ + " '" + given.name + "': element " +
          io::positionText(given.array.shape, *index) +
          (given.file.empty() ? "" : " of " + io::inQuotes(given.file)) +
          " is " + io::elementText(given.view(), *index));
  }
  return texts;
}

std::string Dataset::nonFiniteRows(std::span<const int64_t> rows) const {
  constexpr int64_t shown = 3;
  std::string text;
  int64_t found = 0;
  for (const Column &column : columns_) {
    io::ArrayView array = column.from->view();
    int64_t bytes = column.rowElements * artifact::byteSize(array.dtype);
    auto count = std::min(column.rows, static_cast<int64_t>(rows.size()));
    std::vector<std::byte> made(column.from->rows ? size_t(bytes) : 0);
    for (int64_t i = 0; i < count && bytes; ++i) {
      int64_t row = rows[size_t(column.first + i)];
      if (column.from->rows && !column.from->rows->read(row, made))
        continue;
      io::ArrayView view(
          array.dtype, std::span(&column.rowElements, 1),
          column.from->rows
              ? io::Bytes(made)
              : array.bytes.subspan(size_t(row * bytes), size_t(bytes)));
      if (!io::firstNonFinite(view) || ++found > shown)
        continue;
      const std::string &file = column.from->file;
      text += (text.empty() ? "row " : ", row ") + std::to_string(row) +
              " of " + option_ + " '" + column.from->name + "'" +
              (file.empty() ? "" : " (" + io::inQuotes(file) + ")");
    }
  }
  if (found > shown)
    text += " and " + std::to_string(found - shown) + " more";
  return text;
}

void declareOnNaN(OptionTable &options, std::string &target) {
  options
      .text("on-nan", "stop|report", target,
            "what to do where data or a loss is NaN or infinite: stop, and "
            "write nothing, or say so and go on")
      .oneOf({"stop", "report"})
      .byDefault("stop");
}

bool goesOn(std::string_view onNaN) { return onNaN != "stop"; }

Status checkFinite(const Dataset &data, const std::string &onNaN) {
  std::string all;
  for (const std::string &text : data.nonFinite()) {
    all += (all.empty() ? "" : "; ") + text;
    if (goesOn(onNaN))
      warn(text);
  }
  if (all.empty() || goesOn(onNaN))
    return Status::success();
  return Status::failed(all + "; '--on-nan=report' goes on");
}

std::vector<int64_t> rowOrder(int64_t rows, bool shuffle, uint64_t seed,
                              int64_t epoch, int64_t buffer) {
  std::vector<int64_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  if (!shuffle)
    return order;
  uint64_t counter = mix(mix(seed) ^ uint64_t(epoch));
  // An index below `bound` is the high half of a 128-bit product, and the few
  // low halves that would favour some are drawn again.
  auto below = [&](uint64_t bound) {
    unsigned __int128 product;
    do
      product = static_cast<unsigned __int128>(mix(counter++)) * bound;
    while (uint64_t(product) < -bound % bound);
    return uint64_t(product >> 64);
  };
  if (buffer > 0) {
    // What lies from `row` on, as far as the buffer goes, is in the buffer.
    for (int64_t row = 0; row < rows; ++row)
      std::swap(
          order[size_t(row)],
          order[size_t(row) + below(uint64_t(std::min(buffer, rows - row)))]);
    return order;
  }
  // Fisher and Yates.
  for (auto bound = uint64_t(rows); bound > 1; --bound)
    std::swap(order[bound - 1], order[below(bound)]);
  return order;
}

} // namespace tandem::commands
