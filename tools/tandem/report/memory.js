// The plan of a program's memory: its values in the arena over its launches.

const kWidth = 1000, kHeight = 380, kLeft = 70, kBottom = 30, kMost = 1000;

function lifeText(program, life) {
  const names = list => list.map(
    i => `${launchName(program.launches[i])} (${i})`).join(', ') || 'nobody';
  const {path} = life.writers.length
    ? launchOrigin(program, life.writers[0]) : {};
  return `${path ? path + ': ' : ''}${bytesText(life.bytes)} at ` +
    `${life.offset}; launches ${life.first} to ${life.last}; written by ` +
    `${names(life.writers)}; read by ${names(life.readers)}`;
}

const makerKind = (program, life) =>
  life.writers.length ? launchKind(program.launches[life.writers[0]]) : 'none';

// Arrow keys go from value to value, as the pointer does.
function timeline(program, lives, level, kinds) {
  const launches = Math.max(program.launches.length, 1);
  const top = Math.max(program.arena_bytes, 1);
  const x = i => kLeft + i / launches * (kWidth - kLeft - 10);
  const y = offset => kHeight - kBottom -
    offset / top * (kHeight - kBottom - 10);
  const said = make('p', {class: 'said', 'aria-live': 'polite'},
    'Point at a value, or go through them with the arrow keys.');
  const drawn = [...lives].sort((a, b) => b.bytes - a.bytes).slice(0, kMost)
    .sort((a, b) => a.first - b.first || a.offset - b.offset);
  const items = drawn.map(life => draw('rect', {
    x: x(life.first), y: y(life.offset + life.bytes),
    width: x(life.last + 1) - x(life.first),
    height: Math.max(y(life.offset) - y(life.offset + life.bytes), 0.5),
    class: 'item c' + kinds.indexOf(makerKind(program, life)) % 10,
  }));
  let at = -1;
  function choose(next) {
    if (at >= 0) items[at].classList.remove('chosen');
    at = Math.min(Math.max(next, 0), items.length - 1);
    if (at < 0) return;
    items[at].classList.add('chosen');
    said.textContent = lifeText(program, drawn[at]);
  }
  const fullest = level.indexOf(Math.max(...level));
  const marks = [0, 0.25, 0.5, 0.75, 1].map(part => [
    draw('line', {x1: kLeft, x2: kWidth - 10, y1: y(part * top),
                  y2: y(part * top), class: 'axis'}),
    draw('text', {x: kLeft - 6, y: y(part * top) + 4, 'text-anchor': 'end'},
         bytesText(Math.round(part * top)))]);
  const line = level.map((bytes, i) =>
    `${x(i)},${y(bytes)} ${x(i + 1)},${y(bytes)}`).join(' ');
  const picture = draw('svg', {
    viewBox: `0 0 ${kWidth} ${kHeight}`, role: 'application', tabindex: 0,
    class: 'scrolled', 'aria-label': `The arena of ${program.name}: ` +
      'offsets upwards, launches to the right',
    mouseover: event => {
      const found = items.indexOf(event.target);
      if (found >= 0) choose(found);
    },
    keydown: event => {
      const step = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1,
                    ArrowUp: -1}[event.key];
      if (!step) return;
      event.preventDefault();
      choose(at + step);
      intoSight(items[at]);
    },
  }, marks, items, draw('polyline', {points: line, class: 'level'}),
    draw('line', {x1: x(fullest + 0.5), x2: x(fullest + 0.5), y1: 10,
                  y2: kHeight - kBottom, class: 'fullest'}),
    draw('text', {x: kLeft, y: kHeight - 10}, 'launch 0'),
    draw('text', {x: kWidth - 10, y: kHeight - 10, 'text-anchor': 'end'},
         `launch ${launches - 1}`));
  const left = lives.length - drawn.length;
  return [widePicture(picture), said,
    left > 0 ? make('p', {class: 'soft'}, `${left} smaller values are not ` +
      'drawn; the table has them.') : null];
}

