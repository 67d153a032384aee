// What only a compilation knows of its plan: where in the model launches are
// from, and the ops. An artifact alone does not have it.

const plannedTarget = program =>
  ((facts.planned || [])[program.size || 0] || [])[shown.target];

function plannedProgram(program) {
  const target = plannedTarget(program);
  const found = target && target.programs.find(
    one => one.name === program.name);
  return found && found.launches.length === program.launches.length
    ? found : null;
}

// Where the launch is from, and how it is cut: what is known.
function launchOrigin(program, i) {
  const planned = plannedProgram(program);
  return planned ? planned.launches[i] : {};
}

const kPasses = ['forward', 'recompute', 'backward', 'update'];

// What part of the predicted time of a program is in launches of each pass, as
// "forward 40.0 %, recompute 2.5 %, ..."; empty where that is not known.
function passShares(program) {
  const sums = new Map(kPasses.map(pass => [pass, 0]));
  let whole = 0;
  program.launches.forEach((launch, i) => {
    if (launch.kernel === undefined) return;
    const {pass} = launchOrigin(program, i);
    const time = summary().kernels[launch.kernel].seconds;
    if (sums.has(pass)) sums.set(pass, sums.get(pass) + time);
    whole += time;
  });
  return [...sums].filter(([, time]) => time).map(
    ([pass, time]) => `${pass} ${percentText(time / whole)}`).join(', ');
}

// `layers.3.attn` as its parts, and `/layers.3/attn/MatMul` of a format whose
// nodes are named so.
const pathParts = path => !path ? []
  : path.includes('/') ? path.split('/').filter(Boolean) : path.split('.');

// The sum of `value` for each module at a depth of paths.
function byModule(rows, pathOf, valueOf, depth) {
  const sums = new Map();
  for (const row of rows) {
    const name = pathParts(pathOf(row)).slice(0, depth).join('.') ||
      '(no path)';
    sums.set(name, (sums.get(name) || 0) + valueOf(row));
  }
  return [...sums].map(([name, value]) => ({name, value}))
    .sort((a, b) => b.value - a.value);
}

// The least depth at which most of the paths part: behind what all share.
function depthOf(rows, pathOf) {
  const most = Math.max(0, ...rows.map(row => pathParts(pathOf(row)).length));
  for (let depth = 1; depth < most; ++depth)
    if (byModule(rows, pathOf, () => 1, depth).length > 4) return depth;
  return Math.max(most, 1);
}
