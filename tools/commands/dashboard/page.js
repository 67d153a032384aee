// A training as it runs: numbers and curves. Points are
// [step, epoch, loss, rate, samples, memory, seconds], null where not known.
'use strict';
const [STEP, EPOCH, LOSS, RATE, SAMPLES, MEMORY, SECONDS] = [0, 1, 2, 3, 4, 5, 6];
let points = [];
let evaluations = new Map(); // of each name [[step, value], ...]
let histograms = new Map(); // of each name [{step, octaves, min, ...}, ...]
let changed = true;
let ended = false;

const shown = (value) => value === null || value === undefined ? '-' :
  Math.abs(value) >= 1e5 || (value !== 0 && Math.abs(value) < 1e-3) ?
    value.toExponential(3) : String(Number(value.toPrecision(5)));
const bytes = (value) => value >= 2 ** 30 ? (value / 2 ** 30).toFixed(2) + ' GiB' :
  value >= 2 ** 20 ? (value / 2 ** 20).toFixed(1) + ' MiB' :
  value >= 2 ** 10 ? (value / 2 ** 10).toFixed(1) + ' KiB' : Math.round(value) + ' B';
const time = (value) => Math.floor(value / 60) + ':' +
  String(Math.floor(value % 60)).padStart(2, '0');

const SVG = 'http://www.w3.org/2000/svg';
function element(parent, name, attributes = {}, text = '') {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes))
    made.setAttribute(key, value);
  made.textContent = text;
  parent.append(made);
  return made;
}

const WIDTH = 560, HEIGHT = 220, LEFT = 64, BOTTOM = 22, TOP = 8;

// `curves` are {points: [[x, y], ...], isEvaluation}.
function draw(panel, curves, format) {
  const all = curves.flatMap((curve) => curve.points)
    .filter(([, y]) => y !== null && Number.isFinite(y));
  const svg = panel.querySelector('svg');
  svg.replaceChildren();
  if (!all.length) {
    element(svg, 'text', {x: WIDTH / 2, y: HEIGHT / 2, 'text-anchor': 'middle'},
            'no finite number');
    return;
  }
  let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const [x, y] of all) {
    x0 = Math.min(x0, x); x1 = Math.max(x1, x);
    y0 = Math.min(y0, y); y1 = Math.max(y1, y);
  }
  if (y0 === y1) {
    const room = Math.abs(y0) * 0.1 || 1;
    y0 -= room; y1 += room;
  }
  const atX = (x) => LEFT + (WIDTH - LEFT - 10) * (x1 > x0 ? (x - x0) / (x1 - x0) : 0.5);
  const atY = (y) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (y - y0) / (y1 - y0));
  for (let i = 0; i <= 3; ++i) {
    const y = y0 + (y1 - y0) * i / 3;
    element(svg, 'line', {x1: LEFT, x2: WIDTH - 10, y1: atY(y), y2: atY(y)});
    element(svg, 'text', {x: LEFT - 6, y: atY(y) + 4, 'text-anchor': 'end'}, format(y));
  }
  element(svg, 'text', {x: LEFT, y: HEIGHT - 5}, String(x0));
  element(svg, 'text', {x: WIDTH - 10, y: HEIGHT - 5, 'text-anchor': 'end'},
          'step ' + x1);
  for (const curve of curves) {
    let path = '', pen = 'M';
    for (const [x, y] of curve.points) {
      if (y === null || !Number.isFinite(y)) {
        pen = 'M';
        continue;
      }
      path += pen + atX(x).toFixed(1) + ' ' + atY(y).toFixed(1);
      pen = 'L';
      if (curve.isEvaluation)
        element(svg, 'circle', {cx: atX(x).toFixed(1), cy: atY(y).toFixed(1), r: 3});
    }
    element(svg, 'path', {d: path, class: curve.isEvaluation ? 'eval' : 'step'});
  }
}

const panels = new Map();
function panel(title) {
  if (!panels.has(title)) {
    const section = document.createElement('section');
    const heading = document.createElement('h2');
    heading.textContent = title;
    const svg = document.createElementNS(SVG, 'svg');
    svg.setAttribute('viewBox', `0 0 ${WIDTH} ${HEIGHT}`);
    svg.setAttribute('role', 'img');
    svg.setAttribute('aria-label', title + ' over steps');
    section.append(heading, svg);
    document.getElementById('panels').append(section);
    panels.set(title, section);
  }
  return panels.get(title);
}

