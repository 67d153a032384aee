#!/bin/bash
# golden-checkpoints.sh BIN EXAMPLES GOLDEN - checkpoints of released versions: a training
# goes on from them with the numbers that the version that wrote them had.
source "$(dirname "$0")/expect.sh"
bin=$1 golden=$3
source "$golden/recipe.sh"
cd "$work" || exit 1
recipe_data .
expect 0 '' "$bin/tandem" compile "$golden/model.mlir" -o m.tdm "${recipe_compile[@]}"

for checkpoint in "$golden"/checkpoint-*.safetensors; do
  expect 0 'after 1 epochs and 1 steps \(6 in all\)' \
    "$bin/tandem" checkpoint show "$checkpoint"
  recipe_rest "$bin" "$checkpoint" >numbers ||
    fail "$checkpoint: $(cat rest.said)"
  grep -E 'differ|other|compared' rest.said && fail "$checkpoint: not as it was"
  # Other processors add up in another order.
  paste numbers "${checkpoint%.safetensors}.numbers" | awk '
    { far = $2 - $4 }
    $1 != $3 || !(far < 1e-4 && far > -1e-4) { print; bad = 1 }
    END { exit bad || NR < 90 }' || fail "$checkpoint: other numbers"
done
finish
