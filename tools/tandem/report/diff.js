// The page of a comparison: a table for each list of it that has rows.

const kNone = '-';

const sideCell = (side, key, show) =>
  side && side[key] !== null && side[key] !== undefined ? show(side[key])
    : kNone;

function changeText(a, b) {
  if (a === b) return 'same';
  return a ? `${b > a ? '+' : ''}${((b - a) / a * 100).toFixed(1)} %` : 'new';
}

const signed = (value, show) =>
  (value < 0 ? '-' : '+') + show(Math.abs(value));

const plainText = value => value === null ? kNone
  : typeof value === 'string' ? value : JSON.stringify(value);

const diffPlace = row => (row.a || row.b).where || '';
const diffProgram = row => row.program + (row.size ? ` (${row.size})` : '');
const diffKernel = row => row.summary || row.ops.join(', ');
const keptText = side => side ? 'yes: ' + side.reason +
  (side.host ? ", in the host's memory" : '') : 'no';

// What has effect `key` is a number to sort by, and shown with its sign.
const effectColumn = (name, key, show) => ({
  name, right: true, get: row => Math.abs(row[key]),
  show: row => signed(row[key], show)});

function bothColumns(what, key, show) {
  return ['a', 'b'].map(side => ({
    name: `${what} ${side}`, right: true,
    get: row => row[side] && row[side][key] || 0,
    show: row => sideCell(row[side], key, show)}));
}

const plainColumns = first => [
  {name: first, get: row => row.name},
  {name: 'a', kind: 'text', get: row => plainText(row.a)},
  {name: 'b', kind: 'text', get: row => plainText(row.b)},
];

function diffStep(step) {
  const rows = [['predicted time', 'seconds', secondsText],
    ['planned peak', 'peak', bytesText], ['FLOP', 'flops', countText],
    ['bytes moved', 'bytes', bytesText], ['kernels', 'kernels', countText]];
  return make('div', {class: 'cards'}, rows.filter(
    ([, key]) => typeof step.a[key] === 'number' &&
      typeof step.b[key] === 'number').map(([name, key, show]) => card(
        changeText(step.a[key], step.b[key]),
        `${name}: ${show(step.a[key])}, then ${show(step.b[key])}`)));
}

function cutText(cuts) {
  return Object.entries(cuts).map(
    ([cut, times]) => times === 1 ? cut : `${cut} (${times} x)`).join('; ');
}

function diffTables(target) {
  const part = (title, key, columns) => target[key].length
    ? [make('h2', {}, title), table({caption: title, rows: target[key],
                                     columns})] : [];
  return [
    part('The compilation', 'options', plainColumns('')),
    part('Values', 'values', [
      ...plainColumns('value'), effectColumn('change', 'bytes', bytesText)]),
    part('Memory of a step', 'memory', [
      {name: '', get: row => row.name},
      effectColumn('change', 'bytes', bytesText),
      ...['a', 'b'].map(side => ({name: side, right: true,
        get: row => row[side] || 0,
        show: row => row[side] === null ? kNone : bytes(row[side])}))]),
    part('Programs', 'programs', [
      {name: 'program', get: diffProgram},
      effectColumn('change', 'seconds', secondsText),
      ...bothColumns('time', 'seconds', seconds),
      ...bothColumns('most in use', 'peak_bytes', bytes),
      {name: 'bound by', get: row => [row.a, row.b].map(
        side => side ? side.bound : kNone).join(', then ')}]),
    part('Kernels, of all their launches in a program', 'kernels', [
      {name: 'kernel', kind: 'text', get: diffKernel},
      {name: 'program', get: diffProgram},
      effectColumn('change', 'seconds', secondsText),
      ...bothColumns('launches', 'launches', count),
      ...bothColumns('time', 'seconds', seconds),
      {name: 'ops', kind: 'text', get: row => row.ops.join(', ')}]),
    part('Schedules', 'schedules', [
      {name: 'kernel', kind: 'text', get: diffKernel},
      {name: 'program', get: diffProgram},
      {name: 'time', right: true, get: row => row.seconds,
       show: row => seconds(row.seconds)},
      {name: 'a', kind: 'text', get: row => cutText(row.a)},
      {name: 'b', kind: 'text', get: row => cutText(row.b)}]),
    part('Ops in kernels', 'ops', [
      {name: 'op', get: row => row.op}, {name: 'program', get: diffProgram},
      effectColumn('change', 'more', countText),
      ...['a', 'b'].map(side => ({name: side, right: true,
                                  get: row => row[side]}))]),
    part('Saved for the backward', 'saved', [
      {name: 'value', kind: 'text',
       get: row => `${row.op} ${row.type} at ${diffPlace(row)}`},
      effectColumn('bytes', 'bytes', bytesText),
      {name: 'a', kind: 'text', get: row => keptText(row.a)},
      {name: 'b', kind: 'text', get: row => keptText(row.b)}]),
    part('Computed again in the backward', 'repeated', [
      {name: 'op', kind: 'text', get: row => `${row.op} at ${diffPlace(row)}`},
      effectColumn('change', 'seconds', secondsText),
      {name: 'a', kind: 'text', get: row => keptText(row.a)},
      {name: 'b', kind: 'text', get: row => keptText(row.b)}]),
  ];
}

function diffTarget(target) {
  const name = target.a === target.b ? target.a
    : `${target.a}, then ${target.b}`;
  return make('section', {},
    make('h2', {}, 'For ' + name),
    make('ul', {}, target.notes.map(note => make('li', {}, note))),
    diffStep(target.step), diffTables(target));
}

function beginDiff() {
  const {a, b} = facts;
  document.title = `${a.file} and ${b.file}: a comparison of tandem`;
  document.getElementById('title').textContent = 'What changed';
  document.getElementById('subtitle').textContent =
    `a: ${a.file} (${bytesText(a.bytes)}), b: ${b.file} ` +
    `(${bytesText(b.bytes)})`;
  document.getElementById('tabs').remove();
  fill(document.getElementById('panels'), {}, [
    facts.equal ? make('p', {id: 'equal'}, 'They are equal, byte by byte.')
      : null,
    facts.alone.map(one => make('p', {},
      `Only ${one.in} has code for ${one.target}.`)),
    facts.equal ? null : facts.targets.map(diffTarget),
    facts.sections.length ? [make('h2', {}, 'Sections of the file that differ'),
      table({caption: 'Sections', rows: facts.sections,
             columns: plainColumns('section')})] : null,
  ]);
  printsTables();
}
