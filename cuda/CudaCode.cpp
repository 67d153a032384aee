//===- CudaCode.cpp - runs an artifact's programs on a GPU ----------------===//
//
// LoadCode.cpp has the loading.
//
//===----------------------------------------------------------------------===//
#include "cuda/CudaCode.h"

#include <algorithm>

namespace tandem::cuda {

using namespace driver;
using artifact::Buffer;
using runtime::ProgramRun;

namespace {

/// Plans kept of one program; beyond, the one that was not used the longest is
/// dropped.
constexpr size_t mostPlans = 16;

} // namespace

Status CudaCode::run(const ProgramRun &run) {
  std::lock_guard<std::mutex> lock(mutex);
  Context::Scope scope(context);
  if (Status status = scope.status(); !status)
    return status;
  Program &program = programs[run.program];
  auto stream = static_cast<CUstream>(run.stream);
  bool isCapturing = context.isCapturing(stream);
  if (Status status = find(program, run, stream, isCapturing); !status)
    return status;
  if (std::ranges::find(usedStreams, stream) == usedStreams.end())
    usedStreams.push_back(stream);
  wasCaptured |= isCapturing;
  Plan &plan = *program.entries.front().plan;
  std::shared_ptr<Profile> profile =
      isCapturing ? nullptr : device.profile.get();
  RankGroups *over = nullptr;
  if (plan.commands().needsRanks()) {
    Result<RankGroups *> found = ranksOver(run.communicators, isCapturing);
    if (!found)
      return std::move(found).status();
    over = *found;
  }
  // The watch over collectives cannot look into a graph.
  if (run.useGraph && !context.waitsForEach() && !isCapturing && !profile &&
      !over && plan.commands().commands().size() > 1) {
    if (Status status = needRecorder(); !status)
      return status;
    return plan.launchGraph(stream, recorder, device.events);
  }

  for (int number : plan.commands().streams()) {
    if (static_cast<size_t>(number) >= streams.size())
      streams.resize(number + 1);
    streams[number] = stream;
    if (number == 0)
      continue;
    Result<CUstream> side = device.streams.at(number - 1);
    if (!side)
      return std::move(side).status();
    streams[number] = *side;
  }
  return plan.queue(streams, device.events, profile.get(), over);
}

Result<RankGroups *>
CudaCode::ranksOver(const comm::MeshCommunicators *communicators,
                    bool isCapturing) {
  if (!communicators)
    return Status::usage("a program over ranks has no communicator");
  if (isCapturing)
    return Status::unsupported("model '" + manifest.model +
                               "': a program that ranks run together cannot "
                               "be recorded as a graph");
  if (ranks && &ranks->ranks() == communicators)
    return ranks.get();
  ranks.reset();
  if (!word) {
    Result<void *> memory = allocate(sizeof(int32_t), home, "a barrier");
    if (!memory)
      return memory.status();
    word = *memory;
    if (Status status = context.check(
            context.call().memsetD8Async(reinterpret_cast<CUdeviceptr>(word), 0,
                                         sizeof(int32_t), home),
            "cuMemsetD8Async");
        !status)
      return status;
    if (Status status = context.check(context.call().streamSynchronize(home),
                                      "cuStreamSynchronize");
        !status)
      return status;
  }
  auto made = RankGroups::make(context, device.events, device.libraries,
                               *communicators, manifest, word);
  if (!made)
    return std::move(made).status();
  ranks = *std::move(made);
  return ranks.get();
}

/// Makes the plan for the run the first of the program's, with its buffers
/// placed.
Status CudaCode::find(Program &program, const ProgramRun &run, CUstream stream,
                      bool isCapturing) {
  const std::vector<Buffer> &buffers = program.program->buffers;
  if (run.buffers.size() != buffers.size() ||
      run.actions.size() != program.program->launches.size())
    return Status::usage("program '" + program.program->name + "': expected " +
                         std::to_string(buffers.size()) + " buffers and " +
                         std::to_string(program.program->launches.size()) +
                         " actions but got " +
                         std::to_string(run.buffers.size()) + " and " +
                         std::to_string(run.actions.size()));
  given.assign(run.buffers.begin(), run.buffers.end());
  for (size_t b = 0; b < buffers.size(); ++b)
    if (buffers[b].place == Buffer::Place::Constant)
      given[b] = constants + buffers[b].offset;

  using Entry = Program::Entry;
  auto hasActions = [&](const Entry &entry) {
    return std::equal(entry.actions.begin(), entry.actions.end(),
                      run.actions.begin(), run.actions.end());
  };
  bool isSame = given == program.addresses && !program.entries.empty();
  if (isSame && hasActions(program.entries.front())) {
    if (program.isPlaced && program.stream == stream &&
        program.wasCapturing == isCapturing)
      return Status::success();
  } else {
    std::vector<ByteRange> places = rangesOf(*program.program, given);
    auto found = std::find_if(program.entries.begin(), program.entries.end(),
                              [&](const Entry &one) {
                                return hasActions(one) && one.places == places;
                              });
    if (found == program.entries.end()) {
      if (program.entries.size() == mostPlans)
        program.entries.pop_back();
      CommandList list(manifest, *program.program, run.actions, places, tags,
                       concurrency,
                       {program.ofLibrary.get(), program.calls.size()});
      Entry made{{run.actions.begin(), run.actions.end()},
                 std::move(places),
                 std::make_unique<Plan>(context, manifest, *program.program,
                                        std::move(list), kernels, program.calls,
                                        recorder)};
      program.entries.push_back(std::move(made));
      found = program.entries.end() - 1;
    }
    std::rotate(program.entries.begin(), found, found + 1);
  }
  program.isPlaced = false;
  Status status = program.entries.front().plan->place(given, [&](int number) {
    return scratchOf(stream, number, isCapturing);
  });
  if (!status)
    return status;
  program.addresses = given;
  program.stream = stream;
  program.wasCapturing = isCapturing;
  program.isPlaced = true;
  return status;
}

Result<void *> CudaCode::scratchOf(CUstream stream, int number,
                                   bool isCapturing) {
  std::pair<CUstream, int> key(isCapturing ? ofCaptures : stream, number);
  if (auto it = scratch.find(key); it != scratch.end())
    return it->second;
  if (isCapturing) // reserved at load for every stream of a program
    return Status::failed("no scratch memory for stream " +
                          std::to_string(number) + " of a capture");
  // The caller's stream: all streams of the run wait for it.
  return addScratch(key, stream);
}

Result<void *> CudaCode::addScratch(std::pair<CUstream, int> key,
                                    CUstream stream) {
  Result<void *> memory = allocate(scratchBytes, stream, "scratch memory");
  if (!memory)
    return memory;
  Status status = context.check(
      context.call().memsetD8Async(reinterpret_cast<CUdeviceptr>(*memory), 0,
                                   static_cast<size_t>(scratchBytes), stream),
      "cuMemsetD8Async");
  if (!status) {
    device.memory.release(*memory, stream, {});
    return std::move(status).in("scratch memory of '" + manifest.model + "'");
  }
  scratch.emplace(key, *memory);
  return memory;
}

Result<void *> CudaCode::allocate(int64_t bytes, CUstream stream,
                                  const std::string &what) {
  Result<void *> memory = device.memory.allocate(bytes, stream);
  if (!memory)
    return std::move(memory).status().in(what + " of '" + manifest.model + "'");
  return memory;
}

} // namespace tandem::cuda
