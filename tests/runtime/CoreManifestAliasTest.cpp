//===- CoreManifestAliasTest.cpp - manifests of what is mutated -----------===//
//
// The fields for aliases, metadata, contexts and undefined cotangents: a
// manifest that has them all is valid and comes back from its text as it was;
// then one row for each rule, as in CoreManifestTest.cpp.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/TestModel.h"

#include <functional>
#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::artifact;
using namespace tandem::test;

namespace {

Slot slotOf(Role role, const char *name, std::vector<int64_t> shape) {
  Slot slot;
  slot.role = role;
  slot.name = name;
  slot.shape = std::move(shape);
  return slot;
}

TEST(ManifestAlias, IsValidAndComesBackFromItsText) {
  Manifest m = mutatingRegression();
  EXPECT_TRUE(validate(m, 128).ok()) << validate(m, 128).message();
  Result<std::string> text = toJson(m);
  ASSERT_TRUE(text);
  Result<Manifest> read = fromJson(*text);
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(*read, m);
  EXPECT_NE(
      text->find(R"("needs":[["loss","pred"]],"choices":[{"when":[["loss"],)"
                 R"(["pred"]]},{"when":[["loss"]],"copy":0},{"when":[],)"
                 R"("copy":-1}])"),
      std::string::npos)
      << *text;
  EXPECT_NE(text->find(R"("aliases":[{"name":"xt","dtype":"f32","shape":[3,8],)"
                       R"("of":"x","views":[{"op":"permute",)"
                       R"("permutation":[1,0]}],"part_of":"split"})"),
            std::string::npos)
      << *text;
}

TEST(ManifestAlias, WhatIsEmptyIsLeftOut) {
  std::string text = *toJson(regression());
  for (const char *key :
       {"alias", "freed", "metadata", "storage", "resize", "as_found",
        "unchecked", "visible", "needs", "where", "choices"})
    EXPECT_EQ(text.find("\"" + std::string(key)), std::string::npos) << key;
}

struct TextRow {
  const char *from, *to, *message;
};

class ManifestAliasText : public ::testing::TestWithParam<TextRow> {};

TEST_P(ManifestAliasText, IsRefused) {
  const TextRow &row = GetParam();
  std::string text = *toJson(mutatingRegression());
  size_t at = text.find(row.from);
  ASSERT_NE(at, std::string::npos) << row.from;
  text.replace(at, std::string(row.from).size(), row.to);
  Result<Manifest> manifest = fromJson(text);
  ASSERT_FALSE(manifest);
  EXPECT_NE(manifest.status().message().find(row.message), std::string::npos)
      << manifest.status().message();
}

INSTANTIATE_TEST_SUITE_P(
    Rows, ManifestAliasText,
    ::testing::Values(
        TextRow{"\"op\":\"permute\"", "\"op\":\"twist\"",
                "/programs/1/arguments/0/metadata/views/0/op: unknown view "
                "'twist'"},
        TextRow{"\"op\":\"permute\"", "\"op\":\"permute\",\"shape\":[1]",
                "/metadata/views/0/shape: unknown field"},
        TextRow{"\"of\":\"x\"", "\"of\":\"x\",\"output\":\"y\"",
                "/metadata: expected one of the fields 'of' and 'output'"},
        TextRow{"\"of\":\"base\",\"dtype\":\"f32\",", "\"of\":\"base\",",
                "/alias: expected the field 'dtype' but got none"},
        TextRow{"\"freed\":true", "\"freed\":1",
                "/freed: expected true or false"},
        TextRow{"\"resize\":4", "\"resize\":\"4\"",
                "/resize: expected an integer"},
        TextRow{"\"needs\":[[\"loss\"]]", "\"needs\":[\"loss\"]",
                "/needs/0: expected a list but got string"},
        TextRow{"\"needs\":[[\"loss\"]]", "\"needs\":[[1]]",
                "/needs/0/0: expected a string but got number"},
        TextRow{"\"when\":[],", "", "expected the field 'when' but got none"},
        TextRow{"\"part_of\":\"split\"", "\"part\":\"split\"",
                "/programs/1/aliases/0/part: unknown field"}));

struct Row {
  const char *name;
  std::function<void(Manifest &)> change;
  const char *message;
};

void PrintTo(const Row &row, std::ostream *out) { *out << row.name; }

class ManifestAliasRule : public ::testing::TestWithParam<Row> {};

TEST_P(ManifestAliasRule, IsChecked) {
  Manifest m = mutatingRegression();
  GetParam().change(m);
  Status status = validate(m, 128);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find(GetParam().message), std::string::npos)
      << status.message();
}

