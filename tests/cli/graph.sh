#!/bin/bash
# graph.sh BIN EXAMPLES - the programs that compose compiled models at run time
# reach what they are to reach, with the runtime alone.
source "$(dirname "$0")/expect.sh"
bin=$1 models=$2/graph
cd "$work" || exit 1
expect 0 '' "$bin/tandem" compile "$models/generator.json" -o generator.tdm
expect 0 '' "$bin/tandem" compile "$models/critic.json" -o critic.tdm --order=2
expect 0 'in the end: points around' \
  "$bin/graph-gan" generator.tdm critic.tdm
expect 0 'gradients were clipped' "$bin/graph-frozen" generator.tdm critic.tdm
expect 0 'penalty' "$bin/graph-penalty" critic.tdm
# Without second derivatives, the message says how to get them.
expect 0 '' "$bin/tandem" compile "$models/critic.json" -o once.tdm
expect 3 'compile it with --order=2' "$bin/graph-penalty" once.tdm
for program in gan frozen penalty; do
  readelf -d "$bin/graph-$program" | grep NEEDED | grep -E 'LLVM|MLIR' &&
    fail "graph-$program needs the compiler"
done
finish
