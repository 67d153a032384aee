#!/bin/bash
# sbom.sh BUILD SOURCE - the list of what programs are made of has what they link and what
# is compiled into them, twice in the same bytes; and no file that is installed names
# the folder that it was built in, so that another folder gives the same one.
source "$(dirname "$0")/../cli/expect.sh"
build=$1 source=$2
for tool in python3 dpkg-query ninja readelf; do
  command -v $tool >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done
expect 0 '"bomFormat": "CycloneDX"' python3 "$source/tools/sbom" --build="$build"
printf '%s\n' "$out" >"$work/one.json"
for part in 'pkg:deb/debian/libc6@' 'pkg:deb/debian/libstdc..6@' 'pkg:deb/debian/nlohmann-json3-dev@' '"name": "tandem-run"'; do
  grep -q "$part" "$work/one.json" || fail "expected '$part' in the list"
done
grep -q 'libgtest' "$work/one.json" && fail 'the list has what tests alone are made of'
python3 "$source/tools/sbom" --build="$build" | cmp - "$work/one.json" || fail 'two runs have other bytes'
expect 0 '' python3 -m json.tool "$work/one.json"
if python3 -c 'import cyclonedx.validation.json, jsonschema' 2>/dev/null; then
  expect 0 '^None$' python3 -c "
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
print(JsonStrictValidator(SchemaVersion.V1_5).validate_str(open('$work/one.json').read()))"
fi
expect 1 "has none of bin/tandem-run" python3 "$source/tools/sbom" --build="$work"
for file in "$build"/bin/tandem-run "$build"/bin/tandem "$build"/lib/libtandem.so.1 "$build"/lib/libtandem-*.so; do
  [ -e "$file" ] || continue
  grep -qF "$source" "$file" && fail "'$file' names the folder '$source'"
done
finish
