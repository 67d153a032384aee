// The kernels of a program against what the machine can do.

// One row a kernel, over all its launches.
function kernelRows(program) {
  const rows = new Map();
  program.launches.forEach((launch, i) => {
    if (launch.kernel === undefined) return;
    const row = rows.get(launch.kernel) || {
      kernel: manifest().kernels[launch.kernel], launches: 0,
      origins: [], cost: summary().kernels[launch.kernel]};
    ++row.launches;
    row.origins.push(launchOrigin(program, i));
    rows.set(launch.kernel, row);
  });
  return [...rows.values()];
}

// What its launches are for: one kernel may be of several passes.
const passesOf = row => kPasses.filter(pass => row.origins.some(
  origin => origin.pass === pass)).join(', ');

const totalOf = row => row.cost.seconds * row.launches;
const intensityOf = row => row.kernel.flops / Math.max(row.kernel.bytes, 1);

// Both axes by powers of ten.
function roofline(rows) {
  const {machine} = summary();
  const points = rows.filter(row => row.kernel.flops && row.kernel.bytes);
  if (!points.length) return make('p', {}, 'No kernel computes.');
  const rateOf = row => row.kernel.flops / row.cost.seconds;
  const log = Math.log10, height = 360, right = kWidth - 10;
  const roofs = [...new Set([machine.products, machine.narrow])];
  const xs = points.map(intensityOf).concat(roofs[0] / machine.bytes);
  const ys = points.map(rateOf).concat(roofs);
  const low = list => Math.floor(log(Math.min(...list)));
  const high = list => Math.ceil(log(Math.max(...list)));
  const [x0, x1, y0, y1] = [low(xs), high(xs) + 1, low(ys), high(ys)];
  const x = value => kLeft + (log(value) - x0) / (x1 - x0) * (right - kLeft);
  const y = value => height - 40 - (log(value) - y0) / (y1 - y0) *
    (height - 55);
  const range = (from, to) => Array.from({length: to - from + 1},
                                         (_, i) => 10 ** (from + i));
  const marks = [
    range(x0, x1).map(value => [
      draw('line', {x1: x(value), x2: x(value), y1: 15, y2: height - 40,
                    class: 'axis'}),
      draw('text', {x: x(value), y: height - 24,
                    'text-anchor': x(value) < right ? 'middle' : 'end'},
           value < 1 ? String(Number(value.toPrecision(1)))
             : countText(value))]),
    range(y0, y1).map(value => [
      draw('line', {x1: kLeft, x2: right, y1: y(value), y2: y(value),
                    class: 'axis'}),
      draw('text', {x: kLeft - 6, y: y(value) + 4, 'text-anchor': 'end'},
           countText(value))]),
    draw('text', {x: (kLeft + right) / 2, y: height - 6,
                  'text-anchor': 'middle'}, 'FLOP for each byte'),
    draw('text', {x: kLeft, y: 11}, 'FLOP/s'),
  ];
  const lines = roofs.map(roof => {
    const knee = roof / machine.bytes, from = 10 ** x0;
    const begin = Math.max(from, 10 ** y0 / machine.bytes);
    return draw('polyline', {class: 'roof', points:
      `${x(begin)},${y(begin * machine.bytes)} ${x(knee)},${y(roof)} ` +
      `${right},${y(roof)}`});
  });
  const kinds = [...new Set(points.map(row => row.kernel.class))];
  const whole = points.reduce((sum, row) => sum + totalOf(row), 0);
  const said = make('p', {class: 'said', 'aria-live': 'polite'},
    'A circle is a kernel, as large as its share of the predicted time. The ' +
    'line is what the machine can do.');
  const biggest = [...points].sort((a, b) => totalOf(b) - totalOf(a))
    .slice(0, kMost);
  const circles = biggest.map(row => draw('circle', {
    cx: x(intensityOf(row)), cy: y(rateOf(row)),
    r: 3 + 22 * Math.sqrt(totalOf(row) / whole), 'fill-opacity': 0.75,
    class: 'item c' + kinds.indexOf(row.kernel.class) % 10}));
  let at = -1;
  function choose(next) {
    if (at >= 0) circles[at].classList.remove('chosen');
    at = Math.min(Math.max(next, 0), circles.length - 1);
    circles[at].classList.add('chosen');
    said.textContent = kernelText(biggest[at], whole);
  }
  return [legend(kinds), widePicture(draw('svg', {
    viewBox: `0 0 ${kWidth} ${height}`, role: 'application', tabindex: 0,
    class: 'scrolled', 'aria-label': 'Kernels under the roof of the machine',
    mouseover: event => {
      const found = circles.indexOf(event.target);
      if (found >= 0) choose(found);
    },
    keydown: event => {
      const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (!step) return;
      event.preventDefault();
      choose(at + step);
      intoSight(circles[at]);
    },
  }, marks, lines, circles)), said];
}

function kernelText(row, whole) {
  return `${row.kernel.symbol}: ${row.kernel.summary || row.kernel.class}; ` +
    `${row.launches} launches, ${secondsText(totalOf(row))} ` +
    `(${percentText(totalOf(row) / whole)}), bound by ` +
    kBounds[row.cost.bound];
}

