#!/bin/bash
# signatures.sh BIN EXAMPLES - an artifact is loaded only with the signature that is
# asked for, and not once a byte of it or of the signature is another.
source "$(dirname "$0")/expect.sh"
bin=$1 model=$2/digits/mlp.mlir
[ -e "$bin/../lib/libtandem-signatures.so" ] || { echo 'skipped: built without libcrypto'; exit 77; }
cd "$work" || exit 1
expect 0 '' "$bin/tandem" compile "$model" -o m.tdm --optimizer=sgd:lr=0.1

expect 0 '' "$bin/tandem" keys mine
expect 0 '' "$bin/tandem" keys other
expect 0 '^600$' stat -c %a mine.pem
expect 0 'BEGIN PUBLIC KEY' cat mine.pub.pem
# A key that signed something is not drawn again.
expect 2 "the secret key would replace 'mine.pem'; the public key would replace 'mine.pub.pem'; choose another file, or say --force" \
  "$bin/tandem" keys mine
# Whoever could read what was there could read the secret key.
: >old.pem && chmod 644 old.pem
expect 0 '' "$bin/tandem" keys old
expect 0 '^600$' stat -c %a old.pem
chmod 644 old.pem
expect 0 '' "$bin/tandem" keys old --force
expect 0 '^600$' stat -c %a old.pem

bench() { "$bin/tandem-run" bench m.tdm --steps=1 --require-signature="$1"; }
expect 1 "'m.tdm' is not signed: cannot read 'm.tdm.sig'" bench mine.pub.pem
expect 0 '' "$bin/tandem" sign m.tdm --key=mine.pem
expect 0 '^64$' stat -c %s m.tdm.sig
expect 0 '' bench mine.pub.pem
expect 0 '' "$bin/tandem-run" bench m.tdm --steps=1
expect 1 "'m.tdm' is refused: the signature is not that of this file by this key \('m.tdm.sig', 'other.pub.pem'\)" \
  bench other.pub.pem
# Signing is repeated to the same bytes.
cp m.tdm.sig first.sig
expect 0 '' "$bin/tandem" sign m.tdm --key=mine.pem
expect 0 '' cmp m.tdm.sig first.sig

# What is no key, or the wrong one of two.
expect 1 'expected a secret key of Ed25519 in PEM' "$bin/tandem" sign m.tdm --key=mine.pub.pem
expect 1 'expected a public key of Ed25519 in PEM' bench mine.pem
expect 1 'expected a public key of Ed25519 in PEM' bench "$model"
# Of several keys the first one was taken, whatever the others were.
cat mine.pub.pem other.pub.pem >both.pem
expect 1 'expected one public key, but the file has several' bench both.pem
expect 1 "cannot read 'none.pem': No such file" bench none.pem
expect 1 'expected a regular file' bench /dev/zero
expect 1 '' "$bin/tandem" sign "$model" --key=mine.pem # no artifact
expect 2 'would replace' "$bin/tandem" sign m.tdm --key=mine.pem -o "mine.pub.pem"
# By force, too, what is signed was replaced by its signature.
cp m.tdm kept.tdm
ln -s m.tdm link.tdm
for to in m.tdm ./m.tdm link.tdm mine.pem; do
  expect 2 "would replace '$to', which 'sign' reads" "$bin/tandem" sign m.tdm --key=mine.pem -o "$to" --force
done
expect 0 '' cmp m.tdm kept.tdm
expect 0 'PRIVATE KEY' cat mine.pem

# Any byte, of a file whose checksums need not fit: the signature is looked at first.
cp m.tdm whole.tdm
size=$(stat -c %s m.tdm)
for at in 0 9 64 4096 $((size / 2)) $((size - 1)); do
  cp whole.tdm m.tdm
  byte=$(od -An -tu1 -j"$at" -N1 m.tdm)
  printf "\\x$(printf %02x $((byte ^ 1)))" | dd of=m.tdm bs=1 seek="$at" conv=notrunc status=none
  expect 1 "'m.tdm' is refused" bench mine.pub.pem
done
head -c $((size - 1)) whole.tdm >m.tdm
expect 1 "'m.tdm' is refused" bench mine.pub.pem
cp whole.tdm m.tdm
for at in 0 31 32 63; do
  cp first.sig m.tdm.sig
  byte=$(od -An -tu1 -j"$at" -N1 m.tdm.sig)
  printf "\\x$(printf %02x $((byte ^ 128)))" | dd of=m.tdm.sig bs=1 seek="$at" conv=notrunc status=none
  expect 1 "'m.tdm' is refused" bench mine.pub.pem
done
{ cat first.sig; printf x; } >m.tdm.sig
expect 1 'a signature has 64 bytes' bench mine.pub.pem
cp first.sig m.tdm.sig
expect 0 '' bench mine.pub.pem

# OpenSSL's own program agrees, in both directions.
if command -v openssl >/dev/null; then
  expect 0 'Verified Successfully' openssl pkeyutl -verify -pubin -inkey mine.pub.pem -rawin -in m.tdm -sigfile m.tdm.sig
  openssl genpkey -algorithm ed25519 -out its.pem
  openssl pkey -in its.pem -pubout -out its.pub.pem
  openssl pkeyutl -sign -inkey its.pem -rawin -in m.tdm -out m.tdm.sig
  expect 0 '' bench its.pub.pem
  openssl genrsa -out rsa.pem 2048 2>/dev/null
  expect 1 'expected a secret key of Ed25519' "$bin/tandem" sign m.tdm --key=rsa.pem
fi
# No key goes into an artifact.
expect 1 '' grep -q 'PRIVATE KEY' m.tdm
finish
