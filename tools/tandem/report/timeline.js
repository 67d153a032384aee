// When what of a step runs: simulated, and recorded where a profile is there.
// A line for each stream of each rank, or for each thread; time to the right.

const kRow = 26, kTasksDrawn = 1500, kSide = 235;

// The pass of each task of the kernels' stream, where the tasks are the
// launches of one program whose plan is known.
function passesOfTasks(stream, name) {
  const program = programs().find(one => one.name === 'step');
  if (!program || !plannedProgram(program)) return [];
  const names = program.launches.map(launchName);
  return stream.tasks.length === names.length &&
    stream.tasks.every(([what], i) => name(what) === names[i])
    ? names.map((_, i) => launchOrigin(program, i).pass) : [];
}

// {rows: [{name, tasks: [{name, kind, start, seconds, bytes, waits}]}], end}.
function simulatedRows(timeline) {
  const name = at => timeline.names[at];
  const rows = timeline.ranks.flatMap(rank => rank.streams.map(stream => {
    const passes = passesOfTasks(stream, name);
    return {
      name: `${rank.name}: ${stream.name}`,
      tasks: stream.tasks.map(
        ([what, kind, start, time, bytes, ...waits], i) => ({
          name: name(what), kind: name(kind), pass: passes[i],
          start: start / 1e9, seconds: time / 1e9, bytes,
          waits: waits.map(name)}))};
  }));
  return {rows, end: timeline.seconds};
}

// Launches one after the other, as the runtime starts them; in each, a thread
// works for its own time, and waits for the others.
function recordedRows(profile) {
  const threads = Math.max(...profile.launches.map(
    launch => (launch.threads || []).length));
  const rows = Array.from({length: Math.max(threads, 1)}, (_, i) => ({
    name: threads ? `thread ${i}` : profile.device, tasks: []}));
  let start = 0;
  for (const launch of profile.launches) {
    rows.forEach((row, i) => {
      const time = (launch.threads || [])[i];
      row.tasks.push({
        name: launch.kernel, kind: launch.pass || 'kernel', start, waits: [],
        // By itself a median may be longer than that of the whole launch.
        seconds: Math.min(time === undefined ? Infinity : time,
                          launch.seconds.median)});
    });
    start += launch.seconds.median;
  }
  return {rows, end: start};
}

function taskText(row, task) {
  return `${row.name}: ${task.name}; ${secondsText(task.seconds)} from ` +
    `${secondsText(task.start)} on; ${task.kind}` +
    (task.pass ? ` of the pass ${task.pass}` : '') +
    (task.bytes ? `, ${bytesText(task.bytes)} of a rank` : '') +
    (task.waits.length ? `; waits for ${[...new Set(task.waits)].join(', ')} ` +
      'on another stream' : '');
}

// What is too short to be seen is one box with what is beside it.
function boxesOf(tasks, from, to, width) {
  const least = (to - from) / width / 2, boxes = [];
  for (const task of tasks) {
    const end = task.start + task.seconds;
    if (!task.seconds || end < from || task.start > to) continue;
    const last = boxes[boxes.length - 1];
    if (last && task.kind === last.kind && end - last.start < 2 * least)
      last.end = end;
    else boxes.push({task, kind: task.kind, start: task.start, end});
  }
  return boxes.slice(0, kTasksDrawn);
}

