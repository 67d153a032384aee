//===- SaveShards.cpp - all ranks save together, each its own file --------===//
#include "runtime/checkpoint/SaveShards.h"

#include "runtime/checkpoint/IndexFiles.h"
#include "runtime/comm/MeshCommunicators.h"
#include "runtime/comm/Texts.h"

#include <algorithm>
#include <functional>
#include <set>

namespace tandem::checkpoint {
namespace {

using artifact::Value;
using io::TensorIndex;

/// A piece that a rank writes, and of what.
struct Written {
  const runtime::Model *model;
  const Value *value;
  Part part;
};

int64_t bytesOf(const Value &value, const Part &part) {
  return io::elementCount(part.sizes).value_or(0) * byteSize(value.dtype);
}

/// Says which rank writes which pieces, by the same rule on all ranks: large
/// pieces first, each by that rank of those that have it which has least to do.
std::vector<std::vector<Written>> planOf(const runtime::Model &model,
                                         std::vector<const Value *> variables,
                                         int ranks) {
  auto weight = [&](const Value *value) {
    return std::pair(-bytesOf(*value, partOf(model, *value, 0)), value->name);
  };
  std::sort(variables.begin(), variables.end(),
            [&](auto *a, auto *b) { return weight(a) < weight(b); });
  auto count = size_t(ranks);
  std::vector<std::vector<Written>> plan(count);
  std::vector<int64_t> load(count);
  for (const Value *value : variables) {
    Part first = partOf(model, *value, 0);
    if (io::elementCount(first.whole) == 0) {
      first.begin.assign(first.begin.size(), 0);
      first.sizes = first.whole;
      plan[0].push_back({&model, value, std::move(first)});
      continue;
    }
    std::map<std::vector<int64_t>, std::vector<int>> havers; // by begin
    for (int rank = 0; rank < ranks; ++rank)
      havers[partOf(model, *value, rank).begin].push_back(rank);
    for (const auto &[begin, all] : havers) {
      int rank = *std::min_element(all.begin(), all.end(), [&](int a, int b) {
        return load[size_t(a)] < load[size_t(b)];
      });
      Part part = partOf(model, *value, rank);
      if (bytesOf(*value, part) == 0)
        continue; // there is nothing but padding
      load[size_t(rank)] += bytesOf(*value, part);
      plan[size_t(rank)].push_back({&model, value, std::move(part)});
    }
  }
  return plan;
}

/// Returns what a piece is called in its file: "w", or "w@16,0" of a part.
std::string nameOf(const Value &value, const Part &part) {
  std::string name = value.name;
  if (part.sizes != part.whole)
    for (size_t d = 0; d < part.begin.size(); ++d)
      name += (d ? "," : "@") + std::to_string(part.begin[d]);
  return name;
}

/// Writes the file of one rank; returns what the index has of it.
Result<TensorIndex> writeOwn(const std::string &path, const std::string &file,
                             const std::vector<Written> &all) {
  TensorIndex index;
  std::map<std::string, io::TensorType> types;
  std::map<std::string, const Written *> named;
  for (const Written &one : all) {
    std::string name = nameOf(*one.value, one.part);
    if (!named.emplace(name, &one).second)
      return Status::usage("two tensors would be called " + io::inQuotes(name));
    types[name] = {one.value->dtype, one.part.sizes};
    index.totalSize += bytesOf(*one.value, one.part);
    if (one.part.sizes == one.part.whole)
      index.weightMap[one.value->name] = file;
    else
      index.cut[one.value->name] = {
          one.part.whole, {{file, name, one.part.begin, one.part.sizes}}};
  }
  Status status = writeFile(
      path, file, types,
      [&](const std::string &name, const io::TakeBytes &take) {
        const Written &one = *named.at(name);
        auto tensor = valuesOf(*one.model, one.value->name, one.part);
        if (!tensor)
          return std::move(tensor).status();
        return take({tensor->data<std::byte>(), size_t(tensor->bytes())});
      },
      index);
  if (!status)
    return status;
  return index;
}

using Plan = std::function<Result<std::vector<Written>>()>;

/// Each rank writes what `plan` says; the first one replaces the index.
Status save(comm::Communicator *world, const Plan &plan,
            const std::string &path,
            const std::map<std::string, std::string> &metadata) {
  int rank = world ? world->rank() : 0, ranks = world ? world->ranks() : 1;
  auto generation = comm::textOfFirst(world, rank ? "" : newGeneration(path));
  if (!generation)
    return std::move(generation).status();

  auto written = plan();
  if (!written)
    return std::move(written).status();
  std::string file = fileName(path, *generation, rank, ranks);
  auto own = writeOwn(path, file, *written);
  // An index begins with a brace, and no message does.
  auto texts =
      comm::textsOfAll(world, own ? own->text()
                                  : "rank " + std::to_string(rank) +
                                        " failed: " + own.status().message());
  if (!own)
    return std::move(own).status();
  if (!texts)
    return std::move(texts).status();
  TensorIndex index;
  for (const std::string &text : *texts) {
    if (!text.starts_with('{')) {
      // Known to all who know more than they: nobody replaces the index.
      removeFiles(path, *generation);
      return Status::failed(text);
    }
    if (rank)
      continue;
    auto part = TensorIndex::parse(text);
    if (!part)
      return std::move(part).status();
    index.add(*std::move(part));
  }

  Status status;
  if (rank == 0) {
    index.metadata = metadata;
    status = commit(path, *generation, index);
  }
  auto outcome = comm::textOfFirst(world, status.message());
  if (!status)
    return status;
  if (!outcome)
    return std::move(outcome).status();
  return outcome->empty() ? Status::success()
                          : Status::failed("rank 0 failed: " + *outcome);
}

} // namespace

Status saveShards(const runtime::Model &model, const std::string &path,
                  const std::map<std::string, std::string> &metadata) {
  comm::Communicator *world =
      model.communicators() ? &model.communicators()->world() : nullptr;
  auto plan = [&]() -> Result<std::vector<Written>> {
    auto all = planOf(model, savedOf(model), world ? world->ranks() : 1);
    return std::move(all[size_t(world ? world->rank() : 0)]);
  };
  return save(world, plan, path, metadata);
}

Status saveStages(std::span<const runtime::Model> models,
                  comm::Communicator &line, comm::Communicator &world,
                  const std::string &path,
                  const std::map<std::string, std::string> &metadata) {
  auto plan = [&]() -> Result<std::vector<Written>> {
    // Each name ended by a zero.
    std::string own;
    for (const runtime::Model &model : models)
      for (const Value *value : savedOf(model))
        own.append(value->name).append(1, '\0');
    auto texts = comm::textsOfAll(&line, own);
    if (!texts)
      return std::move(texts).status();
    std::set<std::string> written;
    for (int rank = 0; rank < line.rank(); ++rank) {
      std::string_view rest = (*texts)[size_t(rank)];
      for (size_t end; (end = rest.find('\0')) != std::string_view::npos;
           rest.remove_prefix(end + 1))
        written.emplace(rest.substr(0, end));
    }
    std::vector<Written> all;
    for (const runtime::Model &model : models) {
      std::vector<const Value *> values = savedOf(model);
      std::erase_if(values, [&](const Value *value) {
        return !written.insert(value->name).second;
      });
      const comm::MeshCommunicators *group = model.communicators();
      auto ofGroup =
          planOf(model, std::move(values), group ? group->world().ranks() : 1);
      for (Written &one : ofGroup[size_t(group ? group->world().rank() : 0)])
        all.push_back(std::move(one));
    }
    return all;
  };
  return save(&world, plan, path, metadata);
}

} // namespace tandem::checkpoint
