//===- ReductionRows.cpp - calls along dimensions -------------------------===//
#include "tests/functions/Rows.h"

using namespace tandem::test;

static const RowOperand x{tensorOf("2x3x4")};
static const RowOperand positive{tensorOf("2x3x4"), 0.3, 2};
static const RowOperand bits{tensorOf("2x3x4", "i64"), 0, 5};

void tandem::test::addReductionFunctionRows(std::vector<FunctionRow> &rows) {
  const char *some = "{dim = array<i64: 0, -1>, keepdim = true}";
  for (const char *name :
       {"sum", "mean", "prod", "amax", "amin", "var", "std", "var_mean",
        "std_mean", "norm", "logsumexp", "sum_square"}) {
    rows.push_back({name, name, {x}, ""});
    rows.push_back({name, std::string(name) + "_some", {x}, some});
  }
  rows.push_back({"sum", "sum_of_integers", {bits}, "{dim = 1 : i64}", 0});
  rows.push_back({"log_sum", "log_sum", {positive}, some});
  rows.push_back({"sum_abs", "sum_abs", {positive}, some});
  for (const char *name : {"any", "all", "count_nonzero"})
    rows.push_back({name, name, {bits}, "{dim = 1 : i64}", 0});
  rows.push_back({"var", "var_biased", {x}, "{correction = 0 : i64}"});
  for (const char *p : {"1.0", "3.0", "1.5", "-1.0", "0x7FF0000000000000",
                        "0xFFF0000000000000"}) {
    std::string name = "norm_" + std::string(p);
    for (char &c : name)
      c = c == '.' || c == '-' ? '_' : c;
    rows.push_back({"norm",
                    name,
                    {positive},
                    "{dim = 1 : i64, p = " + std::string(p) + " : f64}"});
  }
  rows.push_back({"norm", "norm_0", {x}, "{p = 0 : i64}", 0});
  for (const char *name : {"max", "min"}) {
    rows.push_back({name, name, {x}, "{dim = 1 : i64, keepdim = true}"});
    rows.push_back({name, std::string(name) + "_all", {x}, ""});
  }
  for (const char *name : {"arg_max", "argmin"}) {
    rows.push_back({name, name, {bits}, "{keepdim = true}", 0});
    rows.push_back({name,
                    std::string(name) + "_last",
                    {bits},
                    "{dim = -1 : i64, select_last_index = true}",
                    0});
  }
  rows.push_back({"cumprod", "cumprod", {x}, "{dim = 1 : i64}"});
  rows.push_back({"logcumsumexp", "logcumsumexp", {x}, "{dim = -1 : i64}"});
}

void tandem::test::addOrderFunctionRows(std::vector<FunctionRow> &rows) {
  RowOperand a{tensorOf("2x3x4")}, b{tensorOf("5x4")};
  rows.push_back({"argsort", "argsort", {x}, "{descending = true}", 0});
  rows.push_back({"topk", "topk", {x}, "{k = 2 : i64}"});
  rows.push_back({"topk",
                  "topk_smallest",
                  {x},
                  "{dim = 1 : i64, k = 2 : i64, largest = false}"});
  rows.push_back({"kthvalue", "kthvalue", {x}, "{k = 2 : i64}"});
  rows.push_back({"cdist", "cdist", {a, b}, "", 2, 1e-5});
  rows.push_back({"cdist", "cdist_1", {a, b}, "{p = 1.0}", 1});
  rows.push_back({"pdist", "pdist", {b}, "", 2, 1e-5});
  rows.push_back({"det", "det_1", {{tensorOf("1x1")}}, ""});
  rows.push_back({"det", "det_2", {{tensorOf("3x2x2")}}, ""});
  rows.push_back({"det", "det_4", {{tensorOf("2x4x4")}}, "", 2, 1e-4});
}

