//===- JsonMutationTest.cpp - JSON graphs that write, alias and differentiate
//===//
#include "tests/compiler/JsonGraphs.h"

using namespace tandem;
using namespace tandem::test;

TEST(JsonGraph, M01_M16_InputsAreWrittenAndNothingIsReturned) {
  expectParts(graphOf(R"({"op": "sin", "inputs": ["x"], "outputs": ["o"]},
                         {"op": "write", "inputs": ["o", "x"]})",
                      ""),
              {"%arg0: !tandem.ref<2x3xf32>", "tandem.write", "return\n",
               "%arg1: tensor<3x2xf32>"});
  expectProblem(
      graphOf(R"({"op": "sin", "inputs": ["x"], "outputs": ["o"]})", ""),
      "/: expected at least one output, or a change");
}

TEST(JsonGraph, M07_WritesThroughViewsReachTheBase) {
  expectParts(graphOf(R"({"op": "permute", "inputs": ["x"], "outputs": ["t"],
                  "attributes": {"permutation": [1, 0]}},
                 {"op": "detach", "inputs": ["t"], "outputs": ["d"]},
                 {"op": "write", "inputs": ["y", "d"]},
                 {"op": "cos", "inputs": ["x"], "outputs": ["o"]})"),
              {"tandem.permute %arg0 by [1, 0] : !tandem.ref<2x3xf32>",
               "tandem.detach", "tandem.write %arg1 into"});
}

TEST(JsonGraph, M08_M11_M14_HandlesChange) {
  expectParts(graphOf(R"({"op": "reshape", "inputs": ["x"], "outputs": ["v"],
                  "attributes": {"shape": [6]}},
                 {"op": "transpose_", "inputs": ["x"],
                  "attributes": {"a": 0, "b": 1}},
                 {"op": "set_", "inputs": ["s", "x"], "no_grad": true},
                 {"op": "set_", "inputs": ["v", "x"]},
                 {"op": "resize_", "inputs": ["y"],
                  "attributes": {"elements": 0}},
                 {"op": "cos", "inputs": ["v"], "outputs": ["o"]})"),
              {"tandem.transpose_ %arg0 dims 0, 1",
               "{tandem.no_grad} : !tandem.ref<2x3xf32>, !tandem.ref<3x2xf32>",
               "tandem.reshape %1 to [3, 2]", "tandem.resize_ %arg1 to 0"});
}

TEST(JsonGraph, M11_SetKeepsElementTypes) {
  expectProblem(graphOf(R"({"op": "set_", "inputs": ["x", "i"]})", "",
                        R"(, {"name": "i", "type": "i32", "shape": [2, 3]})"),
                "/nodes/0: expected two refs of one element type, but got "
                "'!tandem.ref<2x3xf32>' and '!tandem.ref<2x3xi32>'");
}

TEST(JsonGraph, M19_ACastToItsTypeIsTheArgument) {
  expectParts(graphOf(R"({"op": "cast", "inputs": ["x"], "outputs": ["same"],
                          "type": "f32"},
                         {"op": "write", "inputs": ["s", "same"]})",
                      ""),
              {"tandem.write %arg2 into %arg0"});
}

TEST(JsonGraph, J07_M20_RegionsAndNodesSayTheirModes) {
  expectParts(graphOf(R"({"op": "no_grad", "stream": 2, "nodes": [
                   {"op": "sin", "inputs": ["x"], "outputs": ["a"]},
                   {"op": "cos", "inputs": ["x"], "outputs": ["b"],
                    "enable_grad": true},
                   {"op": "enable_grad", "nodes": [
                     {"op": "exp", "inputs": ["x"], "outputs": ["c"],
                      "stream": 3}]},
                   {"op": "abs", "inputs": ["a"], "outputs": ["d"]}]},
                 {"op": "neg", "inputs": ["d"], "outputs": ["o"]})"),
              {"tandem.sin %arg0 {tandem.no_grad, tandem.stream = 2 : i64}",
               "tandem.cos %arg0 {tandem.stream = 2 : i64}",
               "tandem.exp %arg0 {tandem.stream = 3 : i64}",
               "{tandem.no_grad, tandem.stream = 2 : i64}", "tandem.neg %3 :"});
}

