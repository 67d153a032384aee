// The code of kernels, which the page has compressed. A text is unpacked, and
// becomes a part of the page, when it is asked for.

const kKinds = {
  MLIR: 'MLIR, as it is planned', 'LLVM IR': 'LLVM IR, before LLVM\'s passes',
  assembly: 'Assembly, of the machine code in the artifact', PTX: 'PTX',
};

async function unpacked(packed) {
  const bytes = Uint8Array.from(atob(packed), char => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream()
    .pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).text();
}

// A text of thousands of lines is slow to lay out: its first ones, and more
// when it is asked.
const kCodeLines = 400;

function codeText(kind, packed) {
  const code = make('pre', {class: 'code', tabindex: 0});
  const said = make('p', {class: 'soft', 'aria-live': 'polite'});
  let lines = null, shownLines = 0;
  const further = make('button', {type: 'button', hidden: true,
                                  click: () => showMore()}, 'Show more lines');
  function showMore() {
    code.append(lines.slice(shownLines, shownLines + kCodeLines).join('\n') +
                '\n');
    shownLines = Math.min(shownLines + kCodeLines, lines.length);
    further.hidden = shownLines === lines.length;
    said.textContent = `${shownLines} of ${lines.length} lines`;
  }
  return make('details', {toggle: async () => {
    if (lines) return;
    lines = [];
    if (typeof DecompressionStream === 'undefined') {
      said.textContent = 'This browser cannot unpack it.';
      return;
    }
    lines = (await unpacked(packed)).trimEnd().split('\n');
    showMore();
  }}, make('summary', {}, kKinds[kind] || kind), code, said, further);
}

function codeOf(kernel) {
  const code = (facts.code || [])[shown.target];
  if (!code) return null;
  const kinds = Object.entries(code.kernels[kernel.symbol] || {});
  if (!kinds.length)
    return make('p', {class: 'soft'}, code.left_out
      ? 'Its code is left out: that of kernels that take longer fills the ' +
        `${bytesText(code.most_bytes)} that a page has for code.`
      : 'Its code is not on the page' + (code.problem ? ': ' + code.problem
                                         : '.'));
  return kinds.map(([kind, packed]) => codeText(kind, packed));
}

// Where there is none, and why.
function codeNote() {
  const code = (facts.code || [])[shown.target];
  if (!code)
    return make('p', {class: 'soft'}, 'A page that is made with --code has ' +
      'the code of the kernels, too.');
  return make('p', {class: 'soft'}, [
    `Code of ${Object.keys(code.kernels).length} kernels is below their names`,
    code.left_out ? `, and that of ${code.left_out} that take less is left ` +
      `out: a page has ${bytesText(code.most_bytes)} of it` : '',
    facts.planned ? '.' : '. This page was made of an artifact, which has ' +
      'machine code alone: of a model there are also MLIR and LLVM IR.'].join(''));
}