const Row rows[] = {
    {"MetadataOfAnother",
     [](Manifest &m) { m.programs[1].arguments[0].metadata->of = "y"; },
     "/programs/1/arguments/0/metadata/of: expected 'x' but got 'y'"},
    {"MetadataThatDoesNotFit",
     [](Manifest &m) {
       m.programs[1].arguments[0].metadata->views = {View::reshape({25})};
     },
     "/programs/1/arguments/0/metadata/views: 'reshape': expected the elements "
     "of shape [8, 3] but got shape [25]"},
    {"MetadataOnParam",
     [](Manifest &m) { m.programs[1].arguments[2].metadata = aliasOf("w"); },
     "/programs/1/arguments/2/metadata: expected it on an input only"},
    {"StorageOfNothing",
     [](Manifest &m) { m.programs[1].arguments[6].storage->of = "q"; },
     "/programs/1/arguments/6/storage/of: expected another argument but got "
     "'q'"},
    {"StorageAndMetadata",
     [](Manifest &m) { m.programs[1].arguments[6].metadata = aliasOf("q"); },
     "/programs/1/arguments/6/metadata: expected it not beside 'storage'"},
    {"ResizeNegative",
     [](Manifest &m) { m.programs[1].arguments[7].resize = -1; },
     "/programs/1/arguments/7/resize: expected 0 to"},
    {"AsFoundInForward",
     [](Manifest &m) { m.programs[1].arguments[0].asFound = true; },
     "/programs/1/arguments/0/as_found: expected it on an input, param or "
     "state of a backward only"},
    {"UncheckedInForward",
     [](Manifest &m) { m.programs[1].arguments[0].unchecked = true; },
     "/programs/1/arguments/0/unchecked"},
    {"VisibleOutput",
     [](Manifest &m) { m.programs[1].results[0].visible = true; },
     "/programs/1/results/0/visible: expected it on an update only"},
    {"NeedsOfOutput",
     [](Manifest &m) { m.programs[1].results[0].needs = {{"loss"}}; },
     "/programs/1/results/0/needs: expected it on a gradient or update"},
    {"AliasOfItself",
     [](Manifest &m) { m.programs[1].arguments[5].alias->of = "p"; },
     "/programs/1/arguments/5/alias: expected an alias of another argument"},
    {"AliasWithoutType",
     [](Manifest &m) { m.programs[1].arguments[5].alias->storage.reset(); },
     "/programs/1/arguments/5/alias/of: expected the type of the storage "
     "'base'"},
    {"AliasOfTwoTypes",
     [](Manifest &m) {
       m.programs[1].arguments[6].alias->storage->shape = {2, 8};
     },
     "/programs/1/arguments/6/alias: expected the storage 'base' to have the "
     "type f32 [4, 4] but got f32 [2, 8]"},
    {"AliasOfAnotherType",
     [](Manifest &m) { m.programs[1].arguments[5].alias->views.clear(); },
     "/programs/1/arguments/5/alias/views: expected views of the type f32 [4, "
     "2] but got f32 [4, 4]"},
    {"SavedAliasOfNothing",
     [](Manifest &m) { m.programs[1].results[4].alias->output = "q"; },
     "/programs/1/results/4/alias/output: expected an output among the results "
     "but got 'q'"},
    {"SavedAliasThatMoves",
     [](Manifest &m) {
       m.programs[1].results[4].alias->views = {View::reshape({4, 2}),
                                                View::permute({1, 0})};
     },
     "/programs/1/results/4/alias/views: expected the row-major elements"},
    {"SavedAliasWithABuffer",
     [](Manifest &m) { m.programs[1].buffers[6] = Buffer::result(4); },
     "/programs/1/buffers/6/index: expected the buffer of 'pred.saved' to be "
     "that of 'pred'"},
    {"SavedAliasIsNotDonated",
     [](Manifest &m) { m.programs[2].buffers[5] = Buffer::argument(4); },
     "expected an update in place of 'pred.saved', since a launch writes to "
     "it"},
    {"OutputAliasUnknown",
     [](Manifest &m) { m.programs[1].aliases[0].name = "nobody"; },
     "/programs/1/aliases/0/name: there is no output 'nobody'"},
    {"OutputAliasTwice",
     [](Manifest &m) { m.programs[1].aliases[0].name = "rows"; },
     "/programs/1/aliases/1/name: 'rows' is repeated"},
    {"OutputAliasOfNothing",
     [](Manifest &m) { m.programs[1].aliases[0].alias.of = "rate"; },
     "/programs/1/aliases/0: there is no argument 'rate'"},
    {"OutputAliasOfAliased",
     [](Manifest &m) { m.programs[1].aliases[1].alias.output = "xt"; },
     "/programs/1/aliases/1: there is no output 'xt' among the results"},
    {"OutputAliasType",
     [](Manifest &m) { m.programs[1].aliases[0].alias.views.clear(); },
     "/programs/1/aliases/0/views: expected views of the type f32 [3, 8] but "
     "got f32 [8, 3]"},
    {"OutputAliasOfBackward",
     [](Manifest &m) { m.programs[2].aliases = m.programs[1].aliases; },
     "/programs/2/aliases/0: 'backward' has no outputs"},
    {"NeedsOfNobody",
     [](Manifest &m) { m.programs[2].results[0].needs = {{"xt"}}; },
     "/programs/2/results/0/needs/0: there is no cotangent of 'xt'"},
    {"NeedsOfNothing",
     [](Manifest &m) { m.programs[2].results[0].needs = {{}}; },
     "/programs/2/results/0/needs/0: expected at least one cotangent"},
    {"NeedsNotMet",
     [](Manifest &m) { m.programs[2].launches[2].needs = {{"loss"}}; },
     "/programs/2/results/2: expected a launch that writes 'w' whenever its "
     "needs hold"},
    {"ChoiceOfUnread",
     [](Manifest &m) { m.programs[2].launches[2].choices[1].copy = 1; },
     "/programs/2/launches/2/choices/1/copy: expected -1 or a position that is "
     "read but got 1"},
    {"ChoiceOfAnotherSize",
     [](Manifest &m) { m.programs[2].launches[2].buffers[0] = 0; },
     "/programs/2/launches/2/choices/1/copy: expected a buffer of 12 bytes but "
     "got 4"},
    {"ChoiceOfTwoWrites",
     [](Manifest &m) {
       m.programs[2].launches[2].writes = {0, 1};
     },
     "/programs/2/launches/2/choices/1: expected one written buffer but got 2"},
    {"UpdateOfUnknownCotangent",
     [](Manifest &m) { m.programs[2].results[2].name = "cotangent of xt"; },
     "there is no input, param or state 'cotangent of xt'"},
    {"BackwardReadsFreed",
     [](Manifest &m) {
       m.programs[2].arguments.push_back(slotOf(Role::Input, "f", {4}));
     },
     "expected 'f' to be saved, since 'forward' updates it"},
    {"FoundInput",
     [](Manifest &m) {
       m.programs[2].arguments.push_back(slotOf(Role::Input, "f", {4}));
       m.programs[2].arguments.back().asFound = true;
       m.programs[1].arguments.pop_back();
     },
     "expected 'forward' to have the input 'f'"},
    {"GradBackwardAlone",
     [](Manifest &m) { m.programs[4].name = "grad_backward"; },
     "/programs: expected 'grad_forward' beside 'grad_backward'"},
};

INSTANTIATE_TEST_SUITE_P(Rows, ManifestAliasRule, ::testing::ValuesIn(rows),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

// B10: a cotangent may be overwritten; the gradient's type may be its own.
TEST(ManifestAlias, B10_J22_CotangentsAndGradientTypes) {
  Manifest m = regression();
  Program &backward = m.programs[2];
  backward.results.push_back(slotOf(Role::Update, "cotangent of loss", {}));
  backward.results.back().inPlace = true;
  backward.launches[1].buffers[2] = 0;
  backward.launches[1].buffers[1] = 4;
  backward.launches[1].reads = {0, 1, 2};
  backward.launches[1].writes = {1, 2};
  EXPECT_TRUE(validate(m, 128).ok()) << validate(m, 128).message();
  backward.results[0].dtype = DType::F64;
  EXPECT_TRUE(validate(m, 128).ok()) << validate(m, 128).message();
  backward.results[0].dtype = DType::I32;
  EXPECT_FALSE(validate(m, 128).ok());
}

} // namespace
