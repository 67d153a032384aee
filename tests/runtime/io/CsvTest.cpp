//===- CsvTest.cpp - tables, and rules for other types --------------------===//
#include "runtime/io/Csv.h"
#include "runtime/io/Cast.h"
#include "runtime/io/Elements.h"
#include "tests/runtime/io/Bytes.h"

namespace tandem::io::test {
namespace {

std::string problem(std::string_view text, std::string_view columns = "") {
  auto array = parseCsv(text, columns, "x");
  return array ? "" : array.status().message();
}

TEST(Csv, readsColumns) {
  constexpr std::string_view text =
      "\xef\xbb\xbf\"a\", b ,\"c,\"\"d\"\"\",y\r\n1,2.5,-3e1,0\r\n\r\n+4,5,6,1";
  auto read = [&](std::string_view columns, std::string_view otherwise = "x") {
    auto array = parseCsv(text, columns, otherwise);
    EXPECT_TRUE(array.ok()) << array.status().message();
    return *array;
  };
  Array all = read("");
  EXPECT_EQ(all.shape, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(elements<double>(all),
            (std::vector<double>{1, 2.5, -30, 0, 4, 5, 6, 1}));
  EXPECT_EQ(read("y").shape, std::vector<int64_t>{2});
  EXPECT_EQ(elements<double>(read("", "y")), (std::vector<double>{0, 1}));
  EXPECT_EQ(elements<double>(read("b..y,a")),
            (std::vector<double>{2.5, -30, 0, 1, 5, 6, 1, 4}));
  EXPECT_EQ(elements<double>(read("-y,-1")),
            (std::vector<double>{2.5, -30, 5, 6}));
  EXPECT_EQ(read("b..b").shape, (std::vector<int64_t>{2, 1}));
  // Without a header.
  auto plain = parseCsv("5,2\n3,4\n", "2", "x");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(elements<double>(*plain), (std::vector<double>{2, 4}));
  // A header alone has no rows.
  EXPECT_EQ(parseCsv("a,b\n", "", "x")->shape, (std::vector<int64_t>{0, 2}));
}

TEST(Csv, saysLineAndColumn) {
  EXPECT_EQ(problem(""), "expected a table but got an empty file");
  EXPECT_EQ(problem("a,b\n1,2\n1\n"),
            "line 3: expected 2 columns, as line 1 has, but got 1");
  EXPECT_EQ(problem("a,b\n1,\n"), "line 2, column 2 ('b'): expected a number "
                                  "but got ''");
  EXPECT_EQ(problem("5,2\n3,x\n"),
            "line 2, column 2: expected a number but got 'x'");
  EXPECT_EQ(problem("a,b\n1,2\n", "c"), "has no column 'c'; it has 'a', 'b'");
  EXPECT_EQ(problem("1,2\n", "3"),
            "has no column '3'; it has columns 1 to 2 without names");
  EXPECT_EQ(problem("a,b\n1,2\n", "b..a"), "expected 'b' before 'a'");
  EXPECT_EQ(problem("a,b\n1,2\n", "a,-b"),
            "expected either columns, or columns to leave out ('-NAME'), but "
            "got both in 'a,-b'");
  // 12, as text behind a quote was added to what it held.
  EXPECT_EQ(problem("a,b\n1,\"1\"2\n"),
            "line 2, column 2 ('b'): expected quotes around a whole cell");
  EXPECT_EQ(problem("7,2\n1\"2\",3\n"),
            "line 2, column 1: expected quotes around a whole cell");
  EXPECT_EQ(problem("7,2\n1,\"2\n"),
            "line 2: expected the quotes of column 2 to be closed");
  EXPECT_EQ(problem("a,b\n1,say \"hi\" there\n", "a"), "");
  EXPECT_EQ(problem("a,b\n \"1\" ,\"2\"\n"), "");
  // An open quote ends with its line.
  EXPECT_EQ(problem("a,\"b\n1,2\n"), "");
}

// A quote inside of a cell that is not asked for joined lines: rows were lost.
// Those in quotes were not counted.
TEST(Csv, linesInQuotesCount) {
  auto array = parseCsv("a,\"b\nc\"\n1,2\n3,x\n", "", "");
  ASSERT_FALSE(array);
  EXPECT_TRUE(array.status().message().starts_with("line 4, column 2"))
      << array.status().message();
}

TEST(Csv, quotesInsideOfACellAreText) {
  auto rows = [](std::string_view text) {
    auto array = parseCsv(text, "a..b", "x");
    EXPECT_TRUE(array.ok()) << array.status().message();
    return array.ok() ? elements<double>(*array) : std::vector<double>();
  };
  EXPECT_EQ(rows("t,a,b\n5\" disk,1,2\n3\" disk,3,4\n7\",5,6\n1\",7,8\n"),
            (std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(rows("a,b,t\n1,2,5\"\n3,4,3\"\n"),
            (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(rows("t,a,b\n\"5\"\"\ndisk, \"\"\",1,2\n\"a\" \"b,3,4\n"),
            (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(problem("t,a,b\n\"5 disk,1,2\n3\" disk,3,4\n", "a..b"),
            "line 2, column 1: expected quotes around a whole cell, as they "
            "hold the end of a line");
}

// The names that pandas gives to columns without one were a row of data.
TEST(Csv, asksWhetherAFirstLineThatCountsIsAHeader) {
  for (std::string_view text : {"0,1,2\n5,6,7\n", "1,2,3\n5,6,7\n"}) {
    std::string first(text.substr(0, 1));
    EXPECT_EQ(problem(text),
              "line 1 may be names of columns, or data (" + first + " to " +
                  text[4] +
                  "): expected '.csv:header=yes' or '.csv:header=no' "
                  "(',COLUMNS' after that)");
    EXPECT_NE(problem(text, first), "");
    auto named = parseCsv(text, "header=yes", "x");
    ASSERT_TRUE(named.ok());
    EXPECT_EQ(elements<double>(*named), (std::vector<double>{5, 6, 7}));
    auto column = parseCsv(text, "header=yes,1", "x");
    ASSERT_TRUE(column.ok());
    EXPECT_EQ(elements<double>(*column),
              std::vector<double>{first == "0" ? 6.0 : 5.0});
    auto data = parseCsv(text, "header=no", "x");
    ASSERT_TRUE(data.ok());
    EXPECT_EQ(data->shape, (std::vector<int64_t>{2, 3}));
    auto last = parseCsv(text, "header=no,3", "x");
    ASSERT_TRUE(last.ok());
    EXPECT_EQ(last->shape, std::vector<int64_t>{2});
  }
  // One line, one column, and what only begins so.
  EXPECT_EQ(problem("0,1,2\n"), "");
  EXPECT_EQ(problem("0\n1\n"), "");
  EXPECT_EQ(problem("0,1,3\n5,6,7\n"), "");
  EXPECT_EQ(problem("0,1.0\n5,6\n"), "");
}

TEST(Csv, writesWhatReadsBack) {
  Array scores = arrayOf<float>(DType::F32, {2, 2}, {0.1f, 2, 3, -4e-20f});
  Array label = arrayOf<int64_t>(DType::I64, {2}, {7, -1});
  CsvColumns columns[] = {{"scores", scores}, {"the, label", label}};
  std::string text = csvText(columns);
  EXPECT_EQ(text, "scores.0,scores.1,\"the, label\"\n0.1,2,7\n3,-4e-20,-1\n");
  auto back = parseCsv(text, "scores.0..scores.1", "x");
  ASSERT_TRUE(back.ok());
  auto floats = castArray(*back, DType::F32, *Cast::parse("round"));
  ASSERT_TRUE(floats.ok());
  EXPECT_EQ(floats->bytes, scores.bytes);
}

// Integers went through f64: 2^53 + 1 became another one.
TEST(Csv, integersKeepTheirValue) {
  auto table = parseCsv("id\n9007199254740993\n-1\n", "", "id");
  ASSERT_TRUE(table.ok()) << table.status().message();
  ASSERT_EQ(table->dtype, DType::I64);
  EXPECT_EQ(elements<int64_t>(*table),
            (std::vector<int64_t>{9007199254740993, -1}));
  EXPECT_EQ(parseCsv("a\n9007199254740993\n0.5\n", "", "a").status().message(),
            "line 2, column 1 ('a'): '9007199254740993' is an integer that f64 "
            "does not hold, among numbers that are no integers");
}

// -2^63 was said to be beyond what f64 tells apart, and 2^63 beyond 64 bits.
TEST(Csv, readsAllIntegersOf64Bits) {
  auto least = parseCsv("a\n-9223372036854775808\n1\n", "", "a");
  ASSERT_TRUE(least.ok()) << least.status().message();
  ASSERT_EQ(least->dtype, DType::I64);
  EXPECT_EQ(elements<int64_t>(*least), (std::vector<int64_t>{INT64_MIN, 1}));
  auto large = parseCsv("a\n18446744073709551615\n+1\n", "", "a");
  ASSERT_TRUE(large.ok()) << large.status().message();
  ASSERT_EQ(large->dtype, DType::U64);
  EXPECT_EQ(elements<uint64_t>(*large), (std::vector<uint64_t>{UINT64_MAX, 1}));
  EXPECT_EQ(problem("a\n18446744073709551616\n"),
            "line 2, column 1 ('a'): expected a number of 64 bits but got "
            "'18446744073709551616'");
  EXPECT_EQ(problem("a\n9223372036854775808\n-1\n"),
            "line 2, column 1 ('a'): '9223372036854775808' is an integer that "
            "i64 does not hold, among negative ones");
}

// Digits of integers were rounded off, which those of an .npy are not.
TEST(Csv, aColumnOfIntegersIsNotRounded) {
  auto wrong = [](std::string_view text, DType wanted) {
    auto array = parseCsv(text, "", "x", wanted);
    return array ? "" : array.status().message();
  };
  std::string end = " cannot hold exactly; '--cast=round' rounds it";
  EXPECT_EQ(wrong("a,b\n1,2.5\n16777217,2\n", DType::F32),
            "line 3, column 1 ('a'): '16777217' is an integer that f32" + end);
  EXPECT_EQ(wrong("a\n2049\n", DType::F16),
            "line 2, column 1 ('a'): '2049' is an integer that f16" + end);
  EXPECT_EQ(wrong("a\n9007199254740993\n", DType::F64),
            "line 2, column 1 ('a'): '9007199254740993' is an integer that "
            "f64" +
                end);
  // Decimal text, and what fits.
  EXPECT_EQ(wrong("a,b\n16777217,0.1\n0.5,16777216\n", DType::F32), "");
  EXPECT_EQ(wrong("a\n16777217e0\n", DType::F32), "");
  EXPECT_EQ(wrong("a\n16777217\n", DType::F64), "");
}

// It was -1.
TEST(Csv, takesOneSign) {
  EXPECT_EQ(problem("1,+-1,3\n4,5,6\n"),
            "line 1, column 2: expected a number but got '+-1'");
  EXPECT_FALSE(parseScalar("+-1", DType::F32).ok());
  EXPECT_FALSE(parseScalar("+-1", DType::I32).ok());
}

// 1e999 is a number, but the message said that one was expected.
TEST(Csv, namesTheRangeOfNumbers) {
  for (const char *cell : {"1e999", "+1e999", "-1e999", "1e-999"}) {
    auto table = parseCsv(std::string("1,") + cell + ",3\n4,5,6\n", "", "x");
    EXPECT_EQ(table.status().message(),
              std::string("line 1, column 2: expected a number of f64's range "
                          "but got '") +
                  cell + "'");
  }
}

// A first row with one bad cell was taken for the columns' names, and lost.
TEST(Csv, aRowWithABadNumberIsNoHeader) {
  for (const char *cell : {"NA", "", "0x1", "n/a", "null", "-"}) {
    auto table = parseCsv(std::string("1,") + cell + ",3\n4,5,6\n", "", "x");
    EXPECT_EQ(table.status().message(),
              std::string("line 1, column 2: expected a number but got '") +
                  cell + "'");
  }
  // What may be either is asked for, unless a name says that it is one.
  for (const char *cell : {"$5", "O.5", "true", "e5", "label"})
    EXPECT_EQ(problem(std::string("1,") + cell + ",3\n4,5,6\n"),
              "line 1 may be names of columns, or data ('" + std::string(cell) +
                  "' among numbers): expected '.csv:header=yes' or "
                  "'.csv:header=no' (',COLUMNS' after that)");
  // A name is asked for as a whole.
  EXPECT_EQ(problem("1,O,3\n4,5,6\n", "0,-TOTAL").find("line 1 may be names"),
            0u);
  EXPECT_EQ(problem("1,$5,3\n4,5,6\n", "header=no"),
            "line 1, column 2: expected a number but got '$5'");
  for (const char *columns : {"header=yes,0..1", "-label"}) {
    auto table = parseCsv("0,1,label\n4,5,6\n", columns, "x");
    ASSERT_TRUE(table.ok()) << table.status().message();
    EXPECT_EQ(elements<double>(*table), (std::vector<double>{4, 5}));
  }
  EXPECT_EQ(elements<double>(*parseCsv("0,1,x\n4,5,6\n", "", "x")),
            std::vector<double>{6});
  EXPECT_EQ(parseCsv("a,b,a\n1,2,3\n", "a", "x").status().message(),
            "has 2 columns called 'a'");
}

// A position was taken where a name was meant, and nothing said.
TEST(Csv, numbersAreNamesWhereNamesAreNumbers) {
  std::string text = "3,label,1\n10,20,30\n";
  auto first = parseCsv(text, "header=yes,3", "x");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(elements<double>(*first), std::vector<double>{10});
  EXPECT_EQ(parseCsv(text, "header=yes,1,2,3", "x").status().message(),
            "has no column '2'; it has '3', 'label', '1'");
}

// 9007199254740993.0 became the integer ...992.
TEST(Cast, integersBeyondF64AreRefused) {
  auto table = parseCsv("i\n9007199254740993.0\n", "", "i");
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(castArray(*table, DType::I64, {}).status().message(),
            "element [0] of f64 is 9007199254740992, beyond 2^53, from where "
            "f64 does not hold every integer: expected integers of 64 bits");
  Array fine = arrayOf<double>(DType::F64, {2}, {-0x1p53 + 1, 0x1p53 - 1});
  EXPECT_TRUE(castArray(fine, DType::I64, {}).ok());
}

TEST(Cast, roundsAndScales) {
  Array pixels = arrayOf<uint8_t>(DType::U8, {3}, {0, 51, 255});
  auto scaled = castArray(pixels, DType::F32, *Cast::parse("/255"));
  ASSERT_TRUE(scaled.ok());
  EXPECT_EQ(elements<float>(*scaled), (std::vector<float>{0, 0.2f, 1}));
  Array fine = arrayOf<float>(DType::F32, {2}, {1, 1.001f});
  auto refused = castArray(fine, DType::BF16, {});
  EXPECT_EQ(refused.status().message(),
            "element [1] of f32 is 1.001, which bf16 cannot hold exactly; "
            "'--cast=round' rounds it");
  auto rounded = castArray(fine, DType::BF16, *Cast::parse("round"));
  ASSERT_TRUE(rounded.ok());
  EXPECT_EQ(elements<uint16_t>(*rounded),
            (std::vector<uint16_t>{0x3f80, 0x3f80}));
  Array half = arrayOf<float>(DType::F32, {1}, {0.5f});
  EXPECT_EQ(
      castArray(half, DType::I64, *Cast::parse("round")).status().message(),
      "element [0] of f32 is 0.5, which i64 cannot hold exactly");
  EXPECT_EQ(castArray(half, DType::I64, *Cast::parse("*2")).status().message(),
            "--cast=/N and *N scale floats, but this is i64; --cast=NAME=/N is "
            "for one array alone");
  for (const char *rule : {"", "*", "/0", "*nan", "2", "*1x", "rounds"})
    EXPECT_FALSE(Cast::parse(rule).ok()) << rule;
}

TEST(Cast, findsLabelsOutside) {
  Array labels = arrayOf<int32_t>(DType::I32, {4}, {0, 9, -100, 10});
  EXPECT_EQ(firstOutside(labels, 0, 10, -100), 3);
  EXPECT_EQ(firstOutside(labels, 0, 11, -100), std::nullopt);
  EXPECT_EQ(firstOutside(labels, 0, 11, std::nullopt), 2);
  Array bytes = arrayOf<uint8_t>(DType::U8, {2}, {3, 255});
  EXPECT_EQ(firstOutside(bytes, 0, 1000, std::nullopt), std::nullopt);
  EXPECT_EQ(firstOutside(bytes, 0, 255, std::nullopt), 1);
  Array large = arrayOf<uint64_t>(DType::U64, {1}, {UINT64_MAX});
  EXPECT_EQ(firstOutside(large, 0, 10, -1), 0);
  Array floats = arrayOf<double>(DType::F64, {2}, {3, 2.5});
  EXPECT_EQ(firstOutside(floats, 0, 10, std::nullopt), 1);
}

} // namespace
} // namespace tandem::io::test
