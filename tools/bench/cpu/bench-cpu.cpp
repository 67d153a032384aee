//===- bench-cpu.cpp - kernels against roofs and libraries ----------------===//
//
// See helpText() in Options.cpp.
//
//===----------------------------------------------------------------------===//
#include "tools/bench/cpu/Dnnl.h"
#include "tools/bench/cpu/OpenBlas.h"
#include "tools/bench/cpu/Options.h"
#include "tools/bench/cpu/Results.h"
#include "tools/bench/cpu/Roofs.h"
#include "tools/bench/cpu/TandemModel.h"
#include "tools/bench/cpu/Xsmm.h"

#include <cstdio>
#include <fstream>

using namespace tandem;
using namespace tandem::bench;
using Json = nlohmann::ordered_json;

/// Outputs for a contender.
static std::vector<Tensor> newOutputs(const Case &c) {
  std::vector<Tensor> tensors;
  for (const Operand &output : c.outputs)
    tensors.push_back(*Tensor::zeros(output.dtype, output.shape));
  return tensors;
}

static std::string checked(const Answers &answers, const Contender &contender) {
  contender.call();
  if (contender.finish)
    contender.finish();
  return answers.check(contender);
}

/// Tandem, the libraries and the roof.
static Result<Row> contenders(const Case &c, const Artifact &artifact,
                              const std::vector<Tensor> &inputs,
                              const Answers &answers, int threads,
                              bool isAlone) {
  auto tandem = tandemContender(c, artifact, inputs, newOutputs(c), threads);
  if (!tandem)
    return tandem.status();
  Row row{&c, threads, {std::move(*tandem)}, {}, {}};
  row.wrong = checked(answers, row.contenders[0]);
  std::vector<Contender> found;
  if (!isAlone)
    for (const Peer &peer : c.peers)
      for (Contender &contender : peer(inputs, newOutputs(c), threads)) {
        std::string wrong = checked(answers, contender);
        if (wrong.empty())
          found.push_back(std::move(contender));
        else
          std::fprintf(stderr, "%s of %s: %s\n", c.name.c_str(),
                       contender.name.c_str(), wrong.c_str());
      }
  for (Contender &contender : fastest(std::move(found)))
    row.contenders.push_back(std::move(contender));
  row.contenders.push_back(c.flops > 0 ? fmaRoof(threads, c.inputs[0].dtype)
                                       : copyOf(c.bytes, threads));
  return row;
}

/// Libraries that are not there.
static Json leftOut() {
  Json problems = Json::array();
  for (const std::string &problem : {openBlasProblem(), xsmmProblem()})
    if (!problem.empty())
      problems.push_back(problem);
  for (const auto &dnnl : dnnlLibraries())
    if (!dnnl->problem.empty())
      problems.push_back(dnnl->problem);
  return problems;
}

/// Adds a row for each number of threads to `rows`, and says it.
template <typename Say>
static Status run(const Case &c, const BenchOptions &options, Json &rows,
                  const Say &say) {
  auto artifact = compile(c, options.target);
  if (!artifact)
    return artifact.status();
  std::vector<Tensor> inputs;
  for (const Operand &input : c.inputs)
    inputs.push_back(filled(input, inputs.size() + 1));
  Answers answers(c, inputs);
  Status status;
  for (int threads : options.threads) {
    Dnnl::setThreads(threads);
    auto row =
        contenders(c, *artifact, inputs, answers, threads, options.alone);
    if (!row)
      return row.status();
    if (!row->wrong.empty())
      status = Status(Code::Differs, row->wrong);
    else if (!options.check)
      row->times = measure(row->contenders, options.effort);
    rows.push_back(rowJson(*row));
    say(tableLine(rows.back()));
  }
  return status;
}

/// Runs the cases; returns the exit status.
static int runAll(const std::vector<Case> &cases, const BenchOptions &options) {
  Json json = {{"left_out", options.alone ? Json::array() : leftOut()},
               {"roofs", Json::array()},
               {"cases", Json::array()}};
  auto say = [&](const std::string &line) {
    if (!options.json)
      std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  };
  for (const Json &problem : json["left_out"])
    say(problem.get<std::string>());
  if (!options.check)
    for (int threads : options.threads) {
      json["roofs"].push_back(roofsJson(threads, options.effort));
      say(roofLine(json["roofs"].back()));
    }
  say(tableHead());
  int exitCode = 0;
  for (const Case &c : cases) {
    if (!options.wants(c.name))
      continue;
    if (Status status = run(c, options, json["cases"], say); !status) {
      std::fprintf(stderr, "%s: %s\n", c.name.c_str(),
                   status.message().c_str());
      exitCode = status.exitCode();
    }
    if (!options.jsonFile.empty())
      std::ofstream(options.jsonFile) << json.dump(1) << '\n';
  }
  if (options.json)
    std::printf("%s\n", json.dump(1).c_str());
  return exitCode;
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
  setDnnl(options.dnnl);
  setXsmm(options.xsmm);
  std::vector<Case> cases;
  addMatmuls(cases);
  addConvolutions(cases);
  addAttentions(cases);
  addLoops(cases);
  if (options.list) {
    for (const Case &c : cases)
      std::printf("%s\n", c.name.c_str());
    return 0;
  }
  return runAll(cases, options);
}
