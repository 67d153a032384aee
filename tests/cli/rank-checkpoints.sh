#!/bin/bash
# rank-checkpoints.sh BIN EXAMPLES MPI - X18, X19: the digits over 2 and 4
# processes, under each plan that cuts over an axis of data. Two runs give the
# same bits; two ranks, four and one go on from a checkpoint of four; each row is
# predicted once, in its order. MPI runs a program in processes.
# shellcheck source=tests/cli/over-ranks.sh
source "$(dirname "$0")/over-ranks.sh"
expect 0 '' "$bin/tandem" compile "$2/digits/mlp.mlir" -o one.tdm \
  --optimizer=adamw:lr=2e-3 --effort=0
rows=("${digitRows[@]}" --seed 0)

over 1 train one.tdm "${rows[@]}" --steps 20 --log one.jsonl \
  --save one.safetensors
over 1 predict one.tdm --params one.safetensors --data \
  x=@"$data/test_images.npy" --output logits=@one.csv
# Copies of a training that know nothing of each other are told so, once.
for rank in 0 1; do
  expect 0 '' env OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=$rank \
    "$bin/tandem-run" predict one.tdm --params one.safetensors --force --data \
    x=@"$data/test_images.npy" --output logits=@copy.csv
  told=$(grep -c 'a launcher started 2' <<<"$out")
  [ "$told" = $((1 - rank)) ] || fail "rank $rank was told $told times: $out"
done

# Found in PATH, the program knows its libraries by where it is, not by what lies
# beside the current folder.
expect 0 '' "$bin/tandem" compile "$2/digits/mlp.mlir" -o two.tdm \
  --optimizer=adamw:lr=2e-3 --effort=0 --mesh=data=2 --parallel=ddp
mkdir -p elsewhere/bin elsewhere/lib
echo 'no library' >elsewhere/lib/libtandem-mpi.so
expect 2 'expected 2 processes but got 1' env -C elsewhere/bin \
  PATH="$bin:$PATH" tandem-run predict ../../two.tdm --params \
  ../../one.safetensors --data x=@"$data/test_images.npy" --output logits=@l.csv

for plan in ddp zero1 zero2 fsdp; do
  for ranks in 2 4; do
    name=$plan-$ranks
    expect 0 '' "$bin/tandem" compile "$2/digits/mlp.mlir" -o "$name.tdm" \
      --optimizer=adamw:lr=2e-3 --effort=0 \
      --mesh=data="$ranks" --parallel="$plan"
  done
  for run in first second; do
    over 4 train "$plan-4.tdm" "${rows[@]}" --steps 20 --log $run.jsonl --force \
      --save $run.safetensors
  done
  near first.jsonl one.jsonl
  cmp first.safetensors second.safetensors || fail "$plan: two runs differ"

  # Half of it on four, and the rest on two and on one.
  rm -f half.safetensors
  over 4 train "$plan-4.tdm" "${rows[@]}" --steps 10 --save half.safetensors
  for rest in "$plan-2 2" "$plan-4 4" 'one 1'; do
    read -r artifact ranks <<<"$rest"
    rm -f rest.safetensors rest.jsonl
    over "$ranks" train "$artifact.tdm" "${rows[@]}" --steps 10 \
      --resume half.safetensors --save rest.safetensors --log rest.jsonl
    tail -n 10 one.jsonl >tail.jsonl
    near rest.jsonl tail.jsonl
  done
  over 4 predict "$plan-4.tdm" --params one.safetensors --data \
    x=@"$data/test_images.npy" --output logits=@all.csv --force
  [ "$(wc -l <all.csv)" -gt 100 ] || fail 'no predictions'
  paste -d, one.csv all.csv | awk -F, 'NR > 1 {
    for (i = 1; i <= NF / 2; ++i) {
      d = $i - $(i + NF / 2)
      if (d > 1e-4 || d < -1e-4 || NF != 20) bad = 1
    } } END { exit bad }' || fail "$plan: predictions differ"
done
finish
