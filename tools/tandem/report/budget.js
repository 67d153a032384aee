// Memory against time over all budgets, where the page was made with them.

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
  const picture = points.length ? make('div', {class: 'wide'}, draw('svg', {
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
