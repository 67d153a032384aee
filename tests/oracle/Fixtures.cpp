//===- Fixtures.cpp - what PyTorch gives, and graphs that ask the same ----===//
#include "tests/oracle/Fixtures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace tandem;
using namespace tandem::oracle;

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

std::vector<std::string> oracle::familyNames() {
  std::vector<std::string> names;
  for (auto &entry : std::filesystem::directory_iterator(TANDEM_FIXTURES))
    if (entry.path().extension() == ".json")
      names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<Case> oracle::readFamily(const std::string &family) {
  std::string path = std::string(TANDEM_FIXTURES) + "/" + family + ".json";
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  auto json = parseJson(text.str());
  if (!file || !json) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(),
                 file ? json.status().message().c_str() : "cannot be read");
    std::abort();
  }
  std::vector<Case> cases;
  for (const Json &entry : (*json)["cases"])
    cases.emplace_back(entry);
  return cases;
}

Numbers Case::numbers(const Json &tensor, const char *key) const {
  Numbers result;
  result.shape = tensor["shape"].get<std::vector<int64_t>>();
  std::string type = tensor["type"];
  result.isFloat = type[0] == 'f' || (type[0] == 'b' && type != "bool");
  result.isF32 = type == "f32";
  for (const Json &x : tensor[key]) {
    if (x.is_string())
      result.data.push_back(x == "nan"   ? std::nan("")
                            : x == "inf" ? HUGE_VAL
                                         : -HUGE_VAL);
    else
      result.data.push_back(x.get<double>());
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

Json oracle::emptyGraph() {
  return Json{{"format", "tandem-graph"}, {"version", 1},
              {"name", "oracle"},         {"inputs", Json::array()},
              {"nodes", Json::array()},   {"outputs", Json::array()}};
}

/// Puts `prefix` before the names of values, in nested nodes too, and `type` in
/// the place of "f".
static Json placed(const Json &node, const std::string &prefix,
                   const std::string &type) {
  Json result = node;
  for (auto &[key, value] : result.items()) {
    bool isNames = value.is_array() && !value.empty();
    for (const Json &element : value)
      isNames = isNames && element.is_string();
    if (key == "type" && value == "f")
      value = type;
    else if (key == "trips")
      value = prefix + value.get<std::string>();
    else if (key == "attributes" || key == "op" || key == "name")
      continue;
    else if (isNames)
      for (Json &element : value)
        element = element == "" ? "" : prefix + element.get<std::string>();
    else if (value.is_array())
      for (Json &element : value)
        element = element.is_object() ? placed(element, prefix, type) : element;
    else if (value.is_object())
      value = placed(value, prefix, type);
  }
  return result;
}

namespace {

/// Adds nodes of one op each.
struct Nodes {
  Json &graph;

  std::string add(const std::string &op, const std::vector<std::string> &inputs,
                  const std::string &output, Json attributes = Json::object()) {
    graph["nodes"].push_back(Json{{"op", op},
                                  {"inputs", inputs},
                                  {"outputs", {output}},
                                  {"attributes", attributes}});
    return output;
  }
  /// The sum of the inner products of pairs, as a scalar of that name.
  std::string products(
      const std::vector<std::tuple<std::string, std::string, size_t>> &pairs,
      const std::string &name) {
    std::string sum;
    for (auto &[a, b, rank] : pairs) {
      std::string part = name + " of " + a;
      add("mul", {a, b}, part + ".each");
      std::vector<int64_t> dims;
      for (size_t d = 0; d < rank; ++d)
        dims.push_back(static_cast<int64_t>(d));
      if (dims.empty())
        part += ".each";
      else
        add("reduce_sum", {part + ".each"}, part, {{"dims", dims}});
      sum = sum.empty() ? part : add("add", {sum, part}, part + ".sum");
    }
    return sum;
  }
  /// `sum` + 0 * `x`: depends on `x`, which `grad` demands, where the
  /// derivative is zero because nothing does.
  std::string reaching(const std::string &sum, const std::string &x,
                       const Json &tensor, const std::string &type) {
    std::string name = sum + "+" + x, zero = name + ".zero";
    graph["nodes"].push_back(Json{{"op", "constant"},
                                  {"type", type},
                                  {"shape", tensor["shape"]},
                                  {"value", 0.0},
                                  {"outputs", {zero}}});
    return add("add",
               {sum, products({{x, zero, tensor["shape"].size()}}, name)},
               name);
  }
};

/// Whether a derivative may be zero because nothing depends on anything.
bool isZero(const Json &numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](const Json &x) {
    return x.is_number() && std::abs(x.get<double>()) < 1e-12;
  });
}

} // namespace