// Of each histogram a column up to the next one, of each octave a field, the darker the more
// numbers are in it. Octave o > 0 is 2^(o - 41) to twice that, -o the same of
// the other sign, 0 what is nearer to zero.
const COLUMNS = 120; // of more those go that are nearest to their neighbours
function drawHistograms(panel, columns) {
  let canvas = panel.querySelector('canvas');
  if (!canvas) {
    panel.querySelector('svg').remove();
    canvas = document.createElement('canvas');
    canvas.width = 2 * WIDTH;
    canvas.height = 2 * HEIGHT;
    canvas.setAttribute('role', 'img');
    const words = document.createElement('p');
    panel.append(canvas, words);
  }
  const last = columns[columns.length - 1];
  const words = `step ${last.step}: ${shown(last.min)} to ${shown(last.max)}, ` +
    `mean ${shown(last.mean)}, deviation ${shown(last.deviation)}` +
    (last.nonfinite ? `, ${last.nonfinite} that are NaN or infinite` : '');
  panel.querySelector('p').textContent = words;
  canvas.setAttribute('aria-label', 'distribution over steps; ' + words);
  const style = getComputedStyle(document.documentElement);
  const pen = canvas.getContext('2d');
  pen.setTransform(2, 0, 0, 2, 0, 0);
  pen.clearRect(0, 0, WIDTH, HEIGHT);
  const octaves = columns.flatMap((column) => column.octaves.map(([o]) => o));
  const low = Math.min(...octaves, 0) - 1, high = Math.max(...octaves, 0) + 1;
  const right = WIDTH - 10, bottom = HEIGHT - BOTTOM;
  const first = columns[0].step;
  const end = columns.length < 2 ? last.step + 1 :
    2 * last.step - columns[columns.length - 2].step;
  const atX = (step) => LEFT + (right - LEFT) * (step - first) / (end - first);
  const height = (bottom - TOP) / (high - low + 1);
  const top = (octave) => TOP + (high - octave) * height;
  pen.fillStyle = style.getPropertyValue('--loss');
  columns.forEach((column, i) => {
    const most = Math.max(...column.octaves.map(([, count]) => count));
    const x = atX(column.step);
    const width = atX(i + 1 < columns.length ? columns[i + 1].step : end) - x;
    for (const [octave, count] of column.octaves) {
      pen.globalAlpha = 0.12 + 0.88 * Math.sqrt(count / most);
      pen.fillRect(x, top(octave), width, Math.ceil(2 * height) / 2);
    }
  });
  pen.globalAlpha = 1;
  pen.fillStyle = style.getPropertyValue('--quiet');
  pen.font = '12px system-ui, sans-serif';
  pen.textAlign = 'right';
  const every = Math.max(1, Math.ceil((high - low) / 8));
  for (let octave = Math.ceil(low / every) * every; octave <= high; octave += every) {
    const edge = Math.sign(octave) * 2 ** (Math.abs(octave) - 41);
    pen.fillText(octave ? edge.toExponential(0) : '0', LEFT - 6,
                 top(octave) + height / 2 + 4);
  }
  pen.fillText('step ' + last.step, right, HEIGHT - 5);
  pen.textAlign = 'left';
  pen.fillText(String(first), LEFT, HEIGHT - 5);
}

function number(list, name, value) {
  const box = document.createElement('div');
  const term = document.createElement('dt');
  const text = document.createElement('dd');
  term.textContent = name;
  text.textContent = value;
  box.append(term, text);
  list.push(box);
}

function render() {
  if (!changed)
    return;
  changed = false;
  const last = points[points.length - 1];
  const list = [];
  if (last) {
    number(list, 'step', String(last[STEP]));
    number(list, 'epoch', String(last[EPOCH]));
    number(list, 'loss', shown(last[LOSS]));
    if (last[RATE] !== null)
      number(list, 'learning rate', shown(last[RATE]));
    number(list, 'samples/s', shown(last[SAMPLES]));
    number(list, 'memory', bytes(last[MEMORY]));
    number(list, 'time', time(last[SECONDS]));
  }
  for (const [name, values] of evaluations)
    number(list, 'eval ' + name, shown(values[values.length - 1][1]));
  document.getElementById('numbers').replaceChildren(...list);
  const curve = (at) => points.map((point) => [point[STEP], point[at]]);
  const has = (at) => points.some((point) => point[at] !== null);
  if (last) {
    draw(panel('loss'), [{points: curve(LOSS)}], shown);
    if (has(RATE))
      draw(panel('learning rate'), [{points: curve(RATE)}], shown);
    draw(panel('samples/s'), [{points: curve(SAMPLES)}], shown);
    draw(panel('memory'), [{points: curve(MEMORY)}], bytes);
  }
  for (const [name, values] of evaluations)
    draw(panel('eval ' + name), [{points: values, isEvaluation: true}], shown);
  for (const [name, columns] of histograms)
    drawHistograms(panel(name), columns);
}

function say(text, kind) {
  const state = document.getElementById('state');
  state.textContent = text;
  state.className = kind;
}

const source = new EventSource('events');
source.addEventListener('all', (event) => {
  points = JSON.parse(event.data);
  evaluations = new Map();
  histograms = new Map();
  changed = true;
  render();
  say(points.length ? 'training' : 'waiting for the first step', '');
});
source.addEventListener('steps', (event) => {
  points.push(...JSON.parse(event.data));
  changed = true;
  say('training', '');
});
source.addEventListener('evaluation', (event) => {
  const {step, numbers} = JSON.parse(event.data);
  for (const [name, value] of Object.entries(numbers)) {
    if (!evaluations.has(name))
      evaluations.set(name, []);
    evaluations.get(name).push([step, value]);
  }
  changed = true;
});
source.addEventListener('histograms', (event) => {
  const {step, histograms: given} = JSON.parse(event.data);
  for (const [name, one] of Object.entries(given)) {
    const columns = histograms.get(name) || [];
    columns.push({step, ...one});
    if (columns.length > COLUMNS) {
      const gap = (i) => columns[i + 1].step - columns[i - 1].step;
      let least = 1;
      for (let i = 2; i + 1 < columns.length; ++i)
        least = gap(i) < gap(least) ? i : least;
      columns.splice(least, 1);
    }
    histograms.set(name, columns);
  }
  changed = true;
});
source.addEventListener('end', (event) => {
  ended = true;
  source.close();
  say('the training has ended: ' + JSON.parse(event.data), 'ended');
  render();
});
source.onerror = () => {
  if (!ended)
    say('no connection: the training has ended, or does not answer', 'lost');
};
setInterval(render, 500);
