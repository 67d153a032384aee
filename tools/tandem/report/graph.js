// The ops of forward and backward by the modules of the model, which can be
// folded. As many lines are there as can be seen, however many there are.

const kLine = 24, kSeen = 560;

// {name, path, children: Map, forward: [], backward: []}: the ops of a module
// itself; those of modules in it are theirs.
function moduleTree(ops) {
  const root = {name: '', path: '', children: new Map(), ops: [], count: 0};
  for (const op of ops) {
    let at = root;
    at.count += 1;
    for (const part of pathParts(op.path)) {
      const path = at.path ? at.path + '.' + part : part;
      if (!at.children.has(part))
        at.children.set(part, {name: part, path, children: new Map(), ops: [],
                               count: 0});
      at = at.children.get(part);
      at.count += 1;
    }
    at.ops.push(op);
  }
  return root;
}

// Two columns need room; in a narrow window the backward stands below the
// forward.
const kNarrow = matchMedia('(max-width: 40rem)');

// What is to be seen of the tree, line by line. A module with one module in it
// and nothing else is one line with it.
function linesOf(root, open) {
  const lines = [];
  function visit(node, depth) {
    for (let child of node.children.values()) {
      let name = child.name;
      while (!child.ops.length && child.children.size === 1) {
        child = [...child.children.values()][0];
        name += '.' + child.name;
      }
      lines.push({node: child, name, depth});
      if (open.has(child.path)) visit(child, depth + 1);
    }
    const sides = ['forward', 'backward'].map(
      side => node.ops.filter(op => op.side === side));
    if (kNarrow.matches) {
      lines.push(...sides[0].map(forward => ({forward, depth})),
                 ...sides[1].map(backward => ({backward, depth})));
      return;
    }
    const count = Math.max(sides[0].length, sides[1].length);
    for (let i = 0; i < count; ++i)
      lines.push({forward: sides[0][i], backward: sides[1][i], depth});
  }
  visit(root, 0);
  return lines;
}

function graphOp(op) {
  if (!op) return '';
  const of = op.gradient_of ? `gradient of ${op.gradient_of}: ` : '';
  const again = op.pass === 'recompute' ? 'again: ' : '';
  return `${again}${of}${op.op} ${op.types.join(' ')}`;
}

// `p.dy() * exp(p.x())` as the op's record has it, with x for its operand.
function gradientText(op) {
  const formula = (facts.gradients || {})[op.op];
  return formula ? '; its gradient by operand: ' +
    formula.replace(/p\.(\w+)\(\)/g, '$1').replaceAll('`', '') : '';
}

function graphOps() {
  return programs().filter(program =>
    ['forward', 'backward', 'evaluate'].includes(program.name))
    .flatMap((program, _, list) => {
      // Where there is a forward, evaluate has the same ops.
      const hasForward = list.some(one => one.name === 'forward');
      if (hasForward && program.name === 'evaluate') return [];
      const planned = plannedProgram(program);
      const side = program.name === 'backward' ? 'backward' : 'forward';
      return (planned ? planned.ops : []).map(op => ({
        ...op, side, program,
        kernel: op.launch === undefined ? 'no kernel: it moves nothing'
          : launchName(program.launches[op.launch])}));
    });
}

