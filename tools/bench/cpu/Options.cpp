//===- Options.cpp - what bench-cpu is asked for --------------------------===//
#include "tools/bench/cpu/Options.h"
#include "runtime/device/Processors.h"

#include <cstdlib>
#include <sstream>

using namespace tandem;
using namespace tandem::bench;

const char *bench::helpText() {
  return R"(usage: bench-cpu [OPTIONS]

Measures single kernels, compiled and called as a user would, against the
machine's roofs and against OpenBLAS, oneDNN and libxsmm, all in one
process and by turns. Libraries that are not there are left out.

  --filter=A,B,...   only cases whose names contain one of these
  --list             print the names of the cases
  --threads=1,2      numbers of threads; default: 1 and all processors
  --seconds=S        at most about S seconds for a contender (0.2)
  --quick            a few rounds only
  --alone            without the libraries
  --check            only whether Tandem's results are right
  --json[=FILE]      print JSON instead of the table, or write it to FILE too
  --target=SPEC      as of 'tandem compile'
  --openblas=FILE    the library to open
  --onednn=A,B,...   the libraries to open, of versions 2 or 3
  --libxsmm=FILE     the library to open; where there is only an archive:
                     cc -shared -o libxsmm.so -Wl,--whole-archive libxsmm.a \
                       libxsmmnoblas.a -Wl,--no-whole-archive -lm

Products are sizes M x N x K, as they are (nn), with the left factor transposed
(tn) or the right one (nt); 'fused' ones add a bias and apply gelu. Convolutions
are N x C x size - filters, window and stride, and 'direct' where Tandem and the
libraries do without Winograd's method. [4096, 1024] are the other
kernels' sizes, but of attention (heads x time x width) and optimizers (4 Mi
parameters).

A case whose result is wrong is an error (exit status 4). 'roof' is the time
that the case's operations take on registers alone, 'copy' that of copying as
many bytes as the case must read and write; both are measured within the same
rounds. [low-high] are the tenth and the ninetieth percentile of the rounds.
'ratio' is the time of the fastest library over Tandem's (above 1, Tandem is
ahead), the median of the rounds' ratios; 'own' the same for the fastest one that
has its operands in a layout of its own (marked *), which costs it nothing here.
)";
}

static std::vector<std::string> split(const std::string &text) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');)
    parts.push_back(part);
  return parts;
}

bool BenchOptions::wants(const std::string &name) const {
  for (const std::string &part : split(filter))
    if (name.find(part) != std::string::npos)
      return true;
  return filter.empty();
}

BenchOptions bench::parseOptions(int argc, char **argv) {
  BenchOptions options;
  int all = runtime::availableThreads();
  options.threads = {1};
  if (all > 1)
    options.threads.push_back(all);
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i], value;
    size_t equals = argument.find('=');
    if (equals != std::string::npos)
      value = argument.substr(equals + 1);
    std::string name = argument.substr(0, equals);
    if (name == "--help") {
      options.help = true;
    } else if (name == "--list") {
      options.list = true;
    } else if (name == "--check") {
      options.check = options.alone = true;
    } else if (name == "--alone") {
      options.alone = true;
    } else if (name == "--quick") {
      options.effort = {.seconds = 0.02, .turn = 1e-3, .least = 3, .most = 5};
    } else if (name == "--json") {
      options.json = value.empty();
      options.jsonFile = value;
    } else if (name == "--filter") {
      options.filter = value;
    } else if (name == "--target") {
      options.target = value;
    } else if (name == "--openblas") {
      options.openBlas = value;
    } else if (name == "--libxsmm") {
      options.xsmm = value;
    } else if (name == "--onednn") {
      options.dnnl = split(value);
    } else if (name == "--seconds" && std::atof(value.c_str()) > 0) {
      options.effort.seconds = std::atof(value.c_str());
    } else if (name == "--threads") {
      options.threads.clear();
      for (const std::string &part : split(value)) {
        options.threads.push_back(std::atoi(part.c_str()));
        if (options.threads.back() < 1)
          options.error = "expected numbers of threads but got '" + value + "'";
      }
    } else {
      options.error = "unknown or incomplete option '" + argument + "'";
    }
  }
  return options;
}
