//===- Check.cpp - programs on all targets against the reference ----------===//
#include "tests/lower/Check.h"

#include "compiler/Target.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;

std::string test::program(const std::string &signature,
                          const std::string &body) {
  size_t arrow = signature.find("->");
  std::string arguments = signature.substr(0, arrow), text, results;
  auto forEach = [](const std::string &list, auto handle) {
    int depth = 0;
    std::string item;
    for (char c : list + ",") {
      depth += (c == '<') - (c == '>');
      if (c == ',' && depth == 0) {
        while (!item.empty() && item.front() == ' ')
          item.erase(0, 1);
        while (!item.empty() && item.back() == ' ')
          item.pop_back();
        if (!item.empty())
          handle(item);
        item.clear();
      } else {
        item += c;
      }
    }
  };
  forEach(arguments, [&](const std::string &item) {
    size_t colon = item.find(':');
    std::string name = item.substr(0, colon);
    text += (text.empty() ? "%" : ", %") + item +
            " {tandem.role = #tandem.role<input \"" + name + "\">}";
  });
  int number = 0;
  forEach(signature.substr(arrow + 2), [&](const std::string &item) {
    results += (results.empty() ? "" : ", ") + item +
               " {tandem.role = #tandem.role<output \"y" +
               std::to_string(number++) + "\">}";
  });
  return "module @m attributes {tandem.phase = \"partition\"} {\n"
         "func.func @evaluate(" +
         text + ") -> (" + results + ") {\n" + body + "\n}\n}\n";
}

static bool same(double x, double y) {
  return x == y ? std::signbit(x) == std::signbit(y)
                : std::isnan(x) && std::isnan(y);
}

void test::compare(const Arrays &got, const Arrays &expected,
                   double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t r = 0; r < got.size(); ++r) {
    int shown = 0;
    for (int64_t i = 0; i < got[r].size() && shown < 5; ++i) {
      double x = got[r][i], y = expected[r][i];
      bool close = x == y || (std::isnan(x) && std::isnan(y)) ||
                   std::abs(x - y) <= tolerance * std::max(1.0, std::abs(y));
      if (!close)
        ADD_FAILURE() << "result " << r << "[" << i << "]: got " << x
                      << ", expected " << y << " (" << ++shown << ")";
    }
  }
}

static void checkOn(const std::string &target, const std::string &text,
                    const Options &options, const Arrays *given) {
  SCOPED_TRACE(target);
  Machine machine(text, target);
  ASSERT_EQ(machine.error(), "") << text;
  if (options.kernels) {
    EXPECT_EQ(machine.kernels("evaluate").size(), options.kernels);
  }
  Arrays arguments = given ? *given
                           : machine.randomArguments("evaluate", options.seed,
                                                     options.low, options.high);
  Arrays expected = machine.reference("evaluate", arguments);
  machine.round("evaluate", expected);
  Arrays whole = machine.run("evaluate", arguments);
  compare(whole, expected, options.tolerance);
  for (int64_t longest : {1, 3}) {
    Arrays split = machine.run("evaluate", arguments, longest);
    for (size_t r = 0; r < whole.size(); ++r)
      for (int64_t i = 0; i < whole[r].size(); ++i)
        if (!same(whole[r][i], split[r][i])) {
          ADD_FAILURE() << "ranges of " << longest << " give result " << r
                        << "[" << i << "] = " << split[r][i] << ", not "
                        << whole[r][i];
          return;
        }
  }
  EXPECT_EQ(machine.error(), "") << text;
}

#ifdef __x86_64__
static bool runsHere(const std::string &target) {
  auto cpu = parseCpuTarget(target), here = parseCpuTarget("cpu");
  return cpu && here && llvm::all_of(cpu->features, [&](const auto &feature) {
           return llvm::is_contained(here->features, feature);
         });
}
#endif

void test::check(const std::string &text, const Options &options,
                 const Arrays *given) {
  checkOn(options.target, text, options, given);
  if (options.target != "cpu")
    return;
  checkOn("cuda", text, options, given);
#ifdef __x86_64__
  // Of narrow floats processors have different instructions, or none.
  if (text.find("f16") != std::string::npos)
    for (const char *older : {"cpu:x86-64-v2", "cpu:x86-64-v3"})
      if (runsHere(older))
        checkOn(older, text, options, given);
#endif
}