// The rows of the table that this kernel's schedule was chosen from.
function methodsOf(row) {
  const at = row.origins[0];
  const known = at.methods === undefined ? null
    : plannedTarget(chosenProgram()).methods[at.methods];
  if (!known) return null;
  const verdict = method => method.chosen ? 'chosen'
    : (method.possible ? 'not chosen: ' : 'impossible: ') +
      (method.against || '');
  return make('details', {}, make('summary', {},
    `Why this schedule: ${known.methods.length} ways of ${known.of}`), table({
      caption: 'In the order in which they are asked', rows: known.methods,
      search: false,
      columns: [
        {name: 'method', get: method => method.name},
        {name: 'expected', right: true, get: method => method.seconds || 0,
         show: method => method.seconds === undefined ? '-'
           : seconds(method.seconds)},
        {name: 'verdict', kind: 'text', get: verdict},
        {name: 'scratch', right: true, get: method => method.scratch_bytes || 0,
         show: method => method.scratch_bytes === undefined ? '-'
           : bytes(method.scratch_bytes)},
        {name: 'schedule', kind: 'text', get: method => method.schedule || ''},
        {name: 'what it is', kind: 'text', get: method => method.summary},
      ]}));
}

function kernelMore(row) {
  const {kernel} = row;
  const places = row.origins.filter(origin => origin.path || origin.where)
    .map(({pass, path, where, gradient_of: of}) =>
      (of ? `gradient of ${of}, ` : pass === 'recompute' ? 'run again, ' : '') +
      [path, where].filter(Boolean).join(' at '));
  return [
    places.length ? make('p', {}, 'From: ' + [...new Set(places)].join('; '))
      : null,
    row.origins[0].schedule ? make('p', {}, 'Schedule: ',
      make('code', {}, row.origins[0].schedule)) : null,
    methodsOf(row),
    kernel.summary ? make('p', {}, 'Most work: ', make('code', {},
                                                       kernel.summary)) : null,
    make('p', {}, `${kernel.ops.length} ops: `,
         make('code', {}, kernel.ops.map(opText).join(', '))),
    kernel.scratch_bytes ? make('p', {}, 'Scratch memory of a thread: ',
                                bytes(kernel.scratch_bytes)) : null,
    codeOf(kernel),
    kernel.block ? make('p', {}, `Threads of a block: ` +
                                 kernel.block.join(' x ')) : null,
  ];
}

// Why ops are not in one kernel.
function notFused(program) {
  const rows = ((facts.not_fused || [])[shown.target] || []).filter(
    row => row.program === program.name);
  const title = make('h2', {}, 'Not fused');
  if (!rows.length)
    return [title, make('p', {class: 'soft'}, 'A page of a model says why ' +
      'kernels were not joined, where any were tried.')];
  return [title,
    make('p', {class: 'soft'}, 'Kernels that were tried to be joined, by ' +
      'what spoke against it at last; reasons between the same kinds of ops ' +
      "count together. 'tandem explain MODEL --why-not-fused=OP,OP' answers " +
      'for two ops.'),
    table({
      caption: 'Why ops are in two kernels', rows, sortBy: 3,
      columns: [
        {name: 'an op, as', kind: 'text', get: row => row.a},
        {name: 'and an op, as', kind: 'text', get: row => row.b},
        {name: 'why', kind: 'text', get: row => row.why},
        {name: 'times', right: true, get: row => row.times},
      ]})];
}

function kernels() {
  const program = chosenProgram(), rows = kernelRows(program);
  const {machine} = summary();
  const whole = rows.reduce((sum, row) => sum + totalOf(row), 0) || 1;
  return [
    make('h2', {}, `Kernels of ${program.name}`),
    make('p', {class: 'soft'}, 'Times are predictions, one kernel after the ' +
      `other: ${machine.name}, ${countText(machine.products)}FLOP/s of ` +
      `products in f32, ${bytesText(machine.bytes)}/s.`),
    passShares(program) && make('p', {id: 'passes-of-kernels'},
      `Of the predicted time: ${passShares(program)}.` +
      (program.launches.some((_, i) =>
        launchOrigin(program, i).pass === 'recompute')
        ? ' What the backward runs again is recompute; where its kernel ' +
          'computes a gradient, too, it is of the backward.' : '')),
    roofline(rows), codeNote(),
    table({
      caption: 'Kernels; press a name for what is fused in it', rows,
      sortBy: 2, more: kernelMore,
      columns: [
        {name: 'kernel', get: row => row.kernel.symbol},
        {name: 'launches', right: true, get: row => row.launches},
        {name: 'predicted', right: true, get: totalOf,
         show: row => seconds(totalOf(row))},
        {name: 'share', right: true, get: row => totalOf(row) / whole,
         show: row => percentText(totalOf(row) / whole)},
        ...rows.some(row => passesOf(row)) ? [
          {name: 'pass', get: passesOf}] : [],
        {name: 'bound by', get: row => row.cost.bound},
        {name: 'class', get: row => row.kernel.class},
        {name: 'FLOP', right: true, get: row => row.kernel.flops,
         show: row => count(row.kernel.flops)},
        {name: 'bytes', right: true, get: row => row.kernel.bytes,
         show: row => bytes(row.kernel.bytes)},
        {name: 'FLOP/byte', right: true, get: intensityOf,
         show: row => intensityOf(row).toFixed(2)},
        {name: 'ops', right: true, get: row => row.kernel.ops.length},
      ]}),
    notFused(program),
  ];
}
