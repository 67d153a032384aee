//===- ManifestTest.cpp - the manifest says what the module says ----------===//
//
// Modules at phase `partition` are planned and lowered; their manifest must
// hold every property of their roles, be valid, and survive its spelling as
// JSON.
//
//===----------------------------------------------------------------------===//
#include "compiler/emit/BuildManifest.h"
#include "ir/Signature.h"
#include "tests/lower/Machine.h"

#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::test;
namespace am = tandem::artifact;

namespace {

am::Manifest manifestOf(const std::string &text) {
  Machine machine(text);
  EXPECT_EQ(machine.error(), "");
  if (!machine.error().empty())
    return {};
  am::ArtifactWriter writer;
  auto manifest = buildManifest(machine.lowered(), writer);
  EXPECT_TRUE(manifest) << manifest.status().message();
  if (!manifest)
    return {};
  Status valid = am::validate(*manifest, 1 << 20);
  EXPECT_TRUE(valid) << valid.message();
  auto json = am::toJson(*manifest);
  EXPECT_TRUE(json) << json.status().message();
  auto read = am::fromJson(*json);
  EXPECT_TRUE(read) << read.status().message();
  EXPECT_EQ(*read, *manifest) << *json;
  return std::move(*manifest);
}

const am::Program &program(const am::Manifest &manifest, const char *name) {
  static const am::Program none;
  const am::Program *found = manifest.findProgram(name);
  EXPECT_NE(found, nullptr) << name;
  return found ? *found : none;
}

const am::Slot &slot(const std::vector<am::Slot> &slots, am::Role role,
                     const std::string &name, bool asFound = false) {
  static const am::Slot none;
  for (const am::Slot &candidate : slots)
    if (candidate.role == role && candidate.name == name &&
        candidate.asFound == asFound)
      return candidate;
  ADD_FAILURE() << "no slot " << name;
  return none;
}

using Shape = std::vector<int64_t>;

const char *const kAliases = R"(
module @m attributes {tandem.phase = "partition"} {
  func.func @evaluate(
      %x: tensor<2x4xf32> {tandem.role = #tandem.role<input "x" {metadata = {of = "x", views = [{op = "permute", permutation = array<i64: 1, 0>}]}, where = "'tandem.transpose_' at m.mlir:3:5"}>},
      %v: tensor<2x2xf32> {tandem.role = #tandem.role<input "v" {alias = {of = "x", views = [{op = "slice", starts = array<i64: 0, 2>, limits = array<i64: 2, 4>, strides = array<i64: 1, 1>}, {op = "detach"}]}}>},
      %p: tensor<3x2xi32> {tandem.role = #tandem.role<input "p" {alias = {of = "memory", type = tensor<8xf32>, views = [{op = "bitcast", type = i32}, {op = "as_strided", sizes = array<i64: 3, 2>, strides = array<i64: 2, 1>, offset = 2 : i64}]}}>},
      %s: tensor<4xf32> {tandem.role = #tandem.role<input "s" {storage = {of = "x", views = [{op = "slice", starts = array<i64: 1, 0>, limits = array<i64: 2, 4>, strides = array<i64: 1, 1>}, {op = "reshape", shape = array<i64: 4>}]}}>},
      %f: tensor<4xf32> {tandem.role = #tandem.role<input "f" {freed, resize = 4 : i64}>})
      -> (tensor<2x4xf32> {tandem.role = #tandem.role<output "o">},
          tensor<2x4xf32> {tandem.role = #tandem.role<update of "x" {visible, where = "'tandem.write' at m.mlir:9:5"}>})
      attributes {tandem.aliases = [
        {name = "row", type = tensor<4xf32>, of = "x", part_of = "split", views = [{op = "slice", starts = array<i64: 0, 0>, limits = array<i64: 1, 4>, strides = array<i64: 1, 1>}, {op = "reshape", shape = array<i64: 4>}]},
        {name = "wide", type = tensor<3x2x4xf32>, output = "o", views = [{op = "broadcast", shape = array<i64: 3, 2, 4>, dims = array<i64: 1, 2>}]}]} {
    %0 = tandem.exp %x : tensor<2x4xf32>
    %1 = tandem.neg %x : tensor<2x4xf32>
    return %0, %1 : tensor<2x4xf32>, tensor<2x4xf32>
  }
})";

static am::Alias aliasOf(std::string of, std::vector<am::View> views,
                         std::optional<am::TensorType> storage = {}) {
  am::Alias alias;
  alias.of = std::move(of);
  alias.views = std::move(views);
  alias.storage = std::move(storage);
  return alias;
}

static am::Alias aliasOfOutput(std::string output,
                               std::vector<am::View> views) {
  am::Alias alias;
  alias.output = std::move(output);
  alias.views = std::move(views);
  return alias;
}

TEST(Manifest, A01_AliasesAreSaid) {
  am::Manifest manifest = manifestOf(kAliases);
  const am::Program &evaluate = program(manifest, "evaluate");
  using am::View, am::Role;
  EXPECT_EQ(
      *slot(evaluate.arguments, Role::Input, "v").alias,
      (aliasOf("x", {View::slice({0, 2}, {2, 4}, {1, 1}), View::detach()})));
  EXPECT_EQ(*slot(evaluate.arguments, Role::Input, "p").alias,
            (aliasOf("memory",
                     {View::bitcast(am::DType::I32),
                      View::asStrided({3, 2}, {2, 1}, 2)},
                     am::TensorType{am::DType::F32, {8}})));
  ASSERT_EQ(evaluate.aliases.size(), 2u);
  EXPECT_EQ(evaluate.aliases[0].name, "row");
  EXPECT_EQ(evaluate.aliases[0].shape, Shape{4});
  EXPECT_EQ(evaluate.aliases[0].partOf, "split");
  EXPECT_EQ(evaluate.aliases[0].alias,
            (aliasOf("x", {View::slice({0, 0}, {1, 4}, {1, 1}),
                           View::reshape({4})})));
  EXPECT_EQ(evaluate.aliases[1].alias,
            (aliasOfOutput("o", {View::broadcast({3, 2, 4}, {1, 2})})));
  // Outputs that are no results are values too.
  ASSERT_NE(manifest.findOutput("row"), nullptr);
  EXPECT_EQ(manifest.findOutput("wide")->shape, (Shape{3, 2, 4}));
}

TEST(Manifest, M08_HandlesAndStoragesAreSaid) {
  am::Manifest manifest = manifestOf(kAliases);
  const am::Program &evaluate = program(manifest, "evaluate");
  using am::View, am::Role;
  const am::Slot &x = slot(evaluate.arguments, Role::Input, "x");
  EXPECT_EQ(*x.metadata, (aliasOf("x", {View::permute({1, 0})})));
  EXPECT_EQ(x.where, "'tandem.transpose_' at m.mlir:3:5");
  EXPECT_FALSE(x.freed || x.resize || x.storage || x.alias || x.asFound);
  EXPECT_EQ(*slot(evaluate.arguments, Role::Input, "s").storage,
            (aliasOf("x", {View::slice({1, 0}, {2, 4}, {1, 1}),
                           View::reshape({4})})));
  const am::Slot &f = slot(evaluate.arguments, Role::Input, "f");
  EXPECT_TRUE(f.freed);
  EXPECT_EQ(f.resize, 4);
  const am::Slot &update = slot(evaluate.results, Role::Update, "x");
  EXPECT_TRUE(update.visible);
  EXPECT_FALSE(update.inPlace); // "v" and "s" may show it
  EXPECT_EQ(update.where, "'tandem.write' at m.mlir:9:5");
}

const char *const kContext = R"(
module @m attributes {tandem.phase = "partition", tandem.mutated_in_backward = array<i64: 1>} {
  func.func @backward(
      %y: tensor<4xf32> {tandem.role = #tandem.role<saved "exp.0">},
      %k: tensor<4xf32> {tandem.role = #tandem.role<saved "sin.0">},
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad, pass = "backward"}>},
      %w: tensor<4xf32> {tandem.role = #tandem.role<param "w" {requires_grad, unchecked, where = "'tandem.mul' at m.mlir:2:3"}>},
      %a: tensor<4xf32> {tandem.role = #tandem.role<cotangent of "a">},
      %b: tensor<4xf32> {tandem.role = #tandem.role<cotangent of "b">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<grad of "x">},
          tensor<4xf32> {tandem.role = #tandem.role<grad of "w">},
          tensor<4xf32> {tandem.role = #tandem.role<update of "x" {pass = "backward"}>},
          tensor<4xf32> {tandem.role = #tandem.role<update of "cotangent of b" {pass = "backward"}>}) {
    %0 = tandem.mul %a, %y : tensor<4xf32>
    %1 = tandem.mul %b, %w : tensor<4xf32>
    %2 = tandem.accumulate %0, %1 : tensor<4xf32>
    %3 = tandem.add %x, %a : tensor<4xf32>
    %4 = tandem.if_defined %3 else %x when [["a"]] : tensor<4xf32>
    %5 = tandem.mul %b, %k : tensor<4xf32>
    %6 = tandem.exp %b : tensor<4xf32>
    return %2, %5, %4, %6 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  func.func @forward(
      %w: tensor<4xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>},
      %x: tensor<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
      %u: tensor<4xf32> {tandem.role = #tandem.role<input "u">})
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "a">},
          tensor<4xf32> {tandem.role = #tandem.role<output "b">},
          tensor<4xf32> {tandem.role = #tandem.role<saved "exp.0" {alias = {output = "a", views = []}, reason = "needed", where = "'tandem.exp' at m.mlir:4:3"}>},
          tensor<4xf32> {tandem.role = #tandem.role<saved "sin.0" {unchecked}>}) {
    %0 = tandem.exp %x : tensor<4xf32>
    %1 = tandem.mul %x, %w : tensor<4xf32>
    %2 = tandem.sin %u {tandem.stream = 3 : i64} : tensor<4xf32>
    return %0, %1, %0, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
})";

TEST(Manifest, B06_MutatedInBackwardIsThatOfTheModule) {
  am::Manifest manifest = manifestOf(kContext);
  EXPECT_EQ(manifest.mutatedInBackward, std::vector<int64_t>{1});
  // The graph's arguments come first, in their order, whatever comes first in
  // the module.
  std::vector<std::string> names;
  for (const am::Value &value : manifest.values)
    names.push_back(value.name);
  EXPECT_EQ(names, (std::vector<std::string>{"w", "x", "u", "a", "b"}));
}

TEST(Manifest, J04_ConditionsAreSaid) {
  am::Manifest manifest = manifestOf(kContext);
  const am::Program &backward = program(manifest, "backward");
  using am::Choice, am::Condition, am::Role;
  Condition a = {{"a"}}, b = {{"b"}};
  EXPECT_EQ(slot(backward.results, Role::Grad, "x").needs, Condition());
  EXPECT_EQ(slot(backward.results, Role::Grad, "w").needs, b);
  EXPECT_EQ(slot(backward.results, Role::Update, "x").needs, a);
  EXPECT_EQ(slot(backward.results, Role::Update, "cotangent of b").needs, b);
  unsigned sums = 0, writes = 0;
  for (const am::Launch &launch : backward.launches) {
    const std::string &kernel = manifest.kernels[launch.kernel].symbol;
    if (kernel == "accumulate_0") {
      ++sums;
      EXPECT_EQ(launch.needs, Condition());
      EXPECT_EQ(launch.choices,
                (std::vector<Choice>{
                    {{{"a"}, {"b"}}, std::nullopt}, {a, 0}, {b, 1}}));
    } else if (kernel == "if_defined_0") {
      ++writes;
      EXPECT_EQ(launch.needs, a);
    } else {
      EXPECT_TRUE(launch.needs == a || launch.needs == b) << kernel;
      EXPECT_TRUE(launch.choices.empty()) << kernel;
    }
  }
  EXPECT_EQ(sums, 1u);
  EXPECT_EQ(writes, 0u); // it runs only where it is the new value
}

TEST(Manifest, B01_PassesAreSaid) {
  am::Manifest manifest = manifestOf(kContext);
  const am::Program &backward = program(manifest, "backward");
  using am::Role;
  EXPECT_TRUE(slot(backward.arguments, Role::Input, "x", true).asFound);
  EXPECT_TRUE(slot(backward.results, Role::Update, "x").inPlace);
  const am::Slot &w = slot(backward.arguments, Role::Param, "w");
  EXPECT_FALSE(w.asFound);
  EXPECT_TRUE(w.unchecked);
  EXPECT_EQ(w.where, "'tandem.mul' at m.mlir:2:3");
}

TEST(Manifest, C05_ASavedOutputIsSaid) {
  am::Manifest manifest = manifestOf(kContext);
  const am::Program &forward = program(manifest, "forward");
  using am::Role;
  const am::Slot &saved = slot(forward.results, Role::Saved, "exp.0");
  EXPECT_EQ(*saved.alias, (aliasOfOutput("a", {})));
  EXPECT_EQ(saved.where, "'tandem.exp' at m.mlir:4:3");
  EXPECT_EQ(saved.reason, "needed");
  for (const am::Buffer &buffer : forward.buffers)
    EXPECT_FALSE(buffer == am::Buffer::result(2)) << "a buffer of its own";
  EXPECT_TRUE(slot(forward.results, Role::Saved, "sin.0").unchecked);
}

TEST(Manifest, WhatCannotBeSaidIsAnError) {
  using Edit = std::pair<const char *, std::function<void(mlir::ModuleOp)>>;
  auto ofBackward = [](mlir::ModuleOp module) {
    return module.lookupSymbol<mlir::func::FuncOp>("backward");
  };
  auto number = [](mlir::ModuleOp module) {
    return mlir::Builder(module.getContext()).getI64ArrayAttr({1});
  };
  const Edit edits[] = {
      {"program 'backward': expected a condition to be a list of lists of "
       "names, but got [1]",
       [&](mlir::ModuleOp module) {
         (*ofBackward(module).getOps<LaunchOp>().begin())
             .setNeedsAttr(number(module));
       }},
      {"program 'backward': expected a choice to be a dictionary, but got 1 "
       ": "
       "i64",
       [&](mlir::ModuleOp module) {
         (*ofBackward(module).getOps<LaunchOp>().begin())
             .setChoicesAttr(number(module));
       }},
      {"program 'backward': expected an alias to be a dictionary, but got 1 "
       ": "
       "i64",
       [&](mlir::ModuleOp module) {
         ofBackward(module)->setAttr(kAliasesAttr, number(module));
       }},
      {"program 'backward': 'grad of \"x\"': expected a condition to be a "
       "list "
       "of lists of names, but got [1]",
       [&](mlir::ModuleOp module) {
         mlir::func::FuncOp func = ofBackward(module);
         setRoleOfResult(func, 0,
                         roleOfResult(func, 0).with("needs", number(module)));
       }}};
  for (const auto &[message, edit] : edits) {
    Machine machine(kContext);
    ASSERT_EQ(machine.error(), "");
    edit(machine.lowered());
    am::ArtifactWriter writer;
    auto manifest = buildManifest(machine.lowered(), writer);
    ASSERT_FALSE(manifest);
    EXPECT_EQ(manifest.status().message(), message);
  }
}

TEST(Manifest, M20_StreamsAreSaid) {
  am::Manifest manifest = manifestOf(kContext);
  std::vector<int64_t> streams;
  for (const am::Launch &launch : program(manifest, "forward").launches)
    streams.push_back(launch.stream);
  llvm::sort(streams);
  EXPECT_EQ(streams, (std::vector<int64_t>{0, 3}));
}

} // namespace
