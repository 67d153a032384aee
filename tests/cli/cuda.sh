#!/bin/bash
# cuda.sh BIN EXAMPLES - compiling for cuda, as a user meets it: targets, PTX,
# cubins with and without an assembler, one artifact for both kinds of target.
source "$(dirname "$0")/expect.sh"
tandem=$1/tandem
model=$2/digits/mlp.mlir data=$2/digits/data
cd "$work" || exit 1
unset TANDEM_PTXAS
section() { "$tandem" inspect "$1" | grep -qE "^$2 +[0-9]+$"; }

# The same bytes twice and for any number of threads; a header for each
# architecture.
expect 0 '' "$tandem" compile "$model" -o a.tdm --target=cuda:sm_90 --cubin=no
expect 0 '' "$tandem" compile "$model" -o b.tdm --target=cuda:sm_90 \
  --cubin=no --threads=1 --kernel-cache=off
expect 0 '' "$tandem" compile "$model" -o c.tdm --target=cuda:sm_90 \
  --cubin=no --threads=2 --kernel-cache=off
cmp a.tdm b.tdm || fail 'two compilations differ'
cmp b.tdm c.tdm || fail 'one thread and several give different bytes'
section a.tdm ptx || fail 'no PTX'
section a.tdm cubin && fail 'a cubin in spite of --cubin=no'
for arch in sm_80:8.0 sm_86:8.0 sm_89:8.0 sm_90:8.0 sm_90a:8.0 sm_100:8.6 \
  sm_100a:8.6 sm_103a:8.8 sm_120:8.7; do
  expect 0 '' "$tandem" compile "$model" -o "${arch%:*}.tdm" --inference \
    --cubin=no --target="cuda:${arch%:*}"
  expect 0 "^\.version ${arch#*:}$" "$tandem" inspect "${arch%:*}.tdm" --ptx
  grep -qx "\.target ${arch%:*}" <<<"$out" || fail "no .target ${arch%:*}"
done
expect 0 'for cuda sm_90, loss loss' "$tandem" inspect a.tdm

