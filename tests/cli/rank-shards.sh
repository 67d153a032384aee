#!/bin/bash
# rank-shards.sh BIN EXAMPLES MPI DIE - X05, X18: a checkpoint in a file for
# each rank. It has the bytes that one file has, is loaded by any number of
# ranks, and is the old one or the new one whenever a rank dies while it is
# saved. MPI runs a program in processes; DIE is preloaded (DieAt.c).
# shellcheck source=tests/cli/over-ranks.sh
source "$(dirname "$0")/over-ranks.sh"
die=$4
rows=("${digitRows[@]}" --seed 0)
i=.safetensors.index.json

compile() { # ARTIFACT [options]
  local to=$1
  shift
  expect 0 '' "$bin/tandem" compile "$examples/digits/mlp.mlir" -o "$to.tdm" \
    --optimizer=adamw:lr=2e-3 --effort=0 "$@"
}

# merged INDEX FILE: writes what the index has to one file.
merged() {
  expect 0 '' "$bin/tandem" checkpoint merge "$1" -o "$2" --force
}

# same A B: the files are equal.
same() { cmp "$1" "$2" || fail "$1 and $2 differ"; }

# Pieces along both dimensions, and what is alike on several ranks.
cat >tp.json <<'JSON'
{"fc0\\.w": ["tensor", null], "fc0\\.b": ["tensor"], "fc1\\.w": [null, "tensor"]}
JSON
compile one
compile fsdp-2 --mesh=data=2 --parallel=fsdp
compile fsdp-4 --mesh=data=4 --parallel=fsdp
compile zero1-4 --mesh=data=4 --parallel=zero1
compile both-4 --mesh=data=2,tensor=2 --parallel=fsdp+tp --shard=tp.json
over 1 train one.tdm "${rows[@]}" --steps 20 --log one.jsonl \
  --save one.safetensors
tail -n 10 one.jsonl >tail.jsonl

for plan in zero1 both fsdp; do
  rm -f w-*
  over 4 train $plan-4.tdm "${rows[@]}" --steps 10 --save w$i --force
  over 4 train $plan-4.tdm "${rows[@]}" --steps 10 --save w.safetensors --force
  [ "$(find . -name 'w-*-of-00004.safetensors' | wc -l)" = 4 ] ||
    fail "$plan: expected four files: $(ls)"
  # None has half of it.
  most=$(find . -name 'w-*-of-00004.safetensors' -size +130k)
  [ -z "$most" ] || fail "$plan: $most is too large: $(ls -l)"
  merged w$i m.safetensors
  same m.safetensors w.safetensors
  # The same values are loaded from both, on whatever ranks.
  for rest in 'one 1' 'fsdp-2 2' "$plan-4 4"; do
    read -r artifact ranks <<<"$rest"
    rm -f rest.jsonl
    over "$ranks" train "$artifact.tdm" "${rows[@]}" --steps 10 --force \
      --resume w$i --save a$i --log rest.jsonl
    near rest.jsonl tail.jsonl
    over "$ranks" train "$artifact.tdm" "${rows[@]}" --steps 10 --force \
      --resume w.safetensors --save b.safetensors
    merged a$i a.safetensors
    same a.safetensors b.safetensors
  done
  # On the same mesh as if it had not been interrupted, to the bit.
  over 4 train $plan-4.tdm "${rows[@]}" --steps 20 --save c$i --force
  merged c$i c.safetensors
  same a.safetensors c.safetensors
done

# Cut otherwise, by hand.
expect 0 '' "$bin/tandem" checkpoint reshard w$i --shards=3 -o r$i
merged r$i r.safetensors
same r.safetensors w.safetensors
expect 0 '' "$bin/tandem" checkpoint reshard w.safetensors --force \
  --max-shard-size=1 -o r$i
[ "$(find . -name 'r-*' | wc -l)" = 1 ] || fail "files of before: $(ls)"
expect 0 'fc1.w  .*4 pieces' "$bin/tandem" checkpoint show w$i
expect 0 '"begin"' "$bin/tandem" checkpoint show w$i --json
expect 2 'replace' "$bin/tandem" checkpoint reshard w$i -o w$i --shards=2
expect 2 'expected at most' "$bin/tandem" checkpoint reshard w$i -o q$i \
  --shards=1000
expect 2 'no effect' "$bin/tandem" checkpoint show w$i --force
expect 2 'expected -o' "$bin/tandem" checkpoint merge w$i -o m$i

# A rank dies at a moment: what is there is the old one, or the new one.
mkdir old
cp w-* w$i old
merged w$i old.safetensors
over 4 train fsdp-4.tdm "${rows[@]}" --steps 1 --resume w$i --save n$i
merged n$i new.safetensors
own=-of-00004.safetensors
# interrupted RANK MOMENT: a save does not end; $said is what was said of it. Now
# and then mpirun's own library of processes fails first, when one dies, and ends
# all before they say a word; that says nothing of us, and is tried again.
interrupted() {
  local code
  for _ in 1 2 3; do
    rm -f w-* w$i
    cp old/* .
    said=$(env LD_PRELOAD="$die" DIE_RANK="$1" DIE_AT="$2" "$mpi" 4 120 \
      "$bin/tandem-run" train fsdp-4.tdm "${rows[@]}" --steps 1 --resume w$i \
      --save w$i --timeout=20 2>&1 </dev/null)
    code=$?
    ended
    grep -q 'PMIX ERROR' <<<"$said" || break
  done
  case $code in
    0 | 124) fail "$2: it went on, or did not end: $said" ;;
  esac
  merged w$i left.safetensors
}
# files: how many there are of the index.
files() { find . -maxdepth 1 -name 'w-*' | wc -l; }
dies() { # OUTCOME RANK MOMENT
  interrupted "$2" "$3"
  same left.safetensors "$1.safetensors"
  # The next one removes what was left.
  over 4 train fsdp-4.tdm "${rows[@]}" --steps 1 --resume w$i --save w$i
  [ "$(files)" = 4 ] || fail "$3: left over: $(ls)"
}
dies old 2 write:$own:before
dies old 2 write:$own:half
dies old 3 fsync:$own:before
dies old 1 rename:$own:before
dies old 2 rename:$own:after
dies old 0 rename:$own:after
dies old 0 write:index.json:half
dies old 0 rename:index.json:before
dies new 0 rename:index.json:after
dies new 0 unlink:$own:before
dies new 0 unlink:$own:after

# A disk that refuses one rank's file: all ranks fail, and none leaves a file.
interrupted 2 fsync:$own:fail
same left.safetensors old.safetensors
grep -q 'rank 2: cannot write' <<<"$said" || fail "no reason: $said"
[ "$(files)" = 4 ] || fail "left over: $(ls)"

# A file that is cut short, missing, or another's is named.
damaged() { # TEXT COMMAND...
  rm -f w-* w$i
  cp old/* .
  first=$(echo w-*-00001$own)
  "${@:2}"
  expect 1 "$1" "$bin/tandem-run" predict one.tdm --params w$i --force \
    --data x=@"$data/test_images.npy" --output logits=@p.npy
}
cut_short() { truncate -s -1 "$first"; }
missing() { rm "$first"; }
changed() { printf x | dd of="$first" bs=1 seek=70000 conv=notrunc status=none; }
damaged "-00001$own" cut_short
damaged "No such file" missing
damaged "'w-.*-00001$own' are not those that the index was" changed
finish
