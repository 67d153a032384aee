# train-digits.sh - sourced behind expect.sh by tests that compile and train the
# digits' mlp: sets $bin, $digits and $data from BIN EXAMPLES, and goes to $work.
bin=$1 digits=$2/digits data=$2/digits/data
cd "$work" || exit 1

# compile OUTPUT [options]: expects that it does.
compile() {
  local to=$1
  shift
  expect 0 '' "$bin/tandem" compile "$digits/mlp.mlir" -o "$to.tdm" "$@"
}

# refused CODE TEXT [options]: expects that it does not.
refused() {
  local code=$1 text=$2
  shift 2
  expect "$code" "$text" "$bin/tandem" compile "$digits/mlp.mlir" -o no.tdm "$@"
}

# train CODE TEXT MODEL [options]: with those of $trains, too.
trains=()
train() {
  local code=$1 text=$2 model=$3
  shift 3
  expect "$code" "$text" "$bin/tandem-run" train "$model.tdm" \
    --data x=@"$data/train_images.npy" --data labels=@"$data/train_labels.npy" \
    "${trains[@]}" "$@"
}

# losses LOG: of each step.
losses() { grep -oE '"loss": ?[-+.e0-9]+' "$1"; }
