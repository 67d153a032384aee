//===- Predict.cpp - outputs for any number of rows -----------------------===//
#include "runtime/model/Predict.h"

#include "runtime/artifact/Slice.h"
#include "runtime/model/Pieces.h"
#include "runtime/tensor/Overlap.h"

#include <algorithm>
#include <cstring>
#include <deque>

namespace tandem::runtime {

using artifact::Role;
using artifact::Slot;

namespace {

int64_t batchOf(const artifact::Program &program) {
  for (const Slot &slot : program.arguments)
    if (slot.role == Role::Input && !slot.shape.empty())
      return slot.shape[0];
  return 0;
}

bool hasRows(const Slot &slot, int64_t batch) {
  return !slot.shape.empty() && slot.shape[0] == batch;
}

std::vector<int64_t> withRows(const Slot &slot, int64_t rows) {
  std::vector<int64_t> shape = slot.shape;
  shape[0] = rows;
  return shape;
}

/// What outputs say that they follow from, where nothing is computed here: by
/// others (a model in stages), or not at all.
std::vector<char> saidNeeds(const artifact::Program &program,
                            const std::vector<std::string> &outputs) {
  std::vector<char> needs(program.arguments.size());
  for (const Slot &slot : artifact::outputsOf(program)) {
    if (std::ranges::find(outputs, slot.name) == outputs.end())
      continue;
    for (size_t a = 0; a < needs.size(); ++a)
      needs[a] |= !slot.inputs ||
                  std::ranges::find(*slot.inputs, program.arguments[a].name) !=
                      slot.inputs->end();
  }
  return needs;
}

} // namespace

Result<Prediction> Prediction::of(const artifact::Manifest &manifest,
                                  const std::vector<std::string> &names) {
  Prediction result;
  result.program = manifest.findProgram("evaluate");
  if (!result.program)
    return Status::unsupported("the artifact has no program 'evaluate'");
  result.batch = batchOf(*result.program);
  if (result.batch == 0)
    return Status::unsupported("program 'evaluate' has no input whose first "
                               "dimension could be the batch");
  std::vector<Slot> all = artifact::outputsOf(*result.program);
  std::string known, problems;
  for (const Slot &slot : all)
    if (hasRows(slot, result.batch)) {
      known += (known.empty() ? "'" : ", '") + slot.name + "'";
      if (names.empty())
        result.outputs.push_back(slot);
    }
  if (known.empty())
    return Status::unsupported("program 'evaluate' has no output with a row "
                               "for each of the inputs");
  for (const std::string &name : names) {
    auto found = std::find_if(all.begin(), all.end(), [&](const Slot &slot) {
      return slot.name == name;
    });
    std::string problem;
    if (found == all.end())
      problem = "program 'evaluate' has no output '" + name + "'";
    else if (!hasRows(*found, result.batch))
      problem = "output '" + name +
                "' has no row for each of the inputs: its "
                "type is " +
                describe(found->dtype, found->shape);
    else
      result.outputs.push_back(*found);
    if (!problem.empty())
      problems += (problems.empty() ? "" : "; ") + problem;
  }
  if (!problems.empty())
    return Status::usage(problems + "; those with rows are " + known);
  std::vector<std::string> wanted;
  for (const Slot &slot : result.outputs)
    wanted.push_back(slot.name);
  result.needs = result.program->launches.empty()
                     ? saidNeeds(*result.program, wanted)
                     : artifact::sliceOf(*result.program, wanted).needs;
  return result;
}

Result<std::vector<Tensor>> predict(const Prediction &prediction, int64_t rows,
                                    const ServeRows &serve,
                                    const ComputeRows &compute) {
  std::vector<Tensor> results;
  for (const Slot &slot : prediction.outputs) {
    auto whole = Tensor::zeros(slot.dtype, withRows(slot, rows));
    if (!whole)
      return std::move(whole).status();
    results.push_back(*std::move(whole));
  }
  std::vector<int64_t> served(size_t(prediction.batch));
  // Errors name rows of the batch.
  auto place = [&](Status status, int64_t first, int64_t count) {
    return rows <= prediction.batch
               ? std::move(status)
               : std::move(status).in("rows from " + std::to_string(first) +
                                      " to " +
                                      std::to_string(first + count - 1));
  };
  for (int64_t first = 0; first < rows; first += prediction.batch) {
    int64_t count = std::min(prediction.batch, rows - first);
    for (size_t i = 0; i < served.size(); ++i)
      served[i] = first + int64_t(i) % count;
    if (Status status = serve(served); !status)
      return place(std::move(status), first, count);
    auto computed = compute();
    if (!computed)
      return place(std::move(computed).status(), first, count);
    for (size_t i = 0; i < results.size(); ++i) {
      const Tensor &whole = (*computed)[i];
      int64_t rowBytes = whole.bytes() / prediction.batch;
      if (rowBytes > 0)
        std::memcpy(results[i].mutableData<std::byte>() + first * rowBytes,
                    whole.data(), size_t(count * rowBytes));
    }
  }
  return results;
}

Result<std::vector<Tensor>> predict(Model &model, const Prediction &prediction,
                                    int64_t rows,
                                    std::span<const Argument> batch,
                                    const ServeRows &serve) {
  std::vector<Tensor> parts, wholes(prediction.outputs.size());
  for (const Slot &slot : prediction.outputs) {
    // Of several ranks each has a piece, for which a call makes the tensor.
    auto part = model.communicators() ? Result<Tensor>(Tensor())
                                      : Tensor::zeros(slot.dtype, slot.shape);
    if (!part)
      return std::move(part).status();
    parts.push_back(*std::move(part));
  }
  std::vector<Destination> destinations;
  for (size_t i = 0; i < parts.size(); ++i)
    destinations.push_back({prediction.outputs[i].name, &parts[i]});
  auto compute = [&]() -> Result<std::span<const Tensor>> {
    if (Status status =
            model.runWanted(prediction.program->name, batch, destinations);
        !status)
      return status;
    for (size_t i = 0; i < parts.size(); ++i) {
      const artifact::Value *value =
          model.manifest().findOutput(prediction.outputs[i].name);
      auto whole = wholeOf(parts[i], value, model.communicators());
      if (!whole)
        return std::move(whole).status();
      wholes[i] = *std::move(whole);
    }
    return std::span<const Tensor>(wholes);
  };
  return predict(prediction, rows, serve, compute);
}

namespace {

/// An input with all its rows, and one batch of it.
struct Column {
  std::string_view name;
  Tensor rows, batch, argument; ///< all; one batch; what a rank has of it
  int64_t rowBytes = 0;         ///< 0: the same in every batch
};

/// Matches the caller's arrays with the inputs that are needed.
class Columns {
public:
  Columns(const Model &model, const Prediction &prediction,
          std::span<const Argument> inputs)
      : model(model), prediction(prediction), inputs(inputs) {}