TEST(JsonGraph, A01_A02_OutputsThatAliasAreStorage) {
  expectParts(graphOf(R"({"op": "sin", "inputs": ["x"], "outputs": ["h"]},
                         {"op": "reshape", "inputs": ["h"], "outputs": ["v"],
                          "attributes": {"shape": [6]}})",
                      R"({"name": "x", "value": "x"},
                         {"name": "h", "value": "h"},
                         {"name": "v", "value": "v"})"),
              {"!tandem.ref<2x3xf32>, !tandem.ref<2x3xf32>, "
               "!tandem.ref<6xf32>\n"});
}

TEST(JsonGraph, A07_A08_AliasesAreDeclared) {
  const char *nodes = R"({"op": "sin", "inputs": ["t"], "outputs": ["o"]})";
  auto with = [&](const std::string &alias) {
    return graphOf(nodes, R"({"name": "o", "value": "o"})",
                   R"(, {"name": "t", "type": "f32", "shape": [3, 2],
                         "alias": )" +
                       alias + "}");
  };
  const char *permuted = R"("views": [{"op": "permute",
                                       "permutation": [1, 0]}])";
  expectParts(with(R"({"of": "x", )" + std::string(permuted) + "}"),
              {"alias = {of = \"x\", views = [{op = \"permute\", permutation "
               "= array<i64: 1, 0>}]}"});
  expectParts(with(R"({"of": "b", "type": "f32", "shape": [2, 3], )" +
                   std::string(permuted) + "}"),
              {"alias = {of = \"b\", type = tensor<2x3xf32>"});
  expectParts(with(R"({"of": "b", "type": "i32", "shape": [3, 2],
                       "views": [{"op": "bitcast", "type": "f32"}]})"),
              {"{op = \"bitcast\", type = f32}"});
  struct Row {
    const char *alias, *problem;
  };
  for (const Row &row : std::initializer_list<Row>{
           {R"({"of": "b", "views": []})",
            "/inputs/2: expected 't' to alias an argument or storage of a "
            "known type, but there is no 'b'"},
           {R"({"of": "x", "views": []})",
            "/inputs/2: expected 't' to have the type of its views, "
            "'!tandem.ref<2x3xf32>'"},
           {R"({"of": "x", "views": [{"op": "sin"}]})", "/inputs/2"},
           {R"({"of": "t", "views": []})", "it aliases itself"},
           {R"({"views": []})", "/inputs/2/alias: expected a field 'of'"},
           {R"({"of": "x", "views": [3]})",
            "/inputs/2/alias/views/0: expected an object"}})
    expectProblem(with(row.alias), row.problem);
}

TEST(JsonGraph, J16_GradientsInsideOfTheProgram) {
  expectParts(graphOf(R"({"op": "sin", "inputs": ["x"], "outputs": ["e"]},
                         {"op": "grad", "inputs": ["e", "x"],
                          "outputs": ["o"]})"),
              {"tandem.grad %0 wrt(%arg0)"});
  expectProblem(graphOf(R"({"op": "grad", "inputs": [], "outputs": ["o"]})"),
                "/nodes/0");
}

namespace {

/// A custom_vjp of x and s, with nodes in its regions.
std::string customOf(const std::string &forward, const std::string &backward,
                     const std::string &rest = "") {
  return graphOf(R"({"op": "custom_vjp", "name": "f", "inputs": ["x"],
      "refs": ["s"], "outputs": ["o"], )" +
                 rest + R"("forward": {"inputs": ["a"], "refs": ["r"],
        "nodes": [{"op": "sin", "inputs": ["a"], "outputs": ["b"]})" +
                 forward + R"(],
        "outputs": ["b"], "saved": ["a", {"value": "b", "unchecked": true}]},
      "backward": {"saved": ["a", "b"], "cotangents": ["dy"], "refs": ["r"],
        "nodes": [)" +
                 backward + R"(],
        "gradients": ["dy"]}})");
}

} // namespace