# More parameters than PTX 8.0 can have.
list() { printf "$1" {0..599} | sed 's/, $//'; }
cat >many.mlir <<END
module @many attributes {tandem.phase = "lower",
                         tandem.target = #tandem.target<cuda {arch = "sm_90"}>} {
  func.func @evaluate(
      $(list '%%x%d: tensor<4xf32> {tandem.role = #tandem.role<input "N">}, ' |
        sed -E 's/%(x[0-9]+):([^N]*)N/%\1:\2\1/g'))
      -> (tensor<4xf32> {tandem.role = #tandem.role<output "y">}) {
    %0 = tandem.launch @cuda::@k($(list '%%x%d, ')) {
        buffers = [#tandem.buffer<result 0>], work = 1, grain = 1,
        grid = array<i64: 1, 1, 1>}
        : ($(printf 'tensor<4xf32>%.0s, ' {0..599} | sed 's/, $//'))
        -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  gpu.module @cuda {
    llvm.func @k($(list '%%p%d: !llvm.ptr, '), %q: !llvm.ptr)
        attributes {nvvm.kernel, tandem.kernel = #tandem.kernel_facts<
            type = ($(printf 'tensor<4xf32>%.0s, ' {0..599} | sed 's/, $//'))
                -> tensor<4xf32>, items = 1, blocks = [1, 1, 1],
            kind = "pointwise", ops = ["tandem.add"],
            block = [32, 1, 1]>} {
      %v = llvm.load %p599 : !llvm.ptr -> f32
      llvm.store %v, %q : f32, !llvm.ptr
      llvm.return
    }
  }
}
END
expect 0 '' "$tandem" compile many.mlir -o many.tdm
expect 0 '^\.version 8\.1$' "$tandem" inspect many.tdm --ptx

# One kernel's PTX is a text of its own.
kernel=$("$tandem" inspect a.tdm --ptx | grep -m1 -oP '(?<=\.entry )\w+')
expect 0 "^\.visible \.entry $kernel\(" "$tandem" inspect a.tdm --ptx="$kernel"
[ "$(grep -c '\.entry' <<<"$out")" = 1 ] || fail 'several kernels are shown'
grep -q '^\.version' <<<"$out" || fail 'a text without a header'
expect 2 "no kernel 'nothing'" "$tandem" inspect a.tdm --ptx=nothing
expect 0 "^forward +0 $kernel +[0-9]" "$tandem" inspect a.tdm

# With an assembler: a cubin for each architecture, and what kernels take.
ptxas=$(command -v ptxas || echo "${CUDA_HOME:-/usr/local/cuda}/bin/ptxas")
if [ -x "$ptxas" ]; then
  for arch in sm_80 sm_90 sm_90a; do
    expect 0 '' "$tandem" compile "$model" -o d.tdm --target="cuda:$arch" \
      --cubin=yes
    section d.tdm cubin || fail "no cubin for $arch"
  done
  expect 0 "^$kernel +[0-9]+" "$tandem" inspect a.tdm --kernels
  # Both ways to assemble give what they give, each time.
  for way in "$ptxas" ''; do
    [ -n "$way" ] && export TANDEM_PTXAS=$way
    expect 0 '' "$tandem" compile "$model" -o e.tdm --target=cuda:sm_90
    expect 0 '' "$tandem" compile "$model" -o f.tdm --target=cuda:sm_90 --threads=1
    cmp e.tdm f.tdm || fail "two cubins differ ($way)"
    unset TANDEM_PTXAS
  done
else
  echo 'skipped: assembling (there is no ptxas)'
fi

# Without one: PTX alone, or an error if the cubin was asked for.
export TANDEM_PTXAS=
expect 0 '' "$tandem" compile "$model" -o e.tdm --target=cuda:sm_90
cmp a.tdm e.tdm || fail 'no assembler is not the same as --cubin=no'
expect 3 'cubin=yes: there is no assembler for PTX, neither libnvJitLink nor' \
  "$tandem" compile "$model" -o x.tdm --target=cuda:sm_90 --cubin=yes
expect 3 'there is no ptxas' "$tandem" inspect a.tdm --kernels
# TANDEM_PTXAS with a wrong path was taken for none.
export TANDEM_PTXAS=$work/nowhere
expect 2 "expected TANDEM_PTXAS to name a program.* but got '.*nowhere'" \
  "$tandem" compile "$model" -o x.tdm --target=cuda:sm_90
export TANDEM_PTXAS=
# Assemblers that work, are too old, refuse the text, or die.
assembler() {
  printf '#!/bin/bash\n%s\n' "$1" >ptxas.sh
  chmod +x ptxas.sh
  export TANDEM_PTXAS=$work/ptxas.sh
}
assembler 'while [ "$1" != -o ]; do shift; done; printf cubin >"$2"'
expect 0 '' "$tandem" compile "$model" -o e.tdm --target=cuda:sm_90
section e.tdm cubin || fail 'no cubin of an assembler'
assembler "echo \"ptxas fatal   : Value 'sm_90' is not defined for option 'gpu-name'\" >&2; exit 255"
expect 0 'warning: no cubin for .sm_90.* is too old' \
  "$tandem" compile "$model" -o e.tdm --target=cuda:sm_90
cmp a.tdm e.tdm || fail 'an old assembler is not the same as --cubin=no'
expect 3 'ptxas.sh. is too old' \
  "$tandem" compile "$model" -o x.tdm --target=cuda:sm_90 --cubin=yes
assembler 'echo "ptxas k.ptx, line 5; error   : Unknown symbol" >&2; exit 255'
expect 1 'ptxas.sh. refuses the PTX: .*Unknown symbol' \
  "$tandem" compile "$model" -o x.tdm --target=cuda:sm_90
assembler 'kill -9 $$'
expect 1 'ptxas.sh' "$tandem" compile "$model" -o x.tdm --target=cuda:sm_90
assembler 'exit 0'
expect 1 'cannot read' "$tandem" compile "$model" -o x.tdm --target=cuda:sm_90
export TANDEM_PTXAS=

# Both targets in one artifact: on the CPU the numbers of the CPU's alone.
expect 0 '' "$tandem" compile "$model" -o cpu.tdm --optimizer=sgd:lr=1e-2
expect 0 '' "$tandem" compile "$model" -o both.tdm --optimizer=sgd:lr=1e-2 \
  --target=cpu+cuda:sm_90 --dump-phases=dumps
expect 0 '' "$tandem" compile "$model" -o other.tdm --optimizer=sgd:lr=1e-2 \
  --target=cuda:sm_90+cpu
expect 0 'for cpu [^ ]+ and cuda sm_90' "$tandem" inspect both.tdm
for wanted in manifest object.cpu manifest.cuda ptx; do
  section both.tdm $wanted || fail "no section $wanted"
done
section other.tdm manifest.cpu || fail 'the first target is not the first'
# An object for one target was an array for two.
for artifact in both cpu; do
  expect 0 '^ "manifests": \[' "$tandem" inspect $artifact.tdm --json
done
losses() {
  local artifact=$1
  shift
  expect 0 '' "$tandem" train "$artifact.tdm" "$@" --steps 20 --seed 0 \
    --data x=@"$data/train_images.npy" --log="$artifact.log" \
    --data labels=@"$data/train_labels.npy"
  grep -oE '"(loss|step)": ?[-+.e0-9]+' "$artifact.log" >"$artifact.losses"
}
losses cpu
losses both
losses other
[ -s cpu.losses ] || fail 'no losses'
cmp cpu.losses both.losses || fail 'with a second target the losses differ'
cmp cpu.losses other.losses || fail 'as the second target the losses differ'

# With the image of the kernels they run on the emulated device, where there is
# neither a GPU nor a toolkit: the CPU's numbers but for rounding.
expect 0 '' "$tandem" compile "$model" -o emulated.tdm --emulation \
  --optimizer=sgd:lr=1e-2 --target=cpu+cuda:sm_90
expect 0 '' "$tandem" compile "$model" -o e.tdm --emulation --threads=1 \
  --optimizer=sgd:lr=1e-2 --target=cpu+cuda:sm_90 --kernel-cache=off
cmp emulated.tdm e.tdm || fail 'threads change the emulation'
section emulated.tdm emulation || fail 'no emulation'
losses emulated --device=cuda-emu
paste <(grep -oE '[-+.e0-9]+$' cpu.losses) \
  <(grep -oE '[-+.e0-9]+$' emulated.losses) |
  awk '{ d = $1 - $2; if (d * d > 1e-10 * $1 * $1) exit 1 }
       END { exit NR != 40 }' || fail 'the emulated losses are others'

# Plain cuda is for several GPUs: the emulated one, of 9.0, takes what is for it
# alone, and says so.
expect 0 '' "$tandem" compile "$model" -o several.tdm --emulation \
  --cubin=no --inference --target=cuda
expect 0 'for cuda sm_90a and cuda sm_80' "$tandem" inspect several.tdm
for wanted in ptx ptx.2 emulation emulation.2 manifest.cuda.2; do
  section several.tdm "$wanted" || fail "no section '$wanted'"
done
expect 0 '^// sm_80$' "$tandem" inspect several.tdm --ptx
grep -qx '.target sm_90a' <<<"$out" || fail 'no PTX of the first'
expect 0 '^code +cuda sm_90a, emulation image$' "$tandem" bench several.tdm \
  --device=cuda-emu --steps=1 --warmup=0
expect 2 "name the architecture 'sm_80' once" "$tandem" compile "$model" \
  -o x.tdm --target=cuda+cuda:sm_80

# Each target goes on from its own dumps; printed, they are parted.
expect 0 '' "$tandem" compile "$model" -o cuda.tdm --optimizer=sgd:lr=1e-2 \
  --target=cuda:sm_90
for kind in cpu cuda; do
  for dump in dumps/*.0[67].*.$kind.mlir; do
    expect 0 '' "$tandem" compile "$dump" -o e.tdm
    cmp $kind.tdm e.tdm || fail "resuming from $dump gives other bytes"
  done
done
[ -e dumps/digits_mlp.01.capture.mlir ] || fail 'no dump of what is common'
expect 2 'target=cuda comes too late for a module at .plan.' \
  "$tandem" compile dumps/digits_mlp.06.plan.cpu.mlir -o x.tdm --target=cuda
# Plain cuda is the kind that it is; before, that was sm_90.
expect 0 '' "$tandem" compile dumps/digits_mlp.06.plan.cuda.mlir -o e.tdm \
  --target=cuda
cmp cuda.tdm e.tdm || fail 'the kind alone changes the architecture'
expect 2 'comes too late for a module at .lower.' "$tandem" compile \
  dumps/digits_mlp.07.lower.cuda.mlir -o x.tdm --target=cuda:sm_80
expect 2 'comes too late' "$tandem" compile \
  dumps/digits_mlp.03.joint.cuda.mlir -o x.tdm --target=cpu+cuda:sm_90
expect 0 '^// -----$' "$tandem" compile "$model" --target=cpu+cuda:sm_90 \
  --stop-after=plan
[ "$(grep -c '^module' <<<"$out")" = 2 ] || fail 'not a module for each target'

# Wrong use; a kernel that calls what there is not.
expect 2 "--emulation is for the target 'cuda', but this one is 'cpu'" \
  "$tandem" compile "$model" -o x.tdm --emulation
expect 2 "--cubin is for the target 'cuda'" "$tandem" compile "$model" -o x.tdm --cubin=yes
expect 2 "'--cubin' expected auto, yes or no" \
  "$tandem" compile "$model" -o x.tdm --target=cuda:sm_90 --cubin=maybe
expect 2 "'--matmul-precision' expected f32 or tf32" \
  "$tandem" compile "$model" -o x.tdm --target=cuda:sm_90 --matmul-precision=half
expect 0 'nvvm.mma.sync.*tf32' "$tandem" compile "$model" \
  --target=cuda:sm_90 --matmul-precision=tf32 --stop-after=lower
expect 2 "expected an artifact for 'cuda'" "$tandem" inspect cpu.tdm --ptx
expect 2 "expected an artifact for 'cuda'" "$tandem" inspect cpu.tdm --kernels
sed 's|gpu.module @cuda.*|&\n    llvm.func @__nv_tanhf(f32) -> f32|
     0,/llvm.store \(%[^,]*\), \(.*\) : f32/s||%tanh = llvm.call @__nv_tanhf(\1) : (f32) -> f32\n&|' \
  dumps/digits_mlp.07.lower.cuda.mlir >calls.mlir
expect 3 "error: unsupported on 'cuda': kernel .* calls '__nv_tanhf'" \
  "$tandem" compile calls.mlir -o x.tdm
[ -e x.tdm ] && fail 'a failed compilation left a file'
finish