  Status match() {
    const artifact::Program &program = *prediction.program;
    for (const Argument &input : inputs)
      if (std::none_of(program.arguments.begin(), program.arguments.end(),
                       [&](const Slot &slot) {
                         return slot.role == Role::Input &&
                                slot.name == input.name;
                       }))
        problem("unknown argument '" + std::string(input.name) + "'");
    for (size_t a = 0; a < program.arguments.size(); ++a)
      if (program.arguments[a].role == Role::Input && prediction.needs[a])
        if (Status status = add(program.arguments[a]); !status)
          return status;
    if (problems.empty() && rows < 0)
      problem("no input that is needed has rows");
    return problems.empty() ? Status::success()
                            : Status::usage("cannot predict: " + problems);
  }

  Status serve(std::span<const int64_t> served) {
    for (Column &column : columns) {
      if (column.rowBytes == 0)
        continue;
      auto *to = column.batch.mutableData<std::byte>();
      for (size_t i = 0; i < served.size(); ++i)
        std::memcpy(to + int64_t(i) * column.rowBytes,
                    column.rows.data<std::byte>() + served[i] * column.rowBytes,
                    size_t(column.rowBytes));
      if (Status status = cut(column); !status)
        return status;
    }
    return Status::success();
  }

  int64_t rows = -1;
  std::vector<Argument> arguments;

private:
  void problem(const std::string &text) {
    problems += (problems.empty() ? "" : "; ") + text;
  }

  Status add(const Slot &slot) {
    auto given =
        std::find_if(inputs.begin(), inputs.end(), [&](const Argument &input) {
          return input.name == slot.name;
        });
    bool batched = hasRows(slot, prediction.batch);
    std::string expected = describe(slot.dtype, slot.shape);
    if (batched)
      expected += ", with any number of rows";
    if (given == inputs.end() || !given->tensor || !given->tensor->defined()) {
      problem("missing '" + slot.name + "': expected " + expected);
      return Status::success();
    }
    const Tensor &tensor = *given->tensor;
    std::vector<int64_t> shape = slot.shape;
    if (batched && tensor.rank() > 0)
      shape[0] = tensor.shape()[0];
    if (tensor.dtype() != slot.dtype ||
        !std::equal(shape.begin(), shape.end(), tensor.shape().begin(),
                    tensor.shape().end())) {
      problem("'" + slot.name + "': expected " + expected +
              (batched ? ", but got " : " but got ") +
              describe(tensor.dtype(), tensor.shape()));
      return Status::success();
    }
    if (batched && rows >= 0 && rows != shape[0])
      problem("'" + slot.name + "': expected " + std::to_string(rows) +
              " rows, as the input before it has, but got " +
              std::to_string(shape[0]));
    if (batched && rows < 0)
      rows = shape[0];
    auto dense = tensor.onHost();
    if (dense)
      dense = dense->dense();
    if (!dense)
      return std::move(dense).status().in("'" + slot.name + "'");
    Column &column =
        columns.emplace_back(Column{slot.name, *dense, *dense, *dense});
    if (batched) {
      auto batch = Tensor::zeros(slot.dtype, slot.shape);
      if (!batch)
        return std::move(batch).status();
      column.argument = column.batch = *std::move(batch);
      column.rowBytes = column.batch.bytes() / prediction.batch;
    }
    arguments.push_back({slot.name, &column.argument});
    return cut(column);
  }

