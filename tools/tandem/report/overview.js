// What it is, how much of everything, and what stands out.

const kCategories = [
  ['parameters', 'parameters'], ['states', 'states'],
  ['constants', 'constants'], ['inputs', 'inputs'], ['outputs', 'outputs'],
  ['gradients', 'gradients'], ['saved', 'saved'], ['staged', 'staged updates'],
  ['prepared', 'prepared'], ['arena', 'arena'],
];

function memoryParts() {
  const memory = stepMemory();
  return kCategories.filter(([key]) => memory[key]).map(([key, name]) => ({
    name, value: memory[key], text: bytesText(memory[key])}));
}

// Where saved values and gradients are, which one expects in the bar.
function arenaNote() {
  return programs().some(program => program.name === 'step')
    ? make('p', {class: 'soft'}, 'Forward, backward and update are one ' +
      'program, step: saved values and gradients lie in its arena.') : null;
}

// The programs of which one step consists.
function stepPrograms() {
  const names = programs().map(program => program.name);
  const wanted = names.includes('step') ? ['step']
    : names.includes('backward') ? ['forward', 'backward'] : [names[0]];
  return programs().filter(program => wanted.includes(program.name));
}

function sumOfStep(key) {
  return stepPrograms().reduce(
    (sum, program) => sum + summaryOf(program)[key], 0);
}

const kBounds = {
  arithmetic: 'arithmetic', memory: 'moving bytes to and from memory',
  launch: 'starting kernels',
};

function boundOfStep() {
  const keys = Object.keys(kBounds);
  return keys.reduce((most, key) =>
    sumOfStep(key) > sumOfStep(most) ? key : most);
}

function warnings() {
  const list = [];
  const written = manifest().mutated_in_backward.map(i => values()[i].name);
  if (written.length)
    list.push(`The backward writes inputs that require a gradient, so ` +
      `create_graph is refused: ${written.join(', ')}.`);
  const given = values().filter(value => !value.init &&
    (value.role === 'param' || value.role === 'state'));
  if (given.length)
    list.push(`${given.length} parameters and states have no initial value: ` +
      `--params gives them.`);
  const time = sumOfStep('seconds');
  if (sumOfStep('launch') > time / 4)
    list.push(`${percentText(sumOfStep('launch') / time)} of the predicted ` +
      `time is in kernels that start longer than they compute: they are ` +
      `small.`);
  const others = sumOfStep('collectives') + sumOfStep('copies');
  if (others)
    list.push(`${others} collectives and copies are in no predicted time ` +
      `here; 'tandem simulate' has them.`);
  return list;
}

function overview() {
  const {machine} = summary();
  const names = stepPrograms().map(program => program.name).join(' and ');
  const memory = stepMemory(), peak = summary().peaks[shown.size];
  const threadBytes = summary().thread_bytes[shown.size];
  const machineText = machine.name === 'cpu'
    ? 'a typical CPU of the target' : machine.name;
  return [
    make('div', {class: 'cards'},
      card(count(summary().parameters, 'parameters'), 'parameters'),
      card(count(summary().trained, 'trained'), 'of them trained'),
      peak === null ? null
        : card(bytes(peak, 'peak'), 'peak of a training step'),
      peak === null || !threadBytes ? null
        : card(bytes(threadBytes, 'thread'), 'beside it for each thread'),
      card(count(sumOfStep('flops'), 'flops'), `FLOP in ${names}`),
      card(bytes(sumOfStep('bytes'), 'bytes'), `moved by kernels in ${names}`),
      card(count(sumOfStep('kernels'), 'kernels'), `kernels in ${names}`),
      card(seconds(sumOfStep('seconds'), 'seconds'),
           `predicted for ${names} on ${machineText}`)),
    make('p', {id: 'bound'}, `Most of the predicted time is in kernels that ` +
      `are bound by ${kBounds[boundOfStep()]}: ` +
      percentText(sumOfStep(boundOfStep()) / sumOfStep('seconds')) + '.'),
    make('ul', {class: 'warnings'},
      warnings().map(text => make('li', {}, text))),
    memory ? [make('h2', {}, 'Memory of a step'),
              partsBar(memoryParts(), 'The peak by category'),
              arenaNote(), halfNote('half')] : null,
    make('h2', {}, 'Programs'),
    programsTable(),
    make('h2', {}, 'Values'),
    table({
      caption: 'Inputs, parameters, states and outputs', rows: values(),
      columns: [
        {name: 'name', get: value => value.name},
        {name: 'role', get: value => value.role},
        {name: 'type', kind: 'type',
         get: value => typeText(value.dtype, value.shape)},
        {name: 'bytes', right: true,
         get: value => bytesOf(value.dtype, value.shape),
         show: value => bytes(bytesOf(value.dtype, value.shape))},
        {name: 'gradient', get: value => value.requires_grad ? 'yes' : ''},
        {name: 'begins as', get: value => value.init ? value.init.kind : ''},
      ]}),
    make('h2', {}, 'The file'),
    table({
      caption: 'Sections', rows: facts.file.sections,
      columns: [
        {name: 'section', get: section => section.name},
        {name: 'bytes', right: true, get: section => section.bytes,
         show: section => bytes(section.bytes)},
      ]}),
    make('p', {}, 'The whole file has ', bytes(facts.file.bytes, 'file'), '.'),
    make('p', {class: 'soft'}, `Predictions are by the compiler's tables: ` +
      machine.source),
  ];
}

function programsTable() {
  return table({
    caption: 'Compiled programs', rows: programs(),
    columns: [
      {name: 'program', get: program => program.name},
      {name: 'launches', right: true, get: program => program.launches.length},
      {name: 'FLOP', right: true, get: program => summaryOf(program).flops,
       show: program => count(summaryOf(program).flops)},
      {name: 'bytes moved', right: true,
       get: program => summaryOf(program).bytes,
       show: program => bytes(summaryOf(program).bytes)},
      {name: 'arena', right: true, get: program => program.arena_bytes,
       show: program => bytes(program.arena_bytes)},
      {name: 'most in use', right: true, get: program => program.peak_bytes,
       show: program => bytes(program.peak_bytes)},
      {name: 'predicted', right: true,
       get: program => summaryOf(program).seconds,
       show: program => seconds(summaryOf(program).seconds)},
      {name: 'bound by', get: program => summaryOf(program).bound},
    ]});
}
