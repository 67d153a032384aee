#!/bin/bash
# lsp.sh BIN EXAMPLES - the language server knows the dialect: a model with an
# unknown op gets a diagnostic at its place, a right one gets none. It says what
# an op is compiled to, and leads from an op of a backward to its forward.
source "$(dirname "$0")/expect.sh"
here=$(cd "$(dirname "$0")" && pwd)
server=$1/tandem-lsp-server
cd "$work" || exit 1

message() { printf 'Content-Length: %s\r\n\r\n%s' "${#1}" "$1"; }

# session TEXT: opens a document with that text and ends.
session() {
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  text=${text//$'\n'/\\n}
  message '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":0,"capabilities":{},"trace":"off"}}'
  message '{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///m.mlir","languageId":"mlir","version":1,"text":"'"$text"'"}}}'
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