  /// Gives the argument of a column this rank's piece of the batch.
  Status cut(Column &column) const {
    if (!model.communicators())
      return Status::success();
    const artifact::Value *value = model.manifest().findValue(column.name);
    if (!value)
      return Status::success();
    auto piece = pieceOf(column.batch, *value, model.communicators());
    if (!piece)
      return std::move(piece).status();
    column.argument = *std::move(piece);
    return Status::success();
  }

  const Model &model;
  const Prediction &prediction;
  std::span<const Argument> inputs;
  std::deque<Column> columns; ///< arguments point into it
  std::string problems;
};

/// Of several sizes the manifest of the first one whose rows the inputs have.
const artifact::Manifest &manifestFor(const Model &model,
                                      std::span<const Argument> inputs) {
  size_t count = model.manifest().sizes.size();
  auto fits = [&](const artifact::Program &program) {
    int64_t batch = batchOf(program);
    for (const Slot &slot : program.arguments)
      for (const Argument &input : inputs) {
        if (slot.role != Role::Input || slot.name != input.name ||
            !input.tensor)
          continue;
        auto given = input.tensor->shape();
        size_t skip = hasRows(slot, batch) && !given.empty();
        if (!std::ranges::equal(given.subspan(skip),
                                std::span(slot.shape).subspan(skip)))
          return false;
      }
    return true;
  };
  for (size_t i = 0; i < count; ++i)
    if (const artifact::Program *program =
            model.manifestOfSize(i).findProgram("evaluate");
        program && fits(*program))
      return model.manifestOfSize(i);
  return model.wholeManifest();
}

/// What an output is written to: elements of its own, as in a call (CheckCall).
Status checkPlace(const Model &model, const Tensor &wanted) {
  if (!wanted.defined())
    return Status::success();
  if (Status status = wanted.checkElements(); !status)
    return status;
  if (overlapsItself(wanted))
    return Status::usage(
        "expected elements that share no memory but got strides " +
        toString(wanted.strides()));
  for (const artifact::Value &value : model.manifest().values) {
    if (value.role != Role::Param && value.role != Role::State)
      continue;
    auto own = model.get(value.name);
    if (own && shareMemory(*own, wanted))
      return Status::usage("shares memory with '" + value.name + "'");
  }
  return Status::success();
}

/// Two outputs in one place: the later one would be what both have.
bool sharePlace(const Destination &a, const Destination &b) {
  return a.tensor == b.tensor || (a.tensor->defined() && b.tensor->defined() &&
                                  shareMemory(*a.tensor, *b.tensor));
}

} // namespace

Status predict(Model &model, std::span<const Argument> inputs,
               std::span<const Destination> outputs) {
  std::vector<std::string> names;
  for (const Destination &output : outputs) {
    if (!output.tensor)
      return Status::usage("output '" + std::string(output.name) +
                           "': expected a tensor to write to but got null");
    names.emplace_back(output.name);
  }
  if (names.empty())
    return Status::usage("expected at least one output to predict");
  // All rows by the parameters of one moment, whatever other threads do.
  Result<Hold> hold = model.hold();
  if (!hold)
    return std::move(hold).status();
  auto prediction = Prediction::of(manifestFor(model, inputs), names);
  if (!prediction)
    return std::move(prediction).status();
  Columns columns(model, *prediction, inputs);
  if (Status status = columns.match(); !status)
    return status;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor &wanted = *outputs[i].tensor;
    std::vector<int64_t> shape = withRows(prediction->outputs[i], columns.rows);
    if (wanted.defined() &&
        (wanted.dtype() != prediction->outputs[i].dtype ||
         !std::equal(shape.begin(), shape.end(), wanted.shape().begin(),
                     wanted.shape().end())))
      return Status::usage("output '" + names[i] + "': expected " +
                           describe(prediction->outputs[i].dtype, shape) +
                           " but got " +
                           describe(wanted.dtype(), wanted.shape()));
    if (Status status = checkPlace(model, wanted); !status)
      return std::move(status).in("output '" + names[i] + "'");
    for (size_t before = 0; before < i; ++before)
      if (sharePlace(outputs[before], outputs[i]))
        return Status::usage("output '" + names[i] + "': shares memory with '" +
                             names[before] + "'");
  }
  auto results = predict(
      model, *prediction, columns.rows, columns.arguments,
      [&](std::span<const int64_t> rows) { return columns.serve(rows); });
  if (!results)
    return std::move(results).status();
  for (size_t i = 0; i < outputs.size(); ++i) {
    Tensor &wanted = *outputs[i].tensor;
    if (!wanted.defined())
      wanted = (*results)[i];
    else if (Status status = wanted.copyFrom((*results)[i]); !status)
      return status;
  }
  return Status::success();
}

} // namespace tandem::runtime
