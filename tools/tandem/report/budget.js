// Memory against time over all budgets, where the page was made with them.

// Parts of a peak that no budget makes smaller.
const kFixed = ['parameters', 'states', 'constants', 'inputs', 'outputs',
                'prepared'];

// What would halve the memory?
function halfText() {
  const memory = stepMemory(), peak = summary().peaks[shown.size];
  if (!memory || !peak ||
      !programs().some(program => program.name === 'backward')) return '';
  const fixed = kFixed.reduce((sum, key) => sum + (memory[key] || 0), 0);
  const left = `Parameters, states, constants, inputs and outputs have ` +
    `${bytesText(fixed)} of the peak, which no memory budget changes.`;
  const points = ((facts.budget_curve || {}).points || []);
  if (!points.length || shown.size || shown.target)
    return `What would halve the memory? ` + (fixed > peak / 2
      ? `No memory budget. ${left}`
      : `'tandem explain MODEL --why-large' compiles it with ` +
        `--memory-budget=${Math.floor(peak / 2)} and says what time that ` +
        `costs, if a plan fits. ${left}`);
  const time = sumOfStep('seconds') * 1e3;
  const change = (value, whole) => (value >= whole ? '+' : '−') +
    percentText(Math.abs(value / whole - 1));
  const text = point =>
    `--memory-budget=${point.budget.toFixed(1)} plans ` +
    `${bytesText(point.peak_bytes)} (${change(point.peak_bytes, peak)})` +
    (point.predicted_ms && time ? `, predicted to take ` +
      `${secondsText(point.predicted_ms / 1e3)} ` +
      `(${change(point.predicted_ms, time)})` : '') +
    `; the backward runs ${point.repeated_ops} ops again`;
  const fits = points.filter(point => point.peak_bytes <= peak / 2);
  const slow = point => point.predicted_ms || 0;
  if (fits.length)
    return 'What would halve the memory? ' + text(
      fits.reduce((best, point) => slow(point) < slow(best) ? point : best)) +
      '.';
  const least = points.reduce(
    (best, point) => point.peak_bytes < best.peak_bytes ? point : best);
  return `What would halve the memory? No memory budget: the least is what ` +
    `${text(least)}. ${left}`;
}

// The answer as a paragraph, where there is one.
function halfNote(id) {
  const text = halfText();
  return text ? make('p', {id}, text) : null;
}

function budgetCurve() {
  const curve = facts.budget_curve;
  if (!curve) return null;
  const width = 1000, height = 300, left = 80, bottom = 40;
  const points = curve.points.filter(
    point => point.predicted_ms !== undefined);
  const most = key => Math.max(...points.map(point => point[key]), 1e-9);
  const x = bytes => left + bytes / most('peak_bytes') * (width - left - 20);
  const y = ms => height - bottom -
    ms / most('predicted_ms') * (height - bottom - 20);
  const line = points.map(
    point => `${x(point.peak_bytes)},${y(point.predicted_ms)}`).join(' ');
  const picture = points.length ? widePicture(draw('svg', {
    viewBox: `0 0 ${width} ${height}`, role: 'img', class: 'scrolled',
    'aria-label': 'Predicted time of a step over its planned peak',
  }, draw('line', {x1: left, x2: width - 20, y1: y(0), y2: y(0),
                   class: 'axis'}),
     draw('line', {x1: left, x2: left, y1: y(0), y2: 20, class: 'axis'}),
     draw('text', {x: left - 6, y: 30, 'text-anchor': 'end'},
          most('predicted_ms').toPrecision(3) + ' ms'),
     draw('text', {x: width - 20, y: height - 16, 'text-anchor': 'end'},
          'peak ' + bytesText(most('peak_bytes'))),
     draw('polyline', {points: line, class: 'level'}),
     points.map(point => draw('circle', {
       cx: x(point.peak_bytes), cy: y(point.predicted_ms), r: 5,
       class: 'item c0'}, draw('title', {}, `budget ${point.budget}`))))) : null;
  return [
    make('h2', {}, 'What another budget would do'),
    picture,
    table({
      caption: 'The model under each memory budget', rows: curve.points,
      columns: [
        {name: 'budget', right: true, get: point => point.budget,
         show: point => point.budget.toFixed(1)},
        {name: 'planned peak', right: true, get: point => point.peak_bytes,
         show: point => bytes(point.peak_bytes)},
        {name: 'saved', right: true, get: point => point.saved_bytes,
         show: point => bytes(point.saved_bytes)},
        {name: 'ops again', right: true, get: point => point.repeated_ops},
        ...['predicted_ms', 'measured_ms'].filter(
          key => curve.points.some(point => point[key] !== undefined)).map(
          key => ({name: key.replace('_ms', ''), right: true,
                   get: point => point[key] || 0,
                   show: point => point[key] === undefined ? '-'
                     : seconds(point[key] / 1e3)})),
      ]}),
  ];
}