function graph() {
  const ops = graphOps();
  if (!ops.length)
    return make('p', {}, 'This page was made of an artifact alone, or beside dumps of ' +
      'several targets: neither says what the model was. ' +
      'A report of the model does: tandem inspect MODEL --html, or tandem ' +
      'compile --report.');
  const said = make('p', {class: 'said', 'aria-live': 'polite'},
    'Choose an op for its place in the model and its kernel.');
  const found = make('span', {class: 'soft', 'aria-live': 'polite'});
  const lines = make('div', {class: 'lines'});
  const room = make('div', {class: 'room', tabindex: 0, role: 'tree',
                            'aria-label': 'Modules and their ops'}, lines);
  let root = moduleTree(ops), list = [], at = 0;
  const open = new Set();

  function press(line) {
    if (line.node) {
      if (!open.delete(line.node.path)) open.add(line.node.path);
      refresh();
      return;
    }
    said.textContent = [line.forward, line.backward].filter(Boolean).map(
      op => `${op.side}: ${graphOp(op)}; ${op.path || 'no path'}` +
        `${op.where ? ' at ' + op.where : ''}; ${op.kernel}` +
        gradientText(op)).join(' — ');
  }

  function lineOf(line, i) {
    const isOpen = line.node && open.has(line.node.path);
    const cells = line.node
      ? make('span', {class: 'module'}, (isOpen ? '▾ ' : '▸ ') + line.name,
             make('span', {class: 'soft'}, `  ${line.node.count} ops`))
      : kNarrow.matches ? make('span', {class: 'side'}, line.forward
        ? graphOp(line.forward) : '↩ ' + graphOp(line.backward))
      : [make('span', {class: 'side'}, graphOp(line.forward)),
         make('span', {class: 'side'}, graphOp(line.backward))];
    const item = make('div', {
      class: 'line' + (i === at ? ' at' : ''), role: 'treeitem',
      'aria-level': line.depth + 1, 'aria-selected': String(i === at),
      'aria-expanded': line.node ? String(isOpen) : undefined,
      click: () => { at = i; press(line); draws(); },
    }, cells);
    item.style.top = i * kLine + 'px';
    item.style.paddingLeft = line.depth * 1.1 + 0.3 + 'rem';
    return item;
  }

  function draws() {
    const first = Math.max(Math.floor(room.scrollTop / kLine) - 5, 0);
    lines.replaceChildren(...list.slice(first, first + kSeen / kLine + 10)
      .map((line, i) => lineOf(line, first + i)));
  }

  function refresh() {
    list = linesOf(root, open);
    at = Math.min(at, Math.max(list.length - 1, 0));
    lines.style.height = list.length * kLine + 'px';
    draws();
  }

  function openAll(node) {
    open.add(node.path);
    for (const child of node.children.values()) openAll(child);
  }

  // Modules from the outermost inwards, as long as what is open can be seen.
  function openFirst() {
    for (let level = [...root.children.values()]; level.length;
         level = level.flatMap(node => [...node.children.values()])) {
      const wider = new Set([...open, ...level.map(node => node.path)]);
      if (open.size && linesOf(root, wider).length > kSeen / kLine) return;
      for (const node of level) open.add(node.path);
    }
  }

  function search(event) {
    const wanted = event.target.value.toLowerCase();
    const kept = wanted ? ops.filter(op =>
      `${op.path} ${op.op} ${op.gradient_of} ${op.where} ${op.kernel}`
        .toLowerCase().includes(wanted)) : ops;
    root = moduleTree(kept);
    open.clear();
    if (wanted) openAll(root);
    else openFirst();
    found.textContent = wanted ? `${kept.length} of ${ops.length} ops` : '';
    room.scrollTop = 0;
    refresh();
  }

  room.addEventListener('scroll', draws);
  kNarrow.addEventListener('change', refresh);
  room.addEventListener('keydown', event => {
    const step = {ArrowDown: 1, ArrowUp: -1, PageDown: 20,
                  PageUp: -20}[event.key];
    const line = list[at];
    if (step) at = Math.min(Math.max(at + step, 0), list.length - 1);
    else if (event.key === 'Enter' || event.key === ' ') press(line);
    else if (line && line.node && (event.key === 'ArrowRight') !==
             open.has(line.node.path) && event.key.startsWith('Arrow'))
      press(line);
    else return;
    event.preventDefault();
    const top = at * kLine;
    if (top < room.scrollTop) room.scrollTop = top;
    if (top + kLine > room.scrollTop + room.clientHeight)
      room.scrollTop = top + kLine - room.clientHeight;
    draws();
  });
  openFirst();
  refresh();
  return [
    make('h2', {}, 'The model by modules'),
    make('p', {class: 'soft'}, `${ops.length} ops as they are planned. In a ` +
      'module, those of the forward are on the left and those of the ' +
      'backward on the right (in a narrow window below, behind ↩), each in ' +
      'its own order; what the backward runs again is with it.'),
    make('div', {class: 'tools'}, make('label', {}, 'Find ',
      make('input', {type: 'search', input: search})), ' ', found),
    room, said];
}
