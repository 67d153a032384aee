// What programs write beside their outputs, and what shares memory.

function chainText(alias) {
  return [`'${alias.of || alias.output}'`, ...alias.views.map(view => view.op)]
    .join(', ');
}

// A state has no gradient, however it is written: a running mean, a counter.
function updateText(slot) {
  const value = values().find(one => one.name === slot.name);
  return value && value.role === 'state' ? 'next value of a state'
    : slot.visible ? 'data, differentiated' : 'data';
}

function writeRows() {
  const rows = [];
  const add = (program, name, change, where) =>
    rows.push({program: program.name, name, change, where: where || ''});
  for (const program of programs()) {
    if (!['forward', 'backward'].includes(program.name)) continue;
    for (const slot of program.arguments) {
      if (slot.alias)
        add(program, slot.name, 'is a view of ' + chainText(slot.alias),
            'declared');
      if (slot.metadata)
        add(program, slot.name, 'metadata: ' + chainText(slot.metadata),
            slot.where);
      if (slot.storage)
        add(program, slot.name, 'storage: ' + chainText(slot.storage),
            slot.where);
      if (slot.resize !== undefined)
        add(program, slot.name, `size: ${slot.resize} elements`, slot.where);
    }
    for (const slot of program.results)
      if (slot.role === 'update')
        add(program, slot.name, updateText(slot), slot.where);
    for (const output of program.aliases || [])
      add(program, output.name, 'is a view of ' + chainText(output),
          output.part_of);
  }
  return rows;
}

function writes() {
  const rows = writeRows();
  const listed = manifest().mutated_in_backward.map(
    index => ({index, name: values()[index].name}));
  const others = programs().flatMap(program => program.results.filter(
    slot => slot.role === 'update').map(slot => ({
      program: program.name, name: slot.name,
      how: slot.in_place ? 'in its own storage' : 'copied when it ends'})));
  return [
    make('h2', {}, 'Mutation and aliases'),
    table({
      caption: 'What forward and backward write, and what shares memory', rows,
      columns: [
        {name: 'value', get: row => row.name},
        {name: 'in', get: row => row.program},
        {name: 'change', kind: 'text', get: row => row.change},
        {name: 'by', kind: 'text', get: row => row.where},
      ]}),
    make('h2', {}, 'Require a gradient and are written by the backward'),
    make('p', {class: 'soft'}, 'With create_graph a backward that writes one ' +
      'of these is refused.'),
    table({
      caption: 'Indices into the values', rows: listed,
      columns: [
        {name: 'index', right: true, get: row => row.index},
        {name: 'value', get: row => row.name},
      ]}),
    make('h2', {}, 'All updates'),
    table({
      caption: 'New values of parameters, states and inputs', rows: others,
      columns: [
        {name: 'value', get: row => row.name},
        {name: 'in', get: row => row.program},
        {name: 'how', get: row => row.how},
      ]}),
  ];
}
