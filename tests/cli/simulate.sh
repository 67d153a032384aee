#!/bin/bash
# simulate.sh BIN EXAMPLES - what a step takes on other machines: memory of a
# GPU is what inspect says (of processors: peaks.sh), an artifact and its model
# say the same, twice the same bytes, and what is wrong is refused.
here=$(dirname "$0")
source "$here/expect.sh"
bin=$1 examples=$2
trace=$(realpath "$here")/trace.py
cd "$work" || exit 1
model=$examples/digits/mlp.mlir
adamw=--optimizer=adamw:lr=2e-3

# field FILE NAME: a number at the top of a JSON object.
field() { grep -oE "^ \"$2\": [^,]*" "$1" | sed 's/.*: //'; }

# planned: the parts of inspect's step_memory together.
planned() {
  awk '/"step_memory": \{/ { inside = 1; next }
    inside && /\}/ { print sum; exit }
    inside && !/"host"/ { sub(/.*: /, ""); sub(/,/, ""); sum += $0 }'
}

for plan in ddp zero1 zero2 fsdp; do
  expect 0 '' "$bin/tandem" compile "$model" -o $plan.tdm $adamw \
    --mesh=data=4 --parallel=$plan
  expect 0 '^bound by +[a-z]' "$bin/tandem" simulate $plan.tdm --rank-threads=1
  "$bin/tandem" simulate $plan.tdm --json >$plan.json
  "$bin/tandem" simulate "$model" $adamw --mesh=data=4 --parallel=$plan \
    --json >model.json
  for name in step_ms memory_bytes; do
    [ "$(field $plan.json $name)" = "$(field model.json $name)" ] ||
      fail "$plan: $name: $(field $plan.json $name) of the artifact, \
$(field model.json $name) of the model"
  done
done

# On a device the planned peak has all of inspect's parts. Meshes are compiled for
# processors alone.
expect 0 '' "$bin/tandem" compile "$model" -o gpu.tdm $adamw --target=cuda:sm_90 \
  --cubin=no
planned=$("$bin/tandem" inspect gpu.tdm --json | planned)
"$bin/tandem" simulate gpu.tdm --json --device=h100 >device.json
[ "$planned" = "$(field device.json memory_bytes)" ] ||
  fail "inspect says $planned, simulate $(field device.json memory_bytes)"

# Kernels of a processor had times of a GPU, and the other way round.
needs="the times of a device \('--device', or that of '--links'\) need code that"
for device in a100 h100 b200; do
  expect 2 "'ddp.tdm': $needs '$device' \(cuda:sm_[0-9]+\) runs, but got code for cpu" \
    "$bin/tandem" simulate ddp.tdm --device=$device
done
expect 2 "$needs 'cpu' \(cpu\) runs, but got code for cuda:sm_90" \
  "$bin/tandem" simulate gpu.tdm
expect 2 "$needs 'a100' \(cuda:sm_80\) runs, but got code for cuda:sm_90" \
  "$bin/tandem" simulate gpu.tdm --device=a100
expect 2 "$needs 'h100' \(cuda:sm_90\) runs, but got code for cpu" \
  "$bin/tandem" simulate "$model" $adamw --target=cpu --device=h100
expect 2 "$needs 'cpu' \(cpu\) runs, but got code for cuda:sm_90" \
  "$bin/tandem" compile "$model" -o no.tdm $adamw --target=cuda:sm_90 \
  --parallel=auto --devices=2
# Of one rank, and of a GPU, there is nothing that these say.
expect 2 '--ranks-per-machine has no effect: there is one rank' \
  "$bin/tandem" simulate "$model" $adamw --ranks-per-machine=3 --links=shared-memory
expect 2 "--rank-threads has no effect: 'h100' is no processor" \
  "$bin/tandem" simulate "$model" $adamw --device=h100 --rank-threads=2

# Of several codes that which the device runs, in whatever order.
expect 0 '' "$bin/tandem" compile "$model" -o both.tdm $adamw --effort=0 \
  --target=cpu+cuda:sm_90 --cubin=no
"$bin/tandem" simulate both.tdm --json >of-cpu.json
"$bin/tandem" simulate both.tdm --json --device=h100 >of-gpu.json
"$bin/tandem" simulate "$model" $adamw --json --device=h100 >gpu.json
"$bin/tandem" simulate "$model" $adamw --json --target=cpu+cuda:sm_90 --device=h100 \
  >gpu-of-two.json
for file in of-gpu.json gpu-of-two.json; do
  [ "$(field $file step_ms)" = "$(field gpu.json step_ms)" ] ||
    fail "$file: $(field $file step_ms) ms, alone $(field gpu.json step_ms)"
