#!/bin/bash
# lsp.sh BIN EXAMPLES - the language server knows the dialect: a model with an
# unknown op gets a diagnostic at its place, a right one gets none.
source "$(dirname "$0")/expect.sh"
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
finish
