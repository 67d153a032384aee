#!/usr/bin/env bash
# tests/additions/op.sh BUILD MLIR-TBLGEN TANDEM-TBLGEN INCLUDE-FOLDER...: follows
# docs/ADDING_AN_OP.md for a pointwise op `softplus2`: at most four files are
# touched, and then formulas and traced programs can call it, it is differentiated,
# compiled and documented. It took ten files, with lists of ops kept by hand.
set -euo pipefail
# shellcheck source=tests/additions/scratch.sh
source "$(dirname "$0")/scratch.sh"
copy_tree "$1"
tblgen=$2 tandem_tblgen=$3
shift 3
includes=("$@")

# --- what the guide says -----------------------------------------------------
add_after ir/ops/Elementwise.td 'def SigmoidOp :' <<'TD'
def Softplus2Op : UnaryOp<"softplus2", "p.dy() * sigmoid(p.x())",
    "scalar::add(b, loc, scalar::relu(b, loc, x[0]), scalar::log1p(b, loc, "
    "scalar::exp(b, loc, scalar::neg(b, loc, scalar::abs(b, loc, x[0])))))",
    "std::fmax(x[0], 0.0) + std::log1p(std::exp(-std::abs(x[0])))">;
TD
add_after tests/gradients/Rows.cpp 'unary(rows, "sigmoid", -4, 4);' <<'CPP'
  unary(rows, "softplus2", -4, 4);
CPP
# PyTorch calls it softplus; what tests/oracle/make-fixtures writes of a case.
add_after tests/oracle/families/pointwise.py '("sigmoid", torch.sigmoid,' <<'PY'
    ("softplus2", F.softplus, (-6, 6), [0.0, 12.0]),
PY
add_after tests/oracle/fixtures/pointwise.json '{"family": "pointwise",' <<'JSON'
{"name":"pointwise.softplus2.0","op":"softplus2","order":2,"inputs":[{"name":"x0","type":"f","shape":[4],"data":[-1.5,0.0,0.5,4.0],"gradient":[0.0912127619032,-0.375,0.622459331202,0.245503447509],"direction":[0.25,0.5,-0.5,1.0],"second":[0.0186433065088,-0.09375,-0.117501856101,0.00441567655332]}],"nodes":[{"op":"softplus2","inputs":["x0"],"outputs":["y0"]}],"outputs":[{"name":"y0","type":"f","shape":[4],"data":[0.201413277983,0.69314718056,0.97407698418,4.01814992792],"cotangent":[0.5,-0.75,1.0,0.25],"along":[0.0456063809516,0.25,-0.311229665601,0.982013790038]}]},
JSON

# --- what the build does -----------------------------------------------------
mkdir -p "$fresh/ir/ops"
cd "$scratch"
td=ir/ops/Elementwise.td
"$tblgen" -gen-op-decls "${includes[@]/#/-I}" "$td" -o "$fresh/ir/ops/Elementwise.h.inc"
"$tblgen" -gen-op-defs "${includes[@]/#/-I}" "$td" -o "$fresh/ir/ops/Elementwise.cpp.inc"
"$tandem_tblgen" "$td" "$fresh/ir/ops/PointwiseFunctions.h.inc" . "${includes[@]}"

# A program that traces a model with the op, and one that has it in a formula.
cat >"$folder/trace.cpp" <<'CPP'
#include "compiler/trace/Functions.h"
#include "ir/Expr.h"

using namespace tandem;

Expr (*const inFormulas)(const Expr &) = softplus2;

int main(int, char **argv) {
  Trace trace("softplus2");
  Tensor w = trace.parameter("w", {4, 5}, Init::uniform(-3, 3));
  trace.output("loss", sum(softplus2(w)));
  return inFormulas && trace.save(argv[1]) ? 0 : 1;
}
CPP
(
  compile compiler/trace/Functions.cpp
  compile tests/gradients/Rows.cpp
  compile trace.cpp tests/compiler/TraceTest.cpp
  compile tests/oracle/Fixtures.cpp
  compile --afresh ir/Expr.cpp
) &
compile --afresh ir/ops/Elementwise.cpp
wait $! || exit 1
op=(Elementwise.o Expr.o)

# --- it works ----------------------------------------------------------------
link gradients-test "$folder/gradients" "${op[@]}" Rows.o
"$folder/gradients" --gtest_filter='*softplus2*:GradientTable.*' >"$folder/said" ||
  fail "$(cat "$folder/said")"
grep -q 'OK.*softplus2_3x4' "$folder/said" || fail "no gradient of softplus2 was checked"
link ir-test "$folder/ir" "${op[@]}" Rows.o
"$folder/ir" --gtest_filter='OpTable.*' >"$folder/said" || fail "$(cat "$folder/said")"
link oracle-test "$folder/oracle" "${op[@]}" Fixtures.o
"$folder/oracle" --gtest_filter='OracleFixtures.*:Oracle.*OnTheReference/pointwise' \
  >"$folder/said" || fail "$(cat "$folder/said")"

link TraceTest "$folder/trace" --only trace.o Functions.o "${op[@]}"
"$folder/trace" "$folder/softplus2.mlir"
grep -q 'tandem.softplus2' "$folder/softplus2.mlir"
link tandem "$folder/tandem" "${op[@]}"
"$folder/tandem" check "$folder/softplus2.mlir" ||
  fail "the compiled softplus2 is not what its record says"

# --- its pages ---------------------------------------------------------------
link tandem-table "$folder/table" "${op[@]}" Rows.o
tests/docs/generated-page.sh write docs/support.md \
  "$folder/table" tests/onnx/expected.txt
tests/docs/generated-page.sh write docs/ops.md \
  tests/docs/tblgen-page.sh "The ops of the dialect" ir/ops/AllOps.td \
  "$tblgen" "${includes[@]/#/-I}" -gen-dialect-doc -dialect=tandem
for page in docs/ops.md docs/support.md; do
  grep -q 'tandem.softplus2' $page || fail "$page does not have softplus2"
done

expect_touches 4 docs/ADDING_AN_OP.md