done
[ "$(field of-cpu.json step_ms)" != "$(field gpu.json step_ms)" ] ||
  fail 'processor and GPU take the same'

# Stages: one file each; a rank is idle for a part of the time.
expect 0 '' "$bin/tandem" compile "$model" -o pp.tdm $adamw --mesh=pipe=2 \
  --parallel=pp
expect 0 '^receive over pipe +4' "$bin/tandem" simulate pp.tdm --batches=4
mv pp.stage1.tdm gone.tdm
expect 1 "pp.stage1.tdm" "$bin/tandem" simulate pp.tdm --batches=4

# Machines, and pictures, twice the same.
more=("$model" $adamw --mesh=data=16 --parallel=ddp --links=h100-nvlink+ib400)
for i in 1 2; do
  expect 0 '^device +h100, 8 a machine with h100-nvlink, ib400 between' \
    "$bin/tandem" simulate "${more[@]}" --trace=t$i.json --svg=p$i.svg
done
cmp t1.json t2.json || fail "two traces differ"
cmp p1.svg p2.svg || fail "two pictures differ"
"$bin/tandem" simulate "${more[@]}" --json >16.json
micros=$(awk "BEGIN { print 1000 * $(field 16.json step_ms) }")
# Of stages each rank has its kernels, and messages each way.
expect 0 '' "$bin/tandem" simulate "$model" $adamw --mesh=pipe=2 --parallel=pp \
  --batches=4 --trace=pp.json
if command -v python3 >/dev/null; then
  expect 0 '^2 lines, [1-9]' python3 "$trace" t1.json "$micros"
  expect 0 '^6 lines, [1-9]' python3 "$trace" pp.json
fi
expect 2 "p1.svg" "$bin/tandem" simulate "${more[@]}" --trace=p1.svg
expect 0 '^data=2 +ddp +[0-9]' "$bin/tandem" simulate "$model" $adamw --sweep \
  --devices=2 --device=a100
expect 0 '"kind": "sweep"' "$bin/tandem" simulate "$model" $adamw --sweep \
  --mesh=data=2 --json

# A table of one's own.
cat >mine.json <<'JSON'
{"devices": {"mine": {"target": "cpu", "memory": 1e9, "capacity": 1e5,
   "host": 1e9, "launches": 1e6, "cores": 2, "clock": 1e9, "vector_units": 1,
   "links": "shared-memory", "source": "here"}}}
JSON
expect 0 'too little' "$bin/tandem" simulate ddp.tdm --device=mine \
  --machines=mine.json
sed -i s/cores/coers/ mine.json
expect 2 "mine.json': devices.mine: expected a number 'cores'; devices.mine: \
unknown field 'coers'" "$bin/tandem" simulate ddp.tdm --machines=mine.json
expect 2 "unknown device 'h1000' \(did you mean 'h100'" "$bin/tandem" simulate \
  ddp.tdm --device=h1000
expect 2 "unknown link 'ib4000'" "$bin/tandem" simulate ddp.tdm \
  --links=h100-nvlink+ib4000
expect 2 "'ib400' is between machines, but stands in front of" "$bin/tandem" \
  simulate ddp.tdm --links=ib400+ib200
expect 2 "16 ranks are more than the 8 of a machine: expected \
--links=h100-nvlink\+LINK" "$bin/tandem" simulate "${more[@]:0:4}" \
  --device=h100
expect 2 'optimizer has no effect on an artifact' "$bin/tandem" simulate \
  ddp.tdm $adamw
expect 2 'sweep needs --devices or --mesh' "$bin/tandem" simulate "$model" \
  $adamw --sweep

# A measured step: the same takes as long.
echo '{"step_ms": 123.5, "ranks": 4}' >measured.json
expect 0 '^step +123.500 ms' "$bin/tandem" simulate ddp.tdm \
  --calibrate=measured.json
echo '{"step_ms": 123.5, "ranks": 2}' >measured.json
expect 2 'was measured on 2 ranks, but what it names has 4' "$bin/tandem" \
  simulate ddp.tdm --calibrate=measured.json
echo '{"step_ms": 123.5, "ranks": 4, "artifact": "ddp.tdm"}' >measured.json
expect 0 '"step_ms": ' "$bin/tandem" simulate fsdp.tdm --json \
  --calibrate=measured.json
# A class of kernels that is no text ended the command by a signal.
echo '{"step_ms": 123.5, "ranks": 4, "kernels": [{"class": 5, "ms": 1}]}' >measured.json
expect 2 "expected 'kernels' as 'bench --kernels --json' prints them" "$bin/tandem" \
  simulate ddp.tdm --calibrate=measured.json
expect 0 'h100 ' "$bin/tandem" help machines
finish
