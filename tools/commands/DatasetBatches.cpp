//===- DatasetBatches.cpp - batches, now and ahead of their step ----------===//
//
// There are two sets of tensors: while the model reads one of them, the thread
// of readAhead() fills the other. Who is filling is told by background_ alone,
// so that nothing else is shared: gather() waits for it, and changes the sets.
//
//===----------------------------------------------------------------------===//
#include "tools/commands/Dataset.h"
#include "tools/commands/RowSource.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tandem::commands {

using artifact::DType;
using runtime::Tensor;

void Dataset::takePiece(Column &column, int which) {
  Tensors &tensors = column.tensors[which];
  if (tensors.wide.defined())
    comm::takePiece(column.shard, tensors.wide.data<std::byte>(),
                    tensors.batch.mutableData<std::byte>(),
                    artifact::byteSize(tensors.batch.dtype()));
}

Status Dataset::addRest(int64_t rows) {
  restRows_ = rows;
  return addRestTo(0);
}

Status Dataset::addRestTo(int which) {
  Served &served = served_[which];
  served.rest = served.arguments;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].rowElements == 0)
      continue;
    Tensors &tensors = columns_[i].tensors[which];
    std::vector<int64_t> shape(tensors.batch.shape().begin(),
                               tensors.batch.shape().end());
    shape[0] = restRows_;
    auto rest =
        Tensor::in(tensors.batch.storage(), tensors.batch.dtype(), shape);
    if (!rest)
      return std::move(rest).status();
    tensors.rest = std::move(*rest);
    served.rest[i] = {served.rest[i].name, &tensors.rest};
  }
  return Status::success();
}

/// Makes the tensors that are filled while the others are read.
Status Dataset::makeSecond() {
  served_[1] = served_[0];
  for (size_t i = 0; i < columns_.size(); ++i) {
    Column &column = columns_[i];
    if (column.rowElements == 0)
      continue;
    Tensors &second = column.tensors[1];
    for (auto [from, to] : {std::pair(&column.tensors[0].batch, &second.batch),
                            std::pair(&column.tensors[0].wide, &second.wide)}) {
      if (!from->defined())
        continue;
      auto made = Tensor::zeros(from->dtype(), from->shape());
      if (!made)
        return std::move(made).status();
      *to = *std::move(made);
    }
    served_[1].arguments[i] = {served_[1].arguments[i].name, &second.batch};
  }
  return restRows_ ? addRestTo(1) : Status::success();
}

/// Writes `row` of its array to the i-th place of the batch.
Status Dataset::fillRow(Column &column, int which, int64_t i, int64_t row,
                        uint64_t draw, std::vector<std::byte> &scratch) const {
  Tensor &whole = column.tensors[which].whole();
  const NamedArray &from = *column.from;
  DType type = from.array.dtype;
  int64_t fromBytes = column.rowElements * artifact::byteSize(type);
  int64_t toBytes = column.rowElements * artifact::byteSize(whole.dtype());
  std::byte *to = whole.mutableData<std::byte>() + i * toBytes;
  if (!from.rows) {
    io::castElements(from.view().bytes.data() + row * fromBytes, type, to,
                     whole.dtype(), column.rowElements, from.cast);
  } else {
    bool isSame = type == whole.dtype() && !from.cast.scales;
    scratch.resize(size_t(fromBytes));
    std::span<std::byte> made(isSame ? to : scratch.data(), size_t(fromBytes));
    if (Status status = from.rows->read(row, made); !status)
      return status;
    if (column.value) {
      // A piece of the whole, whose elements messages name.
      io::ArrayView view(type, from.array.shape, made);
      std::vector<std::string> notes;
      if (Status status = checkNumbers(view, *column.value, from.cast, notes,
                                       row * column.rowElements);
          !status)
        return std::move(status).in(from.rows->nameOf(row));
    }
    if (!isSame)
      io::castElements(made.data(), type, to, whole.dtype(), column.rowElements,
                       from.cast);
  }
  if (!column.augmentation)
    return Status::success();
  // A pixel's channels are moved as one.
  const ImageLayout &images = column.images;
  int64_t pixel = (images.hasPlanes ? 1 : images.channels) *
                  artifact::byteSize(whole.dtype());
  column.augmentation->apply({to, size_t(toBytes)}, images.height, images.width,
                             pixel, draw, scratch);
  return Status::success();
}

Status Dataset::fill(int which, std::span<const int64_t> rows, uint64_t seed,
                     int64_t epoch) {
  auto given = static_cast<int64_t>(rows.size());
  served_[which].isRest = given < batch_;
  for (Column &column : columns_) {
    if (column.rowElements == 0)
      continue;
    int64_t count = std::min(column.rows, given);
    int64_t bytes =
        column.rowElements * artifact::byteSize(column.from->array.dtype);
    auto take = [&](int64_t i, int thread) {
      int64_t row = rows[size_t(column.first + i)];
      return fillRow(column, which, i, row, drawOf(seed, epoch, row),
                     scratch_[size_t(thread)]);
    };
    if (column.from->rows) {
      // Rows that lie together are read together; their places stay.
      std::vector<int64_t> sorted(static_cast<size_t>(count));
      std::iota(sorted.begin(), sorted.end(), 0);
      std::ranges::sort(sorted, {}, [&](int64_t i) {
        return rows[size_t(column.first + i)];
      });
      auto takeSorted = [&](int64_t i, int thread) {
        return take(sorted[size_t(i)], thread);
      };
      if (Status status = forEachRow(*pool_, count, takeSorted); !status)
        return std::move(status).in(option_ + " '" + column.from->name + "'");
    } else {
      // All of them are asked for before the first one is waited for.
      for (int64_t i = 0; i < count; ++i)
        column.from->readAhead(rows[size_t(column.first + i)] * bytes, bytes);
      for (int64_t i = 0; i < count; ++i) {
        if (Status status = take(i, 0); !status)
          return status;
        // A page that is read stays, with up to 2 MiB around it.
        if (i % 32 == 31 || i + 1 == count)
          column.from->release();
      }
    }
    takePiece(column, which);
  }
  return Status::success();
}

Status Dataset::gather(std::span<const int64_t> rows) {
  if (background_ && background_->isBusy()) {
    Status status = background_->wait();
    bool isThis = ahead_ == Wanted{{rows.begin(), rows.end()}, seed_, epoch_};
    ahead_.reset();
    if (isThis) {
      current_ = 1 - current_;
      return status;
    }
  }
  return fill(current_, rows, seed_, epoch_);
}

Status Dataset::readAhead(std::span<const int64_t> rows, int64_t epoch) {
  if (!isStreamed_ || rows.empty())
    return Status::success();
  if (!background_) {
    if (Status status = makeSecond(); !status)
      return status;
    background_ = std::make_unique<Background>();
  }
  ahead_ = Wanted{{rows.begin(), rows.end()}, seed_, epoch};
  background_->start([this, which = 1 - current_] {
    return fill(which, ahead_->rows, ahead_->seed, ahead_->epoch);
  });
  return Status::success();
}

} // namespace tandem::commands