TEST(JsonGraph, B01_C09_CustomVjpDeclaresWhatItWrites) {
  expectParts(
      customOf("", R"({"op": "write", "inputs": ["a", "r"]})",
               R"("first_order": true, "undefined_cotangents": true, )"),
      {"tandem.custom_vjp \"f\"(%arg0) refs(%arg2)",
       "backward_writes = array<i64: 0>", "first_order",
       "unchecked = array<i64: 1>", "undefined_cotangents"});
  expectParts(customOf(R"(, {"op": "write", "inputs": ["b", "r"]})",
                       R"({"op": "write", "inputs": ["a", "dy"]})"),
              {", writes = array<i64: 0>", "%arg5: !tandem.ref<2x3xf32>"});
  std::string none = replaced(customOf("", ""), R"("gradients": ["dy"])",
                              R"("gradients": [null])");
  expectParts(none, {"tandem.undefined : tensor<2x3xf32>"});
}

TEST(JsonGraph, A15_EffectsOutsideOfACustomVjpAreMistakes) {
  struct Row {
    const char *forward, *backward, *problem;
  };
  for (const Row &row : std::initializer_list<Row>{
           {R"(, {"op": "write", "inputs": ["b", "a"]})", "",
            "/nodes/0/forward/nodes/1: writes input #0 of custom_vjp \"f\", "
            "which is a value"},
           {"", R"({"op": "write", "inputs": ["b", "a"]})",
            "/nodes/0/backward/nodes/0: writes input #0 of custom_vjp \"f\", "
            "as "
            "the forward saved it"},
           {R"(, {"op": "cos", "inputs": ["x"], "outputs": ["c"]})", "",
            "/nodes/0/forward/nodes/1/inputs/0: unknown value 'x'; values are "
            "defined before they are used, in the same region"},
           {"", R"({"op": "cos", "inputs": ["r"], "outputs": ["dy"]})",
            "expected names to be unique, but got 'dy' twice"},
           {R"(, {"op": "custom_vjp", "inputs": []})", "",
            "/nodes/0/forward/nodes/1: expected a custom_vjp not to stand"},
           {"", R"({"op": "grad", "inputs": ["a", "a"]})",
            "/nodes/0/backward/nodes/0: unsupported: 'grad'"}})
    expectProblem(customOf(row.forward, row.backward), row.problem);
  std::string text = customOf("", "");
  expectProblem(replaced(text, R"("outputs": ["b"], "saved")",
                         R"("outputs": ["r"], "saved")"),
                "/nodes/0: result #0 of custom_vjp \"f\" shares storage with "
                "ref #0");
  expectProblem(replaced(text, R"("cotangents": ["dy"])",
                         R"("cotangents": ["dy", "dz"])"),
                "/nodes/0/backward: expected 1 names in 'cotangents', but got "
                "2");
  expectProblem(replaced(text, R"("saved": ["a", "b"])", R"("saved": ["a"])"),
                "/nodes/0/backward: expected 2 names in 'saved', but got 1");
  expectProblem(replaced(text, R"("backward")", R"("backwards")"),
                "/nodes/0/backwards: unknown field 'backwards' (did you mean "
                "'backward'?)");
  // B12: the message did not say what the field is called.
  Outcome grads = import(replaced(text, R"("gradients")", R"("grads")"));
  EXPECT_NE(grads.message.find("unknown field 'grads'; known are 'saved', "
                               "'cotangents', 'refs', 'nodes', 'gradients'"),
            std::string::npos)
      << grads.message;
  EXPECT_EQ(llvm::StringRef(grads.message).count('\n'), 0u) << grads.message;
}