// What is in use where most is.
function whereFullest(program, lives, level) {
  const at = level.indexOf(Math.max(...level));
  const rows = lives.filter(life => life.first <= at && at <= life.last);
  const pathOf = life => life.writers.length
    ? launchOrigin(program, life.writers[0]).path : '';
  const parts = byModule(rows, pathOf, life => life.bytes,
                         depthOf(rows, pathOf));
  for (const part of parts) part.text = bytesText(part.value);
  const few = parts.slice(0, 9);
  const rest = parts.slice(9).reduce((sum, part) => sum + part.value, 0);
  if (rest) few.push({name: 'others', value: rest, text: bytesText(rest)});
  const hasPaths = rows.some(pathOf);
  const bar = hasPaths ? [make('h3', {}, 'The fullest arena by module'),
    partsBar(few, 'Values in the fullest arena by module')] : [];
  return [bar, table({
    caption: `In use at launch ${at} (` +
      `${launchName(program.launches[at])}), where the arena is fullest`,
    rows, sortBy: 1, columns: lifeColumns(program)})];
}

function lifeColumns(program) {
  const names = list => [...new Set(list.map(
    i => launchName(program.launches[i])))];
  const first = life => life.writers.length
    ? launchOrigin(program, life.writers[0]) : {};
  const origin = plannedProgram(program) ? [
    {name: 'from', get: life => first(life).path || first(life).where || ''},
  ] : [];
  return [
    {name: 'written by', kind: 'text',
     get: life => names(life.writers).join(', ')},
    {name: 'bytes', right: true, get: life => life.bytes,
     show: life => bytes(life.bytes)},
    {name: 'offset', right: true, get: life => life.offset},
    {name: 'first', right: true, get: life => life.first},
    {name: 'last', right: true, get: life => life.last}, ...origin,
    {name: 'read by', kind: 'text',
     get: life => names(life.readers).join(', ')},
  ];
}

function useBars() {
  const list = programs();
  const most = Math.max(...list.map(program => program.peak_bytes), 1);
  return draw('svg', {viewBox: `0 0 ${kWidth} ${list.length * 24}`,
                      role: 'img', class: 'scrolled',
                      'aria-label': 'Most in use by program'},
    list.map((program, i) => [
      draw('text', {x: 0, y: i * 24 + 16}, program.name),
      draw('rect', {x: 150, y: i * 24 + 4, height: 16, class: 'c0',
                    width: program.peak_bytes / most * 700}),
      draw('text', {x: 158 + program.peak_bytes / most * 700, y: i * 24 + 16},
           bytesText(program.peak_bytes))]));
}

function memory() {
  const program = chosenProgram(), lives = lifetimes(program);
  const parts = stepMemory() ? [make('h2', {}, 'The peak of a step'),
    partsBar(memoryParts(), 'The peak by category'), arenaNote(),
    halfNote('half-of-memory')] : [];
  const uses = [make('h2', {}, 'Most in use by program'),
    make('p', {class: 'soft'}, 'What is in use in the arena of a program at ' +
      'most, beside its arguments and results: a part of the peak of a step.'),
    widePicture(useBars())];
  const title = make('h2', {}, `The arena of ${program.name}`);
  if (!lives.length)
    return [parts, title, make('p', {}, 'It has none.'), uses];
  const level = levels(program, lives);
  const kinds = [...new Set(lives.map(life => makerKind(program, life)))];
  return [parts, title,
    make('p', {class: 'soft'}, 'A box is a value: it lies at its offset from ' +
      'the launch that writes it to the last that reads it. The line is what ' +
      'is in use; the gap between the line and the top is room between ' +
      'values.'),
    legend(kinds.map(kind => 'made by ' + kind)),
    timeline(program, lives, level, kinds),
    whereFullest(program, lives, level), uses,
    make('h2', {}, 'All values in the arena'),
    table({caption: `Values of ${program.name}`, rows: lives, sortBy: 1,
           columns: lifeColumns(program)})];
}
