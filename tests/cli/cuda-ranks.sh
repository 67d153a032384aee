#!/bin/bash
# cuda-ranks.sh BIN EXAMPLES MPI - X02, X15, X17: sharded training on GPUs of the
# emulator, over processes of MPI and over those that a launcher as torchrun
# starts. MPI runs a program in processes.
# shellcheck source=tests/cli/over-ranks.sh
source "$(dirname "$0")/over-ranks.sh"
export TANDEM_EMULATOR_DEVICES=2 TANDEM_NCCL_DEVICE=cuda-emu
for plan in ddp fsdp; do
  expect 0 '' "$bin/tandem" compile "$digits/mlp.mlir" -o "$plan.tdm" \
    --optimizer=adamw:lr=2e-3 --mesh=data=2 --parallel=$plan \
    --target=cpu+cuda:sm_90 --emulation --cubin=no
done
train=(--data x=@"$data/train_images.npy" --data
  labels=@"$data/train_labels.npy" --seed 3 --steps=4)

# launch MASTER_PORT CODE0 CODE1 COMMAND...: two processes, each with its rank.
# What they print goes to rank-0.txt and rank-1.txt.
launch() {
  local port=$1 codes=("$2" "$3") pids=() rank code
  shift 3
  for rank in 0 1; do
    RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=${size:-2} LOCAL_WORLD_SIZE=2 \
      MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
      timeout 100 "$bin/tandem-run" "$@" >rank-$rank.txt 2>&1 </dev/null &
    pids+=($!)
  done
  for rank in 0 1; do
    code=0
    wait "${pids[$rank]}" || code=$?
    [ "$code" -eq "${codes[$rank]}" ] ||
      fail "rank $rank of '$*' ends with $code: $(cat rank-$rank.txt)"
  done
}
port=$((20000 + $$ % 20000))

for plan in ddp fsdp; do
  over 2 train $plan.tdm "${train[@]}" --device=cpu --log=cpu.jsonl \
    --save=cpu.safetensors
  over 2 train $plan.tdm "${train[@]}" --device=cuda-emu --log=gpu.jsonl \
    --save=gpu.safetensors
  near cpu.jsonl gpu.jsonl
  launch $((port++)) 0 0 train $plan.tdm "${train[@]}" --device=cuda-emu \
    --log=alone.jsonl --save=alone.safetensors
  near cpu.jsonl alone.jsonl
  # The same device, the same order: the same bits.
  cmp gpu.safetensors alone.safetensors || fail "$plan: other bits without MPI"
done

# What is wrong is said by all, before anything waits.
TANDEM_EMULATOR_FAIL=nccl:21700 expect 3 'expected NCCL 2.18 or later' \
  "$mpi" 2 60 "$bin/tandem-run" train ddp.tdm "${train[@]}" --device=cuda-emu
size=3 launch $((port++)) 1 1 train ddp.tdm "${train[@]}" --device=cuda-emu \
  --timeout=2
grep -q 'did not come within the limit: 2' rank-0.txt || fail "$(cat rank-0.txt)"
RANK=0 WORLD_SIZE=2 MASTER_PORT=x expect 3 \
  "lacks what a launcher as torchrun sets: MASTER_ADDR, MASTER_PORT as a number" \
  "$bin/tandem-run" train ddp.tdm "${train[@]}" --device=cuda-emu

# A rank that is killed: the other one ends, and says with whom it waited.
rm -f rank-*.txt
for rank in 0 1; do
  RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 \
    MASTER_PORT=$port timeout 100 "$bin/tandem-run" train ddp.tdm \
    "${train[@]:0:6}" --epochs=10000 --timeout=20 --log=killed.jsonl \
    --device=cuda-emu >rank-$rank.txt 2>&1 </dev/null &
  pids[$rank]=$!
done
for _ in {1..200}; do
  [ -s killed.jsonl ] && break
  sleep 0.1
done
kill -KILL "$(pgrep -P "${pids[1]}")"
wait "${pids[1]}"
code=0
wait "${pids[0]}" || code=$?
[ "$code" -eq 1 ] || fail "rank 0 ends with $code: $(cat rank-0.txt)"
grep -qE 'rank 0: .*(rank 1 is gone|has lost the others)' rank-0.txt ||
  fail "rank 0 says $(cat rank-0.txt)"
finish
