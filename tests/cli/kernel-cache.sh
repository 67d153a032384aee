#!/bin/bash
# kernel-cache.sh BIN EXAMPLES - what compilations keep of kernels: the same
# bytes with it and without it, by whomever it is written and damaged.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
model=$2/digits/mlp.mlir
cd "$work" || exit 1
unset TANDEM_KERNEL_CACHE
export XDG_CACHE_HOME=$work/caches HOME=$work/home
kernels=$work/caches/tandem/kernels

effort=(--effort=0) # code that is made fast
compile() { # OUTPUT [OPTION...]
  local output=$1
  shift
  expect 0 'wrote the artifact' "$tandem" compile "$model" -o "$output" \
    --optimizer=adamw:lr=1e-3 --time-passes --force "${effort[@]}" "$@"
}
same() { cmp whole.tdm "$1" || fail "$2 gives other bytes"; }

# Without it, then with it: cold, warm, and half of each.
compile whole.tdm --kernel-cache=off
[[ $out == *'kernel cache'* ]] && fail "--kernel-cache=off used one"
[ -e caches ] && fail '--kernel-cache=off wrote a folder'
compile cold.tdm
grep -qE 'kernel cache: 0 of [1-9][0-9]* kernels were in .*/caches/tandem/kernels., [1-9][0-9]* are new' <<<"$out" ||
  fail "a cold compilation said: $out"
same cold.tdm 'a cold cache'
[ "$(stat -c %a "$kernels")" = 700 ] || fail 'others may look into the cache'
compile warm.tdm --threads=1
count=$(find "$kernels" -name '*.kernel' | wc -l)
grep -q "kernel cache: $count of $count kernels were in .*, 0 are new" <<<"$out" ||
  fail "a warm compilation said: $out"
same warm.tdm 'a warm cache'
find "$kernels" -name '*.kernel' | sort | awk 'NR % 2' | xargs rm
compile half.tdm
same half.tdm 'a cache with half of the kernels'
sleep 1.1 # Nor on the time.
compile later.tdm
same later.tdm 'a later compilation'

# What else decides code has entries of its own, and gives what it gives alone.
for option in --fast-math --target=cpu:x86-64-v3 --effort=1; do
  [ "$option" = --effort=1 ] && effort=()
  compile alone.tdm "$option" --kernel-cache=off
  compile first.tdm "$option"
  compile again.tdm "$option"
  cmp alone.tdm first.tdm && cmp alone.tdm again.tdm ||
    fail "$option: the cache gives other bytes"
done
effort=(--effort=0)
compile again.tdm
same again.tdm 'a cache with other kinds of code'

# Two at once.
rm -r caches
"$tandem" compile "$model" -o one.tdm --optimizer=adamw:lr=1e-3 --effort=0 2>one.txt &
compile two.tdm
wait $! || fail "one of two processes failed: $(<one.txt)"
same one.tdm 'a process beside another'
same two.tdm 'a process beside another'
[ -z "$(find "$kernels" -name '*.tmp-*')" ] || fail 'temporary files stay'

# Damaged: cut short, flipped, another kernel's, empty, not a file.
mapfile -t entries < <(find "$kernels" -name '*.kernel' | sort)
truncate -s 100 "${entries[0]}"
printf 'x' | dd of="${entries[1]}" bs=1 seek=300 conv=notrunc status=none
cp "${entries[3]}" "${entries[2]}"
: >"${entries[4]}"
rm "${entries[5]}" && mkdir "${entries[5]}"
compile damaged.tdm
grep -q '5 were damaged' <<<"$out" || fail "damaged entries: $out"
same damaged.tdm 'a damaged cache'
rm -r caches

# A folder that cannot be used is no error, and is said once.
touch file
compile file.tdm --kernel-cache=file/below
[ "$(grep -c "kernel cache: .*'file/below'" <<<"$out")" = 1 ] ||
  fail "a folder that cannot be made: $out"
same file.tdm 'a folder that cannot be made'
expect 0 '' "$tandem" compile "$model" -o quiet.tdm --kernel-cache=file/below \
  --optimizer=adamw:lr=1e-3
[[ $out == *'kernel cache'* ]] && fail "it was said without --time-passes"
mkdir -m 777 shared && chmod 777 shared
compile shared.tdm --kernel-cache=shared
grep -q "others may write in it" <<<"$out" || fail "a shared folder: $out"
[ -z "$(ls shared)" ] || fail 'a shared folder was written to'
env -u HOME -u XDG_CACHE_HOME "$tandem" compile "$model" -o homeless.tdm \
  --optimizer=adamw:lr=1e-3 --effort=0 2>homeless.txt || fail "without a home: $(<homeless.txt)"
same homeless.tdm 'nobody with a home'

# The variable, the option before it, and the bound.
TANDEM_KERNEL_CACHE=off compile named.tdm
[ -e caches ] && fail 'TANDEM_KERNEL_CACHE=off wrote a folder'
TANDEM_KERNEL_CACHE=off compile named.tdm --kernel-cache=named
[ -n "$(ls named)" ] || fail '--kernel-cache=DIR wrote nothing'
compile small.tdm --kernel-cache=small --kernel-cache-size=20kB
same small.tdm 'a small cache'
[ "$(find small -name '*.kernel' -printf '%s\n' | awk '{ n += $1 } END { print n + 0 }')" -le 20000 ] ||
  fail 'the cache is larger than its bound'

