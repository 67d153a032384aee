#!/bin/bash
# cuda-hand-overs.sh BIN EXAMPLES - products that several blocks share lost parts
# of their sums on a GPU: no fence stood around the counter that hands them over.
# Of the benchmark models' PTX, and of its machine code where ptxas and nvdisasm
# are: every atomic of global memory has a fence of the device before it, behind
# the barrier that ends the block's stores, and one after it, before the barrier
# that begins its loads.
source "$(dirname "$0")/expect.sh"
bin=$1
cd "$work" || exit 1
unset TANDEM_PTXAS

# ptx_events, machine_events: a line for each instruction that matters: barrier,
# fence, atomic, load or store of global memory.
ptx_events() {
  sed -nE 's/^[[:space:]]*(@!?%p[0-9]+ )?//
    s/^(bar|barrier)\..*/barrier/p
    s/^(fence\.(acq_rel|sc)\.(gpu|sys)|membar\.(gl|sys)).*/fence/p
    s/^(atom|red)\.([a-z0-9_:]+\.)*shared.*//
    s/^(atom|red)\..*/atomic/p
    s/^ld\.([a-z0-9_:]+\.)*global.*/load/p
    s/^st\.([a-z0-9_:]+\.)*global.*/store/p'
}
# The fence is two instructions: writes go out, and stale lines of L1 are dropped.
machine_events() {
  sed -nE 's/^[^*]*\/\*[0-9a-f]+\*\/[[:space:]]+(@!?U?P[0-9T]+ )?//
    s/^BAR\..*/barrier/p
    s/^MEMBAR\.[A-Z.]*(GPU|SYS).*/fence/p
    s/^CCTL\.IVALL.*/drop/p
    s/^(ATOMG|ATOM|RED|REDG)\..*/atomic/p
    s/^LDG\..*/load/p
    s/^STG\..*/store/p' |
    awk '$0 == "drop" { if (last == "fence") print "fence"; last = ""; next }
         last == "fence" { print "half" }
         { last = $0; if ($0 != "fence") print }'
}

# Prints how many atomics there are, and one line for each that is not fenced.
check_events() {
  awk '{ event[NR] = $0 }
    END {
      for (i = 1; i <= NR; ++i)
        if (event[i] == "atomic") {
          ++count
          if (event[i - 2] != "barrier" || event[i - 1] != "fence" ||
              event[i + 1] != "fence" || event[i + 2] != "barrier")
            print "not handed over: " event[i - 2], event[i - 1], event[i],
              event[i + 1], event[i + 2]
        }
      print count + 0
    }'
}

# The check itself: one instruction less, or in another place, is found.
right='bar.sync 0;
fence.acq_rel.gpu;
atom.global.inc.u32 %r1, [%rd1], 3;
fence.acq_rel.gpu;
bar.sync 0;'
[ "$(ptx_events <<<"$right" | check_events)" = 1 ] || fail 'a right hand-over'
for line in 1 2 4 5; do
  sed "${line}d" <<<"$right" | ptx_events | check_events | grep -q '^not' ||
    fail "a hand-over without line $line passes"
done
sed '1{h;d};2G' <<<"$right" | ptx_events | check_events | grep -q '^not' ||
  fail 'a fence before the barrier passes'
sed '2s/gpu/cta/' <<<"$right" | ptx_events | check_events | grep -q '^not' ||
  fail 'a fence of the block passes'

ptxas=$(command -v ptxas || echo "${CUDA_HOME:-/usr/local/cuda}/bin/ptxas")
nvdisasm=${TANDEM_NVDISASM-$(command -v nvdisasm ||
  echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvdisasm")}
[ -x "$ptxas" ] && [ -x "$nvdisasm" ] ||
  echo "skipped: machine code (there is no $([ -x "$ptxas" ] && echo nvdisasm || echo ptxas))"

# check MODEL TYPE ARCH: at least one hand-over, each with its fences. The PTX
# stays in x.ptx, the kernels that hand over are in $kernels.
check() {
  local model=$1 type=$2 arch=$3 count what="$1 $2 for $3"
  [ -e "$model-$type.mlir" ] ||
    expect 0 '' "$bin/tandem-workload" write "$model" --type="$type" \
      -o "$model-$type.mlir"
  expect 0 '' "$bin/tandem" compile "$model-$type.mlir" -o x.tdm --force \
    --target="cuda:$arch" --cubin=no \
    --optimizer="$("$bin/tandem-workload" optimizer "$model")"
  expect 0 '\.entry' "$bin/tandem" inspect x.tdm --ptx
  printf '%s\n' "$out" >x.ptx
  ptx_events <x.ptx | check_events >found
  sed -n "s/^not/$what: not/p" found
  grep -q '^not' found && fail "$what: hand-overs lack fences"
  count=$(tail -n 1 found)
  [ "$count" -gt 0 ] || fail "$what: no hand-over was found"
  kernels=$(awk '/\.entry/ { name = $3; sub(/\(.*/, "", name) }
    /atom\.([a-z0-9_:]+\.)*global/ { print name }' x.ptx | uniq)
  echo "$what: $count hand-overs"
}

# check_machine MODEL TYPE ARCH MOST: the code of the first MOST kernels, too.
check_machine() {
  check "$1" "$2" "$3"
  [ -x "$ptxas" ] && [ -x "$nvdisasm" ] || return
  local kernel
  for kernel in $(head -n "$4" <<<"$kernels"); do
    "$bin/tandem" inspect x.tdm --ptx="$kernel" >k.ptx ||
      fail "no PTX of '$kernel'"
    expect 0 '' "$ptxas" -arch="$3" k.ptx -o k.cubin
    expect 0 ATOMG "$nvdisasm" -c k.cubin
    machine_events <<<"$out" | check_events >found
    sed -n "s/^not/$1 $2 for $3: $kernel: not/p" found
    grep -q '^not' found && fail "$1 $2 for $3: the code of '$kernel'"
    [ "$(tail -n 1 found)" -gt 0 ] || fail "'$kernel' has no atomic"
  done
}

check_machine mlp f32 sm_80 3
check_machine gpt f32 sm_80 3
check_machine mlp f32 sm_90a 3
check resnet8 f32 sm_90a
check_machine gpt2-124m bf16 sm_90a 3
finish
