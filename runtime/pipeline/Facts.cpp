//===- Facts.cpp - what ranks tell each other of their stages -------------===//
//
// A text a rank: of each stage a line of its number, digest and loss, and a
// line for each value that it takes or gives.
//
//===----------------------------------------------------------------------===//
#include "runtime/pipeline/Facts.h"

#include "runtime/comm/Texts.h"

#include <algorithm>
#include <sstream>

namespace tandem::pipeline {
namespace {

using artifact::Program;
using artifact::Role;
using artifact::Slot;

bool has(const std::vector<Slot> &slots, Role role, const std::string &name) {
  return std::any_of(slots.begin(), slots.end(), [&](const Slot &slot) {
    return slot.role == role && slot.name == name;
  });
}

std::string describe(const artifact::Value &value) {
  std::string text = value.name + ":" + std::string(spelling(value.dtype));
  for (int64_t size : value.shape)
    text += "," + std::to_string(size);
  for (const auto &axes : value.sharding) {
    text += "/";
    for (const std::string &axis : axes)
      text += axis + "+";
  }
  for (int64_t size : value.whole)
    text += "|" + std::to_string(size);
  return text;
}

std::string textOf(const runtime::Model &model) {
  const artifact::Manifest &manifest = model.manifest();
  const artifact::Pipeline &own = *manifest.pipeline;
  const Program *backward = manifest.findProgram("backward");
  std::ostringstream text;
  const artifact::Value *loss =
      manifest.loss.empty() ? nullptr : manifest.findOutput(manifest.loss);
  text << "stage " << own.stage << ' ' << own.digest << ' '
       << (loss ? int(loss->dtype) : 0) << ' '
       << (manifest.findProgram("norm") != nullptr) << ' '
       << (manifest.findValue(scaleOf(manifest)) != nullptr) << ' '
       << manifest.loss << '\n';
  for (const std::string &name : own.takes)
    text << "takes " << (backward && has(backward->results, Role::Grad, name))
         << ' ' << describe(*manifest.findValue(name)) << '\n';
  for (const std::string &name : own.gives)
    text << "gives "
         << (backward && has(backward->arguments, Role::Cotangent, name)) << ' '
         << describe(*manifest.findOutput(name)) << '\n';
  return text.str();
}

Status read(const std::string &text, std::vector<StageFacts> &all) {
  std::istringstream lines(text);
  StageFacts *current = nullptr;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind == "stage") {
      size_t number = 0;
      int type = 0;
      words >> number;
      if (number >= all.size() || !all[number].digest.empty())
        return Status::usage("two ranks have stage " + std::to_string(number));
      current = &all[number];
      words >> current->digest >> type >> current->hasNorm >>
          current->hasScale >> std::ws;
      std::getline(words, current->lossName);
      current->lossType = artifact::DType(type);
    } else if (current) {
      Crossing crossing;
      words >> crossing.hasGradient >> std::ws;
      std::getline(words, crossing.text);
      (kind == "takes" ? current->takes : current->gives).push_back(crossing);
    }
  }
  return Status::success();
}

} // namespace

Result<std::vector<StageFacts>>
factsOfAll(const std::vector<runtime::Model> &models,
           comm::Communicator *world) {
  std::string own;
  for (const runtime::Model &model : models)
    own += textOf(model);
  auto texts = comm::textsOfAll(world, own);
  if (!texts)
    return std::move(texts).status();
  std::vector<StageFacts> all(
      size_t(models.front().manifest().pipeline->stages));
  for (const std::string &text : *texts)
    if (Status status = read(text, all); !status)
      return status;
  for (size_t s = 0; s < all.size(); ++s) {
    std::string name = "stage " + std::to_string(s);
    if (all[s].digest.empty())
      return Status::usage("no rank has " + name + " of the pipeline");
    if (all[s].digest != all[0].digest)
      return Status::usage(name + " is of another compilation than stage 0: "
                                  "expected the files that one command wrote");
    if (s == 0)
      continue;
    const auto &gives = all[s - 1].gives, &takes = all[s].takes;
    bool isSame = std::equal(
        gives.begin(), gives.end(), takes.begin(), takes.end(),
        [](const Crossing &a, const Crossing &b) { return a.text == b.text; });
    if (!isSame)
      return Status::usage(name + " takes other values than the stage "
                                  "before gives");
  }
  return all;
}

} // namespace tandem::pipeline