# Variants, of which those kernels are joined that have the same key.
sed 's/tensor<32x/tensor<8x/g' "$model" >other.mlir
cmp -s "$model" other.mlir && fail 'the other size is the same one'
expect 0 '' "$tandem" compile "$model" -o sizes.tdm --variant=other.mlir --kernel-cache=off
expect 0 '' "$tandem" compile "$model" -o sizes-cold.tdm --variant=other.mlir --kernel-cache=sizes
expect 0 '' "$tandem" compile "$model" -o sizes-warm.tdm --variant=other.mlir --kernel-cache=sizes
cmp sizes.tdm sizes-cold.tdm && cmp sizes.tdm sizes-warm.tdm ||
  fail 'variants: the cache gives other bytes'

# Of a GPU it is PTX, and what the emulator's image is made of where that is wanted.
effort=() # which is for a processor
cuda() { # OUTPUT TARGET [OPTION...]
  compile "$1" --target="$2" --cubin=no --variant=other.mlir "${@:3}"
}
cuda gpu.tdm cuda:sm_90a --kernel-cache=off
for how in cold warm; do
  cuda gpu-$how.tdm cuda:sm_90a --kernel-cache=gpu
  cmp gpu.tdm gpu-$how.tdm || fail "cuda: a $how cache gives other bytes"
done
grep -qE 'kernel cache: ([1-9][0-9]*) of \1 kernels were in .*, 0 are new' <<<"$out" ||
  fail "a warm compilation for a GPU said: $out"
effort=(--effort=0)
cuda emulated.tdm cpu+cuda:sm_90a --emulation --kernel-cache=off
for how in cold warm; do
  cuda emulated-$how.tdm cpu+cuda:sm_90a --emulation --kernel-cache=gpu
  cmp emulated.tdm emulated-$how.tdm ||
    fail "cuda with its emulation: a $how cache gives other bytes"
done
find gpu -name '*.kernel' | sort | awk 'NR % 2' | xargs rm
cuda emulated-half.tdm cpu+cuda:sm_90a --emulation --kernel-cache=gpu
cmp emulated.tdm emulated-half.tdm || fail 'cuda: half a cache gives other bytes'
expect 0 'median' "$tandem" bench emulated-warm.tdm --device=cuda-emu \
  --program=evaluate --steps=1 --warmup=0

# A page of it is made on the way, and takes what is kept.
expect 0 'kernel cache: ([0-9]+) of \1 kernels' "$tandem" compile "$model" -o sizes-page.tdm --variant=other.mlir \
  --kernel-cache=sizes --report=page.html --time-passes
cmp sizes.tdm sizes-page.tdm || fail 'variants: the page gives other bytes'

# Stages of a pipeline say of which compilation they are: of the same, whatever
# was kept, and with a page of each.
for how in off cold warm page; do
  options=(--kernel-cache=stages)
  [ $how = off ] && options=(--kernel-cache=off)
  [ $how = page ] && options+=(--report=stages.html)
  expect 0 '' "$tandem" compile "$model" -o $how-pp.tdm --mesh=pipe=2 \
    --parallel=pp --optimizer=adamw:lr=1e-3 --effort=0 "${options[@]}"
  cmp off-pp.tdm $how-pp.tdm && cmp off-pp.stage1.tdm $how-pp.stage1.tdm ||
    fail "stages: other bytes ($how)"
done

# Code runs as it did.
expect 0 'median' "$tandem" bench warm.tdm --program=evaluate --steps=2

# A module has no keys, and none is believed.
expect 0 '' "$tandem" compile "$model" --stop-after=lower -o lower.mlir
grep -q 'tandem.code' lower.mlir && fail 'a module has keys of code'
sed 's/tandem.kernel = /tandem.code = "00", &/' lower.mlir >keys.mlir
expect 1 "expected neither 'tandem.code' nor 'tandem.compiled' in what is compiled" \
  "$tandem" compile keys.mlir -o keys.tdm

# What is wrong. A folder that was named is one that is used, or it is said.
touch file
expect 0 "warning: no kernels are kept: 'file': it is no folder" "$tandem" compile "$model" -o x.tdm --kernel-cache=file
expect 2 "expected --kernel-cache-size to be bytes, as 2GiB, but got 'big'" \
  "$tandem" compile "$model" -o x.tdm --kernel-cache-size=big
expect 2 '--kernel-cache-size' "$tandem" compile "$model" -o x.tdm \
  --kernel-cache=off --kernel-cache-size=1GiB
expect 2 '--kernel-cache' "$tandem" compile "$model" -o x.mlir \
  --kernel-cache=d --stop-after=plan
expect 2 '--kernel-cache' "$tandem" compile "$model" -o x.tdm \
  --kernel-cache=d --dump-phases=dumps
expect 2 "'--effort' expected" "$tandem" compile "$model" -o x.tdm --effort=4
finish
