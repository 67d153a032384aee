// What a profile measured (docs/PROFILE_JSON.md), beside roofs and predictions.

function measured() {
  const profile = facts.measured, step = profile.seconds.median;
  const ofStep = value => (100 * value / step).toFixed(1) + '%';
  const kFields = [
    ['forward', 'forward_seconds'], ['recompute', 'recompute_seconds'],
    ['backward', 'gradient_seconds'], ['update', 'update_seconds']];
  const sumOf = row => kFields.reduce((sum, [, field]) => sum + row[field], 0);
  const spread = one => `${secondsText(one.low)} to ${secondsText(one.high)}`;
  const time = (name, get) => ({
    name, right: true, get, show: row => {
      const value = get(row);
      return value === undefined ? '' : seconds(value);
    }});
  const places = (caption, list, key) => table({
    caption, rows: list, sortBy: 1, columns: [
      {name: key, kind: 'text', get: row => row[key] || '(not known)'},
      {name: 'of the step', right: true, get: sumOf,
       show: row => ofStep(sumOf(row))},
      ...kFields.filter(([, field]) => list.some(row => row[field])).map(
        ([name, field]) => time(name, row => row[field])),
    ]});
  const missing = Object.entries(profile.counters.missing).map(
    ([name, reason]) => `${name}: ${reason}`);
  return [
    make('h2', {}, `${profile.program}: ${secondsText(step)}, measured`),
    make('p', {class: 'soft'}, `${profile.calls} calls on ${profile.code}, ` +
      `${profile.threads} threads; ${spread(profile.seconds)} in eight of ten. ` +
      `Watching takes ${(100 * profile.overhead).toFixed(1)}%. ` +
      (profile.emulated ? 'Times are the emulator\'s. ' : '') +
      (missing.length ? 'Not counted: ' + missing.join('; ') + '.' : '')),
    profile.passes && table({
      caption: 'What launches are for', rows: profile.passes,
      columns: [
        {name: 'pass', get: row => row.pass || '(none)'},
        {name: 'launches', right: true, get: row => row.launches},
        time('measured', row => row.seconds),
        {name: 'share', right: true, get: row => row.share,
         show: row => percentText(row.share)},
      ]}),
    table({
      caption: 'Kernels', rows: profile.kernels, sortBy: 2,
      columns: [
        {name: 'kernel', kind: 'text', get: row => row.kernel},
        {name: 'launches', right: true, get: row => row.launches.length},
        time('measured', row => row.seconds.median),
        {name: 'spread', right: true,
         get: row => row.seconds.high - row.seconds.low,
         show: row => spread(row.seconds)},
        {name: 'of the step', right: true, get: row => row.seconds.median,
         show: row => ofStep(row.seconds.median)},
        {name: 'GB/s', right: true, get: row => row.bytes_per_second || 0,
         show: row => ((row.bytes_per_second || 0) / 1e9).toFixed(1)},
        time('roof here', row => row.roof_seconds),
        time('predicted', row => row.predicted_seconds),
        time('waited', row => row.waited_seconds),
        ...profile.counters.counted.map(name => ({
          name, right: true, get: row => row.counts[name],
          show: row => count(row.counts[name])})),
      ]}),
    make('h2', {}, 'Where in the model'),
    ...(profile.places ? [make('p', {class: 'soft'}, profile.places)] : [
      places('Modules', profile.modules, 'path'),
      places('Lines', profile.lines, 'where')]),
  ];
}
