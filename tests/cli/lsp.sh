#!/bin/bash
# lsp.sh BIN EXAMPLES - the language server knows the dialect: a model with an
# unknown op gets a diagnostic at its place, a right one gets none. It says what
# an op is compiled to, and leads from an op of a backward to its forward.
source "$(dirname "$0")/expect.sh"
here=$(cd "$(dirname "$0")" && pwd)
server=$1/tandem-lsp-server
cd "$work" || exit 1

message() { printf 'Content-Length: %s\r\n\r\n%s' "${#1}" "$1"; }

quoted() {
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  printf %s "\"${text//$'\n'/\\n}\""
}

# session TEXT [OTHER]: opens a document with that text, makes it another, and
# ends.
session() {
  message '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":0,"capabilities":{},"trace":"off"}}'
  message '{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///m.mlir","languageId":"mlir","version":1,"text":'"$(quoted "$1")"'}}}'
  [ $# = 1 ] ||
    message '{"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":{"uri":"file:///m.mlir","version":2},"contentChanges":[{"text":'"$(quoted "$2")"'}]}}'
  message '{"jsonrpc":"2.0","id":2,"method":"shutdown"}'
  message '{"jsonrpc":"2.0","method":"exit"}'
}

right='func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = tandem.relu %x : tensor<4xf32>
  return %y : tensor<4xf32>
}'
session "$right" | timeout 60 "$server" >right.out 2>/dev/null
grep -q '"diagnostics":\[\]' right.out || fail "a right model: $(cat right.out)"
session "${right/relu/rely}" | timeout 60 "$server" >wrong.out 2>/dev/null
grep -q "tandem.rely" wrong.out || fail "an unknown op: $(cat wrong.out)"
grep -q '"line":1' wrong.out || fail "the place: $(cat wrong.out)"

# Parts that are malformed, which MLIR's server does not get: it wrote to freed
# memory. The others are as they were, and what is mended has no errors.
broken='func.func @f(%x: tensor<4xf32>) {
  %u = tandem.sin %9 : tensor<4xf32>
  %4 = "tandem.if"(%c, %x) ({
  ^bb0(%a: tensor<4xf32>):
    %9 = tandem.sin %a : tensor<4xf32>
    tandem.yield %9 : tensor<4xf32>
  }, {}) { broken'
session "${right/relu/rely}
// -----
$broken
// -----
$right" "$right" | timeout 60 "$server" >parts.out 2>/dev/null || fail "it ended with $?"
# reported LINE TEXT: a diagnostic of the first version.
reported() {
  grep -aqE "\"message\":\"[^\"]*$2[^\"]*\",\"range\":\{\"end\":\{[^}]*\},\"start\":\{\"character\":[0-9]+,\"line\":$1\}" parts.out ||
    fail "expected '$2' in line $1 of: $(cat parts.out)"
}
reported 1 'tandem.rely'
reported 11 "expected '\}' in attribute dictionary"
[ "$(grep -ao '"message"' parts.out | wc -l)" = 2 ] || fail "others: $(cat parts.out)"
grep -aq '"diagnostics":\[\],[^{]*"version":2' parts.out || fail "mended: $(cat parts.out)"

# What the server adds to MLIR's own.
command -v python3 >/dev/null || { echo 'skipped: what an op is compiled to, without python3'; finish; }
shown() { grep -qE -- "$1" session.out || fail "expected '$1' in: $(cat session.out)"; }
cp "$2/digits/mlp.mlir" model.mlir
"$1/tandem" compile model.mlir --stop-after=joint >dump.mlir || fail 'no dump'
timeout 120 python3 "$here/lsp_session.py" "$server" model.mlir dump.mlir >session.out || fail 'the session'
shown '^- \*\*forward\*\*: `relu` in `matmul_add_relu_0`, launch 1, predicted .* us, bound by [a-z]+$'
shown '^- \*\*backward\*\*: `compare` \(of relu\), `select` \(of relu\) in '
shown '^- \*\*saved\*\* for the backward: `relu.0` f32\[32, 128\], '
shown '^Save the file to see'
shown '^- its gradient is computed by .*`select` \(line [0-9]+\)$'
shown '^- part of the gradient of `tandem.relu` in line [0-9]+$'
shown '^== definition: True .*tandem.relu '
shown '^== place: model.mlir 33$'
shown '^== end: 0$'

# What does not compile: why, and the next question is answered. Options that the editor
# sends are the compiler's.
expect 0 'It does not compile: .*--optimizer' env OPTION=--optimizer=none \
  timeout 120 python3 "$here/lsp_session.py" "$server" model.mlir dump.mlir
grep -q '^== end: 0$' <<<"$out" || fail "$out"

# Nothing is left of it when the editor is gone, neither a process nor a file.
mkdir left
TMPDIR=$work/left END=early timeout 60 \
  python3 "$here/lsp_session.py" "$server" model.mlir dump.mlir || fail 'an editor that is gone'
[ -z "$(ls left)" ] || fail "left: $(ls left)"
finish