void Case::addTo(Json &graph, const std::string &type, Asked asked) const {
  bool first = asked == Asked::Derivatives && order() > 0;
  bool second = asked == Asked::Derivatives && order() > 1;
  auto declare = [&](const Json &tensor, const std::string &name) {
    graph["inputs"].push_back(
        Json{{"name", name},
             {"type", tensor["type"] == "f" ? Json(type) : tensor["type"]},
             {"shape", tensor["shape"]}});
  };
  auto give = [&](const std::string &name) {
    graph["outputs"].push_back(Json{{"name", name}, {"value", name}});
  };
  Nodes nodes{graph};
  std::vector<std::string> wanted, cotangents, gradients;
  std::vector<std::tuple<std::string, std::string, size_t>> energy, along;
  for (const Json &x : json["inputs"]) {
    std::string name = full(x["name"]);
    declare(x, name);
    if (!first || !x.contains("gradient"))
      continue;
    wanted.push_back(name);
    gradients.push_back(name + ".gradient");
    if (!second)
      continue;
    declare(x, name + ".direction");
    along.emplace_back(name + ".gradient", name + ".direction",
                       x["shape"].size());
  }
  for (const Json &y : json["outputs"])
    if (first && y.contains("cotangent")) {
      std::string name = full(y["name"]);
      declare(y, name + ".cotangent");
      cotangents.push_back(name + ".cotangent");
      energy.emplace_back(name, name + ".cotangent", y["shape"].size());
    }
  for (const Json &node : json["nodes"])
    graph["nodes"].push_back(placed(node, name() + "/", type));
  for (const Json &y : json["outputs"])
    give(full(y["name"]));
  if (!first)
    return;
  auto differentiate = [&](const std::string &what, auto inputs,
                           const std::vector<std::string> &results) {
    inputs.insert(inputs.begin(), what);
    graph["nodes"].push_back(
        Json{{"op", "grad"}, {"inputs", inputs}, {"outputs", results}});
    for (const std::string &result : results)
      give(result);
  };
  std::string sum = nodes.products(energy, full("energy"));
  for (const Json &x : json["inputs"])
    if (x.contains("gradient") && isZero(x["gradient"]))
      sum = nodes.reaching(sum, full(x["name"]), x, type);
  differentiate(sum, wanted, gradients);
  if (!second)
    return;
  sum = nodes.products(along, full("total"));
  std::vector<std::string> seconds;
  for (const Json &x : json["inputs"])
    if (x.contains("second")) {
      seconds.push_back(full(x["name"]) + ".second");
      if (isZero(x["second"]))
        sum = nodes.reaching(sum, full(x["name"]), x, type);
    }
  for (const Json &y : json["outputs"])
    if (y.contains("along")) {
      seconds.push_back(full(y["name"]) + ".along");
      if (isZero(y["along"]))
        sum = nodes.reaching(sum, full(y["name"]) + ".cotangent", y, type);
    }
  wanted.insert(wanted.end(), cotangents.begin(), cotangents.end());
  differentiate(sum, wanted, seconds);
}

NamedNumbers Case::inputs(Asked asked) const {
  NamedNumbers result;
  for (const Json &x : json["inputs"]) {
    std::string name = full(x["name"]);
    result[name] = numbers(x, "data");
    if (asked == Asked::Derivatives && order() > 1 && x.contains("direction"))
      result[name + ".direction"] = numbers(x, "direction");
  }
  for (const Json &y : json["outputs"])
    if (asked == Asked::Derivatives && y.contains("cotangent"))
      result[full(y["name"]) + ".cotangent"] = numbers(y, "cotangent");
  return result;
}

NamedNumbers Case::outputs(Asked asked) const {
  NamedNumbers result;
  for (const char *list : {"inputs", "outputs"})
    for (const Json &tensor : json[list]) {
      std::string name = full(tensor["name"]);
      if (list == std::string("outputs"))
        result[name] = numbers(tensor, "data");
      for (const char *key : {"gradient", "second", "along"})
        if (asked == Asked::Derivatives && tensor.contains(key))
          result[name + "." + key] = numbers(tensor, key);
    }
  return result;
}
