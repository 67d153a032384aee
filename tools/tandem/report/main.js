// The tabs. A panel is made when it is first looked at, and again when another
// target, size or program is chosen.

const kPanels = [
  ['overview', 'Overview', overview], ['memory', 'Memory', memory],
  ['kernels', 'Kernels', kernels],
  ['saved', 'Saved and recomputed', saved], ['graph', 'Graph', graph],
  ['timeline', 'Timeline', timelines],
  ['writes', 'Mutation and aliases', writes],
  ['precision', 'Precision', precision], ['passes', 'Passes', passes],
  ...(facts.measured ? [['measured', 'Measured', measured]] : []),
];
const kByProgram = ['memory', 'kernels', 'precision'];

const panels = new Map();

function fillPanel(name) {
  const {panel, show} = panels.get(name);
  if (panel.childElementCount) return;
  const list = programs();
  const select = kByProgram.includes(name) && list.length > 1
    ? make('form', {}, choice('Program', list.map(program => program.name),
        list.indexOf(chosenProgram()), at => {
          shown.program = list[at].name;
          renew();
        })) : null;
  panel.append(...[select, show()].flat(Infinity).filter(Boolean));
}

function open(name, focus) {
  for (const [other, {tab, panel}] of panels) {
    const isOpen = other === name;
    tab.setAttribute('aria-selected', String(isOpen));
    tab.tabIndex = isOpen ? 0 : -1;
    panel.hidden = !isOpen;
    if (isOpen && focus) tab.focus();
  }
  fillPanel(name);
}

const openName = () => [...panels].find(([, {panel}]) => !panel.hidden)[0];

function renew() {
  for (const {panel} of panels.values()) panel.replaceChildren();
  open(openName());
}

// From tab to tab with the arrow keys, Home and End.
function onKey(event) {
  const names = [...panels.keys()], at = names.indexOf(openName());
  const next = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0,
                End: names.length - 1}[event.key];
  if (next === undefined) return;
  event.preventDefault();
  location.hash = names[(next + names.length) % names.length];
  open(names[(next + names.length) % names.length], true);
}

function fillAll() {
  for (const name of panels.keys()) fillPanel(name);
}

// `#memory` asks for one part, `#all` for all of them below each other.
function openAsked() {
  const name = location.hash.slice(1);
  open(panels.has(name) ? name : kPanels[0][0]);
  if (name !== 'all') return;
  fillAll();
  for (const {panel} of panels.values()) panel.hidden = false;
  showRows(kPrintedRows);
}

function begin() {
  const {model, producer, loss, optimizer} = manifest();
  const targets = facts.manifests.map(
    one => one.target.kind + ' ' + one.target.arch);
  document.title = model + ': a report of tandem';
  document.getElementById('title').textContent = model;
  document.getElementById('subtitle').textContent = [
    producer, 'for ' + targets.join(' and '), loss && 'loss ' + loss,
    optimizer && 'optimizer ' + optimizer].filter(Boolean).join(', ');
  const choices = document.getElementById('choices');
  const set = key => at => { shown[key] = at; renew(); };
  if (targets.length > 1)
    choices.append(choice('Target', targets, 0, set('target')));
  const sizes = (manifest().sizes || []).map(size => size.name);
  if (sizes.length > 1) choices.append(choice('Size', sizes, 0, set('size')));
  for (const [name, title, show] of kPanels) {
    const tab = make('button', {
      type: 'button', role: 'tab', id: 'tab-' + name,
      'aria-controls': 'panel-' + name,
      click: () => { location.hash = name; open(name); }, keydown: onKey,
    }, title);
    const panel = make('section', {role: 'tabpanel', id: 'panel-' + name,
      'aria-labelledby': 'tab-' + name, tabindex: 0, hidden: true});
    panels.set(name, {tab, panel, show});
    document.getElementById('tabs').append(tab);
    document.getElementById('panels').append(panel);
  }
  window.addEventListener('hashchange', openAsked);
  window.addEventListener('beforeprint', fillAll);
  printsTables();
  openAsked();
}

if (facts.kind === 'diff') beginDiff();
else begin();
