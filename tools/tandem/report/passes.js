// What each pass of the compilation did: ops before and after, and its time.

const kNoPasses = 'This page was made of an artifact alone, which does not ' +
  'say how it was compiled: neither which passes ran nor how long they took. ' +
  'A report of the model does: tandem inspect MODEL --html, or tandem ' +
  'compile --report.';

function phaseBar() {
  const parts = facts.phase_seconds.map(one => ({
    name: one.phase, value: one.seconds, text: secondsText(one.seconds)}));
  const whole = parts.reduce((sum, part) => sum + part.value, 0);
  return [make('h2', {}, `Time by phase: ${secondsText(whole)}`),
          partsBar(parts, 'Time of the compilation by phase')];
}

function passes() {
  const rows = facts.passes;
  if (!rows) return make('p', {}, kNoPasses);
  const ops = value => value === undefined ? '-' : value.toLocaleString('en');
  const change = row => row.ops_after - row.ops_before || 0;
  const isTimed = facts.phase_seconds !== undefined;
  const hasParts = rows.some(row => row.part);
  const isCounted = rows.every(row => row.ops_before !== undefined);
  return [
    isTimed ? phaseBar() : null,
    make('h2', {}, 'Passes'),
    make('p', {class: 'soft'}, 'In the order in which they ran. A pass on ' +
      'functions counts the ops in all of them, and its time is the sum over ' +
      'them, of which several may go at a time. Times are of the compilation ' +
      'that made this page, and differ each time. ' + (isCounted ? '' :
      'Ops are not counted (-) where kernels are code that an earlier ' +
      'compilation may have kept: with --kernel-cache=off they are.')),
    table({
      caption: 'Passes; press a name for what it is for', rows,
      search: true, more: row => make('p', {}, row.purpose || 'A pass of MLIR.'),
      columns: [
        {name: 'pass', get: row => row.pass},
        {name: 'phase', get: row => row.phase},
        ...(hasParts ? [{name: 'of', get: row => row.part || 'all'}] : []),
        {name: 'ran on', right: true, get: row => row.runs || 0,
         show: row => ops(row.runs)},
        {name: 'ops before', right: true, get: row => row.ops_before || 0,
         show: row => ops(row.ops_before)},
        {name: 'after', right: true, get: row => row.ops_after || 0,
         show: row => ops(row.ops_after)},
        {name: 'change', right: true, get: row => Math.abs(change(row)),
         show: row => row.ops_before === undefined ? '-'
           : (change(row) > 0 ? '+' : '') + change(row).toLocaleString('en')},
        ...(isTimed ? [{name: 'time', right: true, get: row => row.seconds,
                        show: row => seconds(row.seconds)}] : []),
      ]}),
  ];
}
