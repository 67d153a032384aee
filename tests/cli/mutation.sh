#!/bin/bash
# mutation.sh BIN - the worked examples of programs that write to their states.
source "$(dirname "$0")/expect.sh"
bin=$1
cd "$work" || exit 1
example() {
  local name=$1
  shift
  expect 0 '' "$bin/mutation-models" "$name" "$name.mlir"
  expect 0 '' "$bin/tandem" compile "$name.mlir" -o "$name.tdm" "$@"
}
example running-statistics --optimizer=sgd:lr=0.05
expect 0 'the statistics are those of the data' "$bin/running-statistics" running-statistics.tdm
printf '%s\n' "$out"
# What evaluate shows is what the last step left.
[ "$(grep '^step 100' <<<"$out" | cut -c15-)" = "$(grep '^evaluated' <<<"$out" | cut -c15-)" ] ||
  fail 'evaluate wrote the statistics'
example amax-history
expect 0 'the history is what was seen' "$bin/amax-history" amax-history.tdm
printf '%s\n' "$out"
example main-gradients
expect 0 'the main gradient is complete' "$bin/main-gradients" main-gradients.tdm
printf '%s\n' "$out"
# Gradients that flow through a write are those of central differences.
example_of() {
  awk -v name="^module @$1 " '$0 ~ name { inside = 1 } inside { print } /^}$/ { inside = 0 }' "$2/MUTATION.md"
}
example_of visible "$3" >visible.mlir
expect 0 '1 gradients checked' "$bin/tandem" check visible.mlir
# And so are those of a gradient that the forward takes.
example_of penalty "$3" |
  sed 's/{requires_grad}/{requires_grad, init = {kind = "uniform", low = -1.0, high = 1.0}}/' >penalty.mlir
expect 0 '1 gradients checked' "$bin/tandem" check penalty.mlir
expect 0 'data, differentiated' "$bin/tandem" inspect visible.mlir
# A state has no gradient, however it is written.
expect 0 '^forward .*next value of a state' "$bin/tandem" inspect running-statistics.tdm
expect 2 'usage' "$bin/mutation-models" nothing
expect 1 'nowhere' "$bin/main-gradients" nowhere.tdm
finish