void tandem::test::addProductFunctionRows(std::vector<FunctionRow> &rows) {
  RowOperand a{tensorOf("2x3")}, b{tensorOf("3x4")}, u{tensorOf("3")},
      v{tensorOf("4")}, c{tensorOf("4")};
  RowOperand A{tensorOf("2x1x2x3")}, B{tensorOf("5x3x4")};
  RowOperand i{tensorOf("2x2x3", "i32"), 0, 9}, j{tensorOf("3x4", "i32"), 0, 9};
  rows.push_back({"linalg_matmul", "matmul", {a, b}, ""});
  rows.push_back({"linalg_matmul", "matmul_batches", {A, B}, ""});
  rows.push_back({"linalg_matmul", "matmul_one_right", {A, b}, ""});
  rows.push_back({"linalg_matmul", "matmul_vectors", {u, u}, ""});
  rows.push_back({"linalg_matmul", "matmul_row", {u, B}, ""});
  rows.push_back({"linalg_matmul", "matmul_column", {A, u}, ""});
  rows.push_back({"linalg_matmul", "matmul_integers", {i, j}, "", 0});
  rows.push_back({"mm", "mm", {a, b}, ""});
  rows.push_back(
      {"bmm", "bmm", {{tensorOf("2x2x3")}, {tensorOf("2x3x2")}}, ""});
  rows.push_back({"mv", "mv", {a, u}, ""});
  rows.push_back({"dot", "dot", {u, u}, ""});
  rows.push_back({"inner", "inner", {a, {tensorOf("4x3")}}, ""});
  rows.push_back({"outer", "outer", {u, v}, ""});
  rows.push_back({"addmm", "addmm", {c, a, b}, "{alpha = 2.0, beta = 0.5}"});
  rows.push_back({"addmv", "addmv", {{tensorOf("2")}, a, u}, ""});
  rows.push_back({"baddbmm",
                  "baddbmm",
                  {{tensorOf("2x2")}, {tensorOf("2x2x3")}, {tensorOf("2x3x2")}},
                  "{beta = 0.5}"});
  rows.push_back({"addr", "addr", {{tensorOf("3x4")}, u, v}, ""});
  rows.push_back({"gemm",
                  "gemm",
                  {{tensorOf("3x2")}, {tensorOf("4x3")}, c},
                  "{alpha = 0.5, beta = 2.0, transpose_a = true, transpose_b = "
                  "true}"});
  rows.push_back({"tensordot", "tensordot", {A, {tensorOf("2x3x4")}}, ""});
  rows.push_back({"tensordot",
                  "tensordot_pairs",
                  {A, {tensorOf("3x4x2")}},
                  "{dims_a = array<i64: 3, 0>, dims_b = array<i64: 0, -1>}"});
  rows.push_back({"bilinear",
                  "bilinear",
                  {a, {tensorOf("2x4")}, {tensorOf("5x3x4")}, {tensorOf("5")}},
                  ""});
  auto einsum = [&](std::string name, std::vector<RowOperand> operands,
                    std::string equation, int order = 2) {
    rows.push_back({"einsum", "einsum_" + name, std::move(operands),
                    "{equation = \"" + equation + "\"}", order});
  };
  einsum("matmul", {a, b}, "ij, jk -> ik");
  einsum("implicit", {b, a}, "jk,ij");
  einsum("transpose", {a}, "ba");
  einsum("batch", {{tensorOf("2x2x3")}, {tensorOf("2x3x4")}}, "bij,bjk->bik");
  einsum("ellipsis", {A, B}, "...ij,...jk->...ki");
  einsum("diagonal", {{tensorOf("2x3x3")}}, "bii->bi");
  einsum("trace", {{tensorOf("3x3")}}, "ii");
  einsum("sums", {a, {tensorOf("2x4")}}, "ij,ik->k");
  einsum("outer", {u, v}, "i,j->ji");
  einsum("three", {a, b, {tensorOf("2x4")}}, "ij,jk,ik->i");
  einsum("stretched", {{tensorOf("1x3")}, {tensorOf("2x3")}}, "ij,ij->i");
  einsum("hadamard", {a, a}, "ij,ij->ij");
  einsum("integers", {j, j}, "ij,ik->jk", 0);
}
