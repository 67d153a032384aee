// What crosses from the forward to the backward, and what is computed again.

function savedRows() {
  const forward = programs().find(program => program.name === 'forward');
  const backward = programs().find(program => program.name === 'backward');
  if (!forward) return [];
  const about = new Map(((partition() || {}).saved || []).map(
    saved => [saved.name, saved]));
  const readers = readersByName(backward);
  return forward.results.filter(slot => slot.role === 'saved').map(slot => ({
    slot, about: about.get(slot.name),
    bytes: bytesOf(slot.dtype, slot.shape),
    readers: [...readers.get(slot.name) || []]}));
}

// For each saved argument of the backward, by its name, the launches that read
// it, until one writes another value to its buffer.
function readersByName(backward) {
  const readers = new Map(), overwritten = new Set();
  const slotOf = (launch, at) => {
    const buffer = backward.buffers[launch.buffers[at]];
    const slot = buffer.in === 'argument' && backward.arguments[buffer.index];
    return slot && slot.role === 'saved' ? slot.name : undefined;
  };
  for (const launch of backward ? backward.launches : []) {
    for (const at of launch.reads) {
      const name = slotOf(launch, at);
      if (name === undefined || overwritten.has(name)) continue;
      const names = readers.get(name) || new Set();
      readers.set(name, names.add(launchName(launch)));
    }
    for (const at of launch.writes) overwritten.add(slotOf(launch, at));
  }
  return readers;
}

// The kernels of the backward that an op is in that is computed again, where
// the plan is known; `*` where a kernel computes no gradient beside it.
function kernelsOfRepeated() {
  const backward = programs().find(program => program.name === 'backward');
  const planned = backward && plannedProgram(backward);
  if (!planned || !planned.ops) return null;
  const keyOf = op => [opText(op.op), op.path || '', op.where || ''].join('|');
  const shared = new Set(planned.ops.filter(op => op.gradient_of !== undefined)
    .map(op => op.launch));
  const found = new Map();
  for (const op of planned.ops) {
    if (op.launch === undefined || op.pass !== 'recompute') continue;
    const names = found.get(keyOf(op)) || new Set();
    names.add(launchName(backward.launches[op.launch]) +
      (shared.has(op.launch) ? '' : ' *'));
    found.set(keyOf(op), names);
  }
  return op => [...found.get(keyOf(op)) || []].join(', ');
}

function madeBy(about) {
  if (!about) return '';
  return opText(about.op) + (about.where ? ' at ' + about.where : '');
}

function saved() {
  const rows = savedRows(), found = partition();
  if (!found && !rows.length)
    return make('p', {}, 'There is no forward with a backward.');
  const total = rows.reduce((sum, row) => sum + row.bytes, 0);
  const repeated = (found || {}).repeated || [];
  const kernels = kernelsOfRepeated();
  const again = repeated.reduce((sum, op) => sum + op.seconds, 0);
  return [
    make('h2', {}, 'Saved for the backward'),
    make('p', {}, `${rows.length} values, `, bytes(total, 'saved'), '.'),
    table({
      caption: 'Saved values', rows, sortBy: 1,
      columns: [
        {name: 'value', get: row => row.slot.name},
        {name: 'bytes', right: true, get: row => row.bytes,
         show: row => bytes(row.bytes)},
        {name: 'module', kind: 'text',
         get: row => (row.about || {}).path || ''},
        {name: 'type', kind: 'type',
         get: row => typeText(row.slot.dtype, row.slot.shape)},
        {name: 'again', right: true,
         get: row => row.about ? row.about.seconds : 0,
         show: row => row.about ? seconds(row.about.seconds) : ''},
        {name: 'reason', kind: 'text', get: row => row.slot.reason || ''},
        {name: 'made by', kind: 'text', get: row => madeBy(row.about)},
        {name: 'read by', kind: 'text', get: row => row.readers.join(', ')},
        {name: 'in', get: row => row.slot.host ? 'host' : 'device'},
      ]}),
    make('h2', {}, 'Computed again in the backward'),
    make('p', {}, `${repeated.length} ops, `, seconds(again, 'again'),
         ' expected within kernels of the backward.'),
    table({
      caption: 'Ops of the forward that the backward runs again',
      rows: repeated, sortBy: 1,
      columns: [
        {name: 'op', get: op => madeBy(op)},
        {name: 'time', right: true, get: op => op.seconds,
         show: op => seconds(op.seconds)},
        {name: 'bytes', right: true, get: op => op.bytes,
         show: op => bytes(op.bytes)},
        {name: 'module', kind: 'text', get: op => op.path || ''},
        {name: 'reason', kind: 'text', get: op => op.reason},
        ...kernels ? [{name: 'in kernels', kind: 'text', get: kernels}] : [],
      ]}),
    kernels && make('p', {}, '* computes no gradient beside it.'),
    budgetCurve(),
  ];
}
