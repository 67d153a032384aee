//===- PlayProgram.cpp - carries a program out through graph.hpp ----------===//
#include "tests/runtime/graph/ApiNodes.h"
#include "tests/runtime/graph/Programs.h"

#include <cstdio>
#include <map>

namespace tdm::testing {

std::string numberText(const float *value) {
  if (!value)
    return "none";
  char text[32];
  std::snprintf(text, sizeof text, "%g", *value == 0 ? 0 : *value);
  return text;
}

std::string toString(const Program &program) {
  std::string text;
  for (const Statement &line : program) {
    for (const std::string &word : line)
      text += word + " ";
    text.back() = '\n';
  }
  return text;
}

namespace {

std::string text(const Tensor &tensor) {
  Floats values = valuesOf(tensor);
  return numberText(values.empty() ? nullptr : values.data());
}

class Play {
public:
  Outcome outcome;

  void run(const Statement &line) {
    const std::string &kind = line[0];
    if (kind == "leaf")
      add(line[1], leaf(std::stof(line[2])));
    else if (kind == "backward" || kind == "grad")
      end(line);
    else if (kind == "add" || kind == "mul")
      combine(line);
    else if (kind == "scale" && values.count(line[2]))
      add(line[1], scale(values.at(line[2]), std::stod(line[3])));
    else if (kind == "cut" && values.count(line[2]))
      add(line[1], call(cut(), {values.at(line[2])})[0]);
    else if (kind == "nest" && values.count(line[2]) && values.count(line[3]))
      add(line[1], call(nest(values.at(line[3])), {values.at(line[2])})[0]);
    else if (kind == "write" && values.count(line[1]))
      call(multiply(std::stof(line[2])), {values.at(line[1])}, 0);
    else if (kind == "retain" && values.count(line[1]))
      retain(line[1]);
    else if (line.size() > 2 && values.count(line[2]))
      hook(kind, line[1], values.at(line[2]), line);
  }

private:
  void add(const std::string &name, Tensor value) {
    order.push_back(name);
    values.insert_or_assign(name, std::move(value));
  }

  void combine(const Statement &line) {
    auto a = values.find(line[2]), b = values.find(line[3]);
    if (a != values.end() && b != values.end())
      add(line[1], line[0] == "add" ? tdm::add(a->second, b->second)
                                    : mul(a->second, b->second));
  }

  static Function cut() {
    return {"cut",
            [](Node &, const TensorList &inputs, TensorList &outputs) {
              outputs[0] = scale(inputs[0], 1);
            },
            [](Node &, const TensorList &, TensorList &) {}};
  }

  Function nest(const Tensor &inner) {
    flags = TDM_RETAIN_GRAPH; // a node may run in several of the backwards
    return {"nest",
            [](Node &, const TensorList &inputs, TensorList &outputs) {
              outputs[0] = scale(inputs[0], 1);
            },
            [inner](Node &, const TensorList &gradients, TensorList &results) {
              backward({inner}, {}, TDM_RETAIN_GRAPH);
              results[0] = gradients[0];
            }};
  }

  static Function multiply(float factor) {
    return {"write",
            [factor](Node &node, const TensorList &inputs, TensorList &) {
              node.mutates(0);
              float value = factor * valuesOf(inputs[0])[0];
              check(tdm_tensor_write(inputs[0].get(), &value, sizeof value));
            },
            [factor](Node &, const TensorList &gradients, TensorList &results) {
              if (gradients[0].defined())
                results[0] = scale(gradients[0], factor);
            }};
  }

  void retain(const std::string &name) {
    if (values.at(name).isLeaf())
      return;
    retainGradient(values.at(name));
    retained.insert({name, true});
  }

  void hook(const std::string &kind, const std::string &id, Tensor &value,
            const Statement &line) {
    auto note = [this, id](const Tensor &gradient) {
      log += " " + id + ":" + text(gradient);
    };
    if (kind == "hook") {
      double factor = std::stod(line[3]);
      addHook(value, [note, factor](Tensor &gradient) {
        note(gradient);
        if (gradient.defined())
          gradient = scale(gradient, factor);
      });
    } else if (kind == "accumulated" && value.isLeaf()) {
      addAccumulatedHook(value, note);
    } else if (kind == "pre") {
      Node::of(value).addPreHook(
          [note](TensorList &gradients) { note(gradients[0]); });
    } else if (kind == "post") {
      Node::of(value).addPostHook(
          [note](TensorList &, const TensorList &inputs) { note(inputs[0]); });
    }
  }

  void end(const Statement &line) {
    TensorList roots, inputs;
    bool isInput = false;
    for (size_t i = 1; i < line.size(); ++i)
      if (line[i] == ":")
        isInput = true;
      else if (auto it = values.find(line[i]); it != values.end())
        (isInput ? inputs : roots).push_back(it->second);
    TensorList results;
    if (!roots.empty() && line[0] == "backward")
      backward(roots, {}, flags);
    else if (!roots.empty() && !inputs.empty())
      results = grad(roots, inputs, {}, TDM_UNUSED_EMPTY | flags);
    outcome.push_back("log" + log);
    for (const std::string &name : order)
      if (values.at(name).isLeaf() || retained.count(name))
        outcome.push_back("gradient " + name + " " +
                          text(gradientOf(values.at(name))));
    for (size_t i = 0; i < results.size(); ++i)
      outcome.push_back("result " + std::to_string(i) + " " + text(results[i]));
  }

  std::vector<std::string> order;
  std::map<std::string, Tensor> values;
  std::map<std::string, bool> retained;
  unsigned flags = 0;
  std::string log;
};

} // namespace

Outcome play(const Program &program) {
  Play played;
  for (const Statement &line : program)
    played.run(line);
  return played.outcome;
}

} // namespace tdm::testing
