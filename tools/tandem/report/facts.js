// What is shown of the facts: one target, one size, one program; and what
// follows from the launches of a program.

// What a name has of control characters, and of those that turn the direction
// of a line or have no width, is shown as its number: \u202e. In the text of
// the facts the first 32 are escapes already; line feeds and tabs stay.
const kUnseen = new RegExp(
  '[\\u007f-\\u009f\\u00ad\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f' +
  '\\ufeff\\ufff9-\\ufffb]', 'g');

function withoutUnseen(json) {
  const escape = mark => '\\\\u' +
    mark.charCodeAt(0).toString(16).padStart(4, '0');
  return json.replace(/\\(u[0-9a-f]{4}|.)/gi, (all, mark) =>
    /^u(00[01].|007f|202[89])/i.test(mark) || /^[bfr]/.test(mark)
      ? '\\\\' + mark : all).replace(kUnseen, escape);
}

const facts = JSON.parse(withoutUnseen(
  document.getElementById('facts').textContent));
const shown = {target: 0, size: 0, program: ''};

const manifest = () => facts.manifests[shown.target];
const summary = () => facts.summaries[shown.target];

// Programs of the size that is shown, and those of the first that serve it.
function programs() {
  const all = manifest().programs;
  const own = all.filter(program => (program.size || 0) === shown.size);
  const names = new Set(own.map(program => program.name));
  return own.concat(all.filter(program => !program.size &&
    !names.has(program.name) &&
    ['update', 'accumulation', 'prepare'].includes(program.name)));
}

function chosenProgram() {
  const list = programs();
  return list.find(program => program.name === shown.program) ||
    list.find(program => program.name === 'step') || list[0];
}

const summaryOf = program =>
  summary().programs[manifest().programs.indexOf(program)];

function stepMemory() {
  const size = (manifest().sizes || [])[shown.size];
  return size && size.step_memory || manifest().step_memory;
}

function partition() {
  const size = (manifest().sizes || [])[shown.size];
  return size && size.partition || manifest().partition;
}

const values = () => manifest().values;

// The type of an argument stands with its value, where it has one.
function typeOf(slot) {
  if (slot.dtype) return slot;
  const size = (manifest().sizes || [])[shown.size];
  const named = list => (list || []).find(
    value => value.name === slot.name && value.role === slot.role);
  return named(size && size.values) || named(values());
}

function launchName(launch) {
  if (launch.kernel !== undefined)
    return manifest().kernels[launch.kernel].symbol;
  return launch.collective ? launch.collective.op : 'copy';
}

function launchKind(launch) {
  if (launch.kernel !== undefined)
    return manifest().kernels[launch.kernel].class;
  return launch.collective ? 'collective' : 'copy';
}

const kAlignment = 64;
const aligned = size => Math.ceil(size / kAlignment) * kAlignment;

// The values in the arena: where they are, from the launch that writes them to
// the last that uses them. A place that is written again after it was read, by
// a launch that does not read it, has another value.
function lifetimes(program) {
  const now = new Map(), list = [];
  program.launches.forEach((launch, i) => {
    const read = new Set(launch.reads.map(at => launch.buffers[at]));
    const written = new Set(launch.writes.map(at => launch.buffers[at]));
    for (const at of new Set([...read, ...written])) {
      const buffer = program.buffers[at];
      if (buffer.in !== 'arena') continue;
      let value = now.get(at);
      const isNew = written.has(at) && !read.has(at);
      if (!value || (isNew && value.readers.length)) {
        value = {offset: buffer.offset, bytes: buffer.bytes, first: i,
                 last: i, writers: [], readers: []};
        now.set(at, value);
        list.push(value);
      }
      value.last = i;
      if (read.has(at)) value.readers.push(i);
      if (written.has(at)) value.writers.push(i);
    }
  });
  return list;
}

// The bytes of the arena that are in use at each launch.
function levels(program, lives) {
  const changes = new Array(program.launches.length + 1).fill(0);
  for (const life of lives) {
    changes[life.first] += aligned(life.bytes);
    changes[life.last + 1] -= aligned(life.bytes);
  }
  let level = 0;
  return changes.slice(0, -1).map(change => level += change);
}
