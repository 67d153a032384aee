// Which kernels compute in which type.

function precision() {
  const program = chosenProgram();
  const types = new Map();
  for (const row of kernelRows(program)) {
    const name = row.kernel.dtype || 'f32';
    const sum = types.get(name) || {name, launches: 0, flops: 0, bytes: 0,
                                    seconds: 0};
    sum.launches += row.launches;
    sum.flops += row.launches * row.kernel.flops;
    sum.bytes += row.launches * row.kernel.bytes;
    sum.seconds += totalOf(row);
    types.set(name, sum);
  }
  const kept = new Map();
  for (const value of values()) {
    const sum = kept.get(value.dtype) || {name: value.dtype, count: 0,
                                          bytes: 0};
    sum.count += 1;
    sum.bytes += bytesOf(value.dtype, value.shape);
    kept.set(value.dtype, sum);
  }
  return [
    make('h2', {}, `Types of the kernels of ${program.name}`),
    make('p', {class: 'soft'}, 'A kernel counts with the op in it that ' +
      'computes most; products of f16 and bf16 are added in f32. ' +
      "'tandem inspect MODEL --types' says why each op has its type."),
    table({
      caption: 'By type', rows: [...types.values()], sortBy: 4,
      columns: [
        {name: 'type', kind: 'type', get: row => row.name},
        {name: 'launches', right: true, get: row => row.launches},
        {name: 'FLOP', right: true, get: row => row.flops,
         show: row => count(row.flops)},
        {name: 'bytes', right: true, get: row => row.bytes,
         show: row => bytes(row.bytes)},
        {name: 'predicted', right: true, get: row => row.seconds,
         show: row => seconds(row.seconds)},
      ]}),
    make('h2', {}, 'Types of values'),
    table({
      caption: 'Inputs, parameters, states and outputs',
      rows: [...kept.values()], sortBy: 2,
      columns: [
        {name: 'type', kind: 'type', get: row => row.name},
        {name: 'values', right: true, get: row => row.count},
        {name: 'bytes', right: true, get: row => row.bytes,
         show: row => bytes(row.bytes)},
      ]}),
  ];
}