function schedule(label, {rows, end}) {
  const kinds = [...new Set(rows.flatMap(
    row => row.tasks.map(task => task.kind)))];
  const height = rows.length * kRow + 24;
  const right = kWidth - 10;
  let from = 0, to = end, at = {row: 0, task: -1};
  const said = make('p', {class: 'said', 'aria-live': 'polite'},
    'Point at a box, or go through them with the arrow keys: to the sides ' +
    'along a line, up and down between lines.');
  const picture = draw('svg', {
    viewBox: `0 0 ${kWidth} ${height}`, role: 'application', tabindex: 0,
    class: 'scrolled', 'aria-label': label,
  });
  const x = time => kSide + (time - from) / (to - from) * (right - kSide);
  let drawn = new Map();

  function refresh() {
    drawn = new Map();
    const lines = rows.map((row, i) => [
      draw('text', {x: 0, y: i * kRow + 16}, row.name.length > 34
        ? row.name.slice(0, 33) + '…' : row.name, draw('title', {}, row.name)),
      boxesOf(row.tasks, from, to, right - kSide).map(box => {
        const begin = Math.max(x(box.start), kSide);
        const item = draw('rect', {
          x: begin, y: i * kRow + 2, height: kRow - 6,
          width: Math.max(Math.min(x(box.end), right) - begin, 0.5),
          class: 'item c' + kinds.indexOf(box.kind) % 10});
        drawn.set(item, {row: i, task: row.tasks.indexOf(box.task)});
        return item;
      })]);
    picture.replaceChildren(...lines.flat(2),
      draw('line', {x1: kSide, x2: right, y1: height - 20, y2: height - 20,
                    class: 'axis'}),
      draw('text', {x: kSide, y: height - 5}, secondsText(from)),
      draw('text', {x: right, y: height - 5, 'text-anchor': 'end'},
           secondsText(to)));
  }

  function choose(next) {
    const row = rows[next.row];
    const task = Math.min(Math.max(next.task, 0), row.tasks.length - 1);
    at = {row: next.row, task};
    if (task < 0) return;
    for (const [item, place] of drawn)
      item.classList.toggle('chosen',
                            place.row === at.row && place.task === task);
    said.textContent = taskText(row, row.tasks[task]);
  }

  function look(middle, width) {
    const wide = Math.min(Math.max(width, end / 1e5), end);
    from = Math.min(Math.max(middle - wide / 2, 0), end - wide);
    to = from + wide;
    refresh();
  }

  function onKey(event) {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    const side = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (step) choose({row: at.row, task: at.task + step});
    else if (side) {
      const row = Math.min(Math.max(at.row + side, 0), rows.length - 1);
      const now = rows[at.row].tasks[Math.max(at.task, 0)];
      const found = rows[row].tasks.findIndex(
        task => task.start + task.seconds >= (now ? now.start : 0));
      choose({row, task: found < 0 ? rows[row].tasks.length - 1 : found});
    } else return;
    event.preventDefault();
    const task = rows[at.row].tasks[at.task];
    if (task && (task.start < from || task.start > to)) {
      look(task.start, to - from);
      choose(at);
    }
    for (const [item, place] of drawn)
      if (place.row === at.row && place.task === at.task) intoSight(item);
  }

  picture.addEventListener('mouseover', event => {
    const found = drawn.get(event.target);
    if (found) choose(found);
  });
  picture.addEventListener('keydown', onKey);
  refresh();
  const press = (name, act) => make('button', {type: 'button', click: act},
                                    name);
  const middle = () => (from + to) / 2, width = () => to - from;
  return [legend(kinds), make('div', {class: 'tools'},
    press('Closer', () => look(middle(), width() / 4)), ' ',
    press('Wider', () => look(middle(), width() * 4)), ' ',
    press('Earlier', () => look(middle() - width() / 2, width())), ' ',
    press('Later', () => look(middle() + width() / 2, width()))),
    widePicture(picture), said];
}

function rankTables(timeline) {
  const parts = [['kernels that compute', 'arithmetic'],
    ['that move bytes', 'memory'], ['that are short', 'launches'],
    ['exposed communication', 'exposed'], ['pipeline bubble', 'bubble']];
  const exchanges = timeline.ranks.flatMap(rank => rank.exchanges.map(
    one => ({...one, rank: rank.name})));
  return [table({
    caption: 'Where the time of a rank goes', rows: timeline.ranks,
    columns: [{name: 'rank', get: rank => rank.name},
      ...parts.map(([name, key]) => ({
        name, right: true, get: rank => rank[key],
        show: rank => seconds(rank[key])}))]}),
  table({
    caption: 'Collectives and messages', rows: exchanges, sortBy: 4,
    columns: [
      {name: 'what', get: row => row.what}, {name: 'of', get: row => row.rank},
      {name: 'times', right: true, get: row => row.count},
      {name: 'bytes', right: true, get: row => row.bytes,
       show: row => bytes(row.bytes)},
      {name: 'time', right: true, get: row => row.seconds,
       show: row => seconds(row.seconds)},
      {name: 'algorithm', get: row => row.algorithm},
      {name: 'ranks', right: true, get: row => row.ranks},
    ]})];
}

function simulatedShares() {
  const step = programs().find(program => program.name === 'step');
  const shares = step && passShares(step);
  return shares && make('p', {}, `Of the kernels' time: ${shares}.`);
}

function timelines() {
  const timeline = (facts.timeline || [])[shown.target];
  const profile = facts.measured;
  const recorded = profile ? [
    make('h2', {}, `${profile.program}, recorded`),
    make('p', {class: 'soft'}, 'The median of each launch, one after the ' +
      'other. Times are medians, of a launch and of each thread in it.'),
    schedule('Recorded launches by thread', recordedRows(profile))] : [];
  if (!timeline || timeline.problem)
    return [...recorded, make('h2', {}, 'A step, simulated'),
      make('p', {}, 'It has no timeline: ' +
        (timeline ? timeline.problem : 'it was not asked for') + '.')];
  return [...recorded, make('h2', {}, `A step, simulated: ` +
      secondsText(timeline.seconds)),
    make('p', {class: 'soft'}, `On ${timeline.all_ranks} ` +
      `rank${timeline.all_ranks === 1 ? '' : 's'} of a typical machine ` +
      `(${timeline.device}), one batch; ranks that do the same are drawn ` +
      'once. A kernel runs on all threads of its rank. Collectives run on ' +
      'streams of their own where a device has them, and what needs their ' +
      "result waits for them. 'tandem simulate --trace=F.json' writes it for " +
      'Perfetto, and has other machines.'),
    simulatedShares(),
    schedule('Simulated streams of a step', simulatedRows(timeline)),
    rankTables(timeline)];
}
