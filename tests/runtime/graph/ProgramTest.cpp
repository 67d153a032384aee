//===- ProgramTest.cpp - random graphs against a model and PyTorch --------===//
//
// oracle.txt has 200 graphs with what PyTorch does with them (make-oracle.py):
// the engine and the model must do the same. Then the engine is compared with
// the model on graphs of up to 40 statements; a failure is made smaller by
// leaving statements out. TANDEM_GRAPH_PROGRAMS sets how many (5,000), and
// TANDEM_GRAPH_SEED which.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/graph/Programs.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

using namespace tdm::testing;

namespace {

std::string joined(const Outcome &outcome) {
  std::string text;
  for (const std::string &line : outcome)
    text += line + "\n";
  return text;
}

bool isExpected(const std::string &kind) {
  return kind == "log" || kind == "gradient" || kind == "result";
}

/// Makes programs of the same kind as make-oracle.py.
class Generator {
public:
  explicit Generator(unsigned seed) : random(seed), watches(seed % 2 == 1) {}

  Program program() {
    Program made;
    int leaves = 1 + number(3), statements = 3 + number(38);
    for (int i = 0; i < leaves; ++i) {
      made.push_back({"leaf", value(), std::to_string(number(7) - 3)});
      watch(made);
    }
    for (int i = 0; i < statements; ++i) {
      int before = names;
      if (Statement line = number(3) ? op() : hook(); !line.empty())
        made.push_back(std::move(line));
      if (names > before)
        watch(made);
    }
    Statement end{number(5) < 3 ? "backward" : "grad"};
    for (int i = 0, count = 1 + number(2); i < count; ++i)
      end.push_back(some());
    if (end[0] == "grad") {
      end.push_back(":");
      for (int i = 0, count = 1 + number(4); i < count; ++i)
        end.push_back("v" + std::to_string(number(names)));
    }
    made.push_back(std::move(end));
    return made;
  }

private:
  int number(int below) {
    return static_cast<int>(random() % static_cast<unsigned>(below));
  }
  /// Notes when the newest value's node runs, if all are to be seen.
  void watch(Program &made) {
    if (watches)
      made.push_back({"pre", "h" + std::to_string(++hooks),
                      "v" + std::to_string(names - 1)});
  }
  std::string value() { return "v" + std::to_string(names++); }
  std::string some() {
    return "v" + std::to_string(names - 1 - number(std::min(names, 6)));
  }
  std::string factor() {
    const char *factors[] = {"-1", "2", "3"};
    return factors[number(3)];
  }

  Statement op() {
    std::string a = some(), b = some();
    switch (number(8)) {
    case 0:
    case 1:
      return {"add", value(), a, b};
    case 2: // values stay small; what was saved is not written
      if (products++ > 2)
        return {};
      saved += a + " " + b + " ";
      return {"mul", value(), a, b};
    case 3:
    case 4:
      return {"scale", value(), a, factor()};
    case 5:
      return number(3) ? Statement() : Statement{"cut", value(), a};
    case 6:
      if (nests++ > 2)
        return {};
      saved += b + " ";
      return {"nest", value(), a, b};
    default:
      if (a.size() == 2 && a[1] < '3')
        return {}; // maybe a leaf
      if (saved.find(a + " ") != std::string::npos)
        return {};
      return {"write", a, factor()};
    }
  }

  Statement hook() {
    std::string id = "h" + std::to_string(++hooks), a = some();
    switch (number(6)) {
    case 0:
    case 1:
      return {"hook", id, a, factor()};
    case 2:
      return {"retain", a};
    case 3:
      return {"pre", id, a};
    case 4:
      return {"post", id, a};
    default:
      return {"accumulated", id, a};
    }
  }

  std::mt19937 random;
  bool watches;
  int names = 0, hooks = 0, products = 0, nests = 0;
  std::string saved;
};

bool differs(const Program &program) { return play(program) != model(program); }

/// Leaves statements out as long as it still fails.
Program shrunk(Program program) {
  for (bool isSmaller = true; isSmaller;) {
    isSmaller = false;
    for (size_t i = 0; i + 1 < program.size(); ++i) {
      Program less = program;
      less.erase(less.begin() + static_cast<ptrdiff_t>(i));
      if (differs(less)) {
        program = std::move(less);
        isSmaller = true;
        break;
      }
    }
  }
  return program;
}

unsigned setting(const char *name, unsigned otherwise) {
  const char *text = std::getenv(name);
  return text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10))
              : otherwise;
}

} // namespace

TEST(GraphPrograms, N14_TheOracleSaysTheSame) {
  std::ifstream file(TANDEM_GRAPH_ORACLE);
  ASSERT_TRUE(file) << TANDEM_GRAPH_ORACLE;
  std::string line, name;
  Program program;
  Outcome expected;
  int graphs = 0;
  auto compare = [&] {
    if (program.empty())
      return;
    ++graphs;
    EXPECT_EQ(joined(play(program)), joined(expected))
        << name << ", the engine:\n"
        << toString(program);
    EXPECT_EQ(joined(model(program)), joined(expected))
        << name << ", the model:\n"
        << toString(program);
    program.clear();
    expected.clear();
  };
  while (std::getline(file, line)) {
    std::istringstream words(line);
    Statement statement;
    for (std::string word; words >> word;)
      statement.push_back(word);
    if (statement.empty())
      continue;
    if (statement[0] == "graph") {
      compare();
      name = line;
    } else if (isExpected(statement[0])) {
      expected.push_back(line);
    } else {
      program.push_back(std::move(statement));
    }
  }
  compare();
  EXPECT_EQ(graphs, 200);
}

TEST(GraphPrograms, RandomGraphsAreAsTheModelSays) {
  unsigned count = setting("TANDEM_GRAPH_PROGRAMS", 5000);
  unsigned seed = setting("TANDEM_GRAPH_SEED", 1);
  for (unsigned i = 0; i < count; ++i) {
    Program program = Generator(seed + i).program();
    if (!differs(program))
      continue;
    program = shrunk(program);
    FAIL() << "seed " << seed + i << ":\n"
           << toString(program) << "expected:\n"
           << joined(model(program)) << "but got:\n"
           << joined(play(program));
  }
}
