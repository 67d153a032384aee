//===- bench-cpu.cpp - kernels against roofs and libraries ----------------===//
//
// See helpText() in Options.cpp.
//
//===----------------------------------------------------------------------===//
#include "tools/bench/cpu/Library.h"
#include "tools/bench/cpu/OpenBlas.h"
#include "tools/bench/cpu/Options.h"
#include "tools/bench/cpu/Report.h"
#include "tools/bench/cpu/Roofs.h"
#include "tools/bench/cpu/TandemModel.h"

#include <cstdio>
#include <fstream>

using namespace tandem;
using namespace tandem::bench;
using Json = nlohmann::ordered_json;

/// Everybody who computes `c`, and the roof.
static Result<Row> contenders(const Case &c, const Artifact &artifact,
                              const std::vector<Tensor> &inputs, int threads,
                              bool withPeers) {
  auto outputs = [&] {
    std::vector<Tensor> tensors;
    for (const Operand &output : c.outputs)
      tensors.push_back(*Tensor::zeros(output.dtype, output.shape));
    return tensors;
  };
  auto tandem = tandemContender(c, artifact, inputs, outputs(), threads);
  if (!tandem)
    return tandem.status();
  Row row{&c, threads, {std::move(*tandem)}, {}, {}};
  if (withPeers)
    for (const Peer &peer : c.peers)
      if (auto contender = peer(inputs, outputs(), threads))
        row.contenders.push_back(std::move(*contender));
  for (const Contender &contender : row.contenders) {
    contender.call();
    if (contender.finish)
      contender.finish();
    row.wrong.push_back(check(c, inputs, contender));
  }
  return row;
}

static Result<Row> run(const Case &c, const Artifact &artifact,
                       const std::vector<Tensor> &inputs, int threads,
                       const BenchOptions &options) {
  auto row = contenders(c, artifact, inputs, threads, !options.check);
  if (!row || options.check)
    return row;
  row->contenders.push_back(c.flops > 0 ? fmaRoof(threads, c.inputs[0].dtype)
                                        : copyOf(c.bytes, threads));
  row->wrong.emplace_back();
  row->times = measure(row->contenders, options.effort);
  return row;
}

/// Runs the cases; returns the exit status.
static int runAll(const std::vector<Case> &cases, const BenchOptions &options) {
  Json json;
  auto say = [&](const std::string &line) {
    if (!options.json)
      std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  };
  if (std::string problem = openBlasProblem(); !problem.empty())
    json["left_out"].push_back(problem);
  for (const Json &problem : json["left_out"])
    say(problem);
  for (int threads : options.threads)
    if (!options.check) {
      json["roofs"].push_back(roofsJson(threads, options.effort));
      say(roofLine(json["roofs"].back()));
    }
  say(tableHead());
  int status = 0;
  for (const Case &c : cases) {
    if (!options.wants(c.name))
      continue;
    auto artifact = compile(c, options.target);
    std::vector<Tensor> inputs;
    for (const Operand &input : c.inputs)
      inputs.push_back(filled(input, inputs.size() + 1));
    for (int threads : options.threads) {
      auto row = artifact ? run(c, *artifact, inputs, threads, options)
                          : Result<Row>(artifact.status());
      if (!row) {
        std::fprintf(stderr, "%s: %s\n", c.name.c_str(),
                     row.status().message().c_str());
        return row.status().exitCode();
      }
      if (!row->wrong[0].empty())
        status = 4;
      json["cases"].push_back(rowJson(*row));
      say(tableLine(json["cases"].back()));
    }
  }
  if (options.json)
    std::printf("%s\n", json.dump(1).c_str());
  if (!options.jsonFile.empty())
    std::ofstream(options.jsonFile) << json.dump(1) << '\n';
  return status;
}

int main(int argc, char **argv) {
  BenchOptions options = parseOptions(argc, argv);
  if (!options.error.empty() || options.help) {
    std::fprintf(options.help ? stdout : stderr, "%s%s%s",
                 options.error.c_str(), options.error.empty() ? "" : "\n",
                 options.help ? helpText() : "");
    return options.help ? 0 : 2;
  }
  limitSpinning();
  setOpenBlas(options.openBlas);
  std::vector<Case> cases;
  addMatmuls(cases);
  if (options.list) {
    for (const Case &c : cases)
      std::printf("%s\n", c.name.c_str());
    return 0;
  }
  return runAll(cases, options);
}
