// Tables that can be sorted by each column and searched. A long one shows its
// first rows, and more when it is asked: a page with all of them is slow. On
// paper, where nobody can ask, it shows all that a printer can be asked for.

const kRows = 40, kPrintedRows = 1000;

// Tells the tables on the page how many rows they show, before and after a
// print.
function showRows(limit) {
  for (const element of document.querySelectorAll('.rows'))
    element.dispatchEvent(new CustomEvent('rows', {detail: limit}));
}

function printsTables() {
  window.addEventListener('beforeprint', () => showRows(kPrintedRows));
  window.addEventListener('afterprint', () => {
    if (location.hash !== '#all') showRows(kRows);
  });
}

// columns: [{name, get: row => text or number, show: row => what a cell has,
// right, kind: 'type' or 'text'}]; `more` gives what is shown below a row when
// its first cell is pressed.
function table({caption, columns, rows, more, sortBy, search = rows.length > 12,
                empty = 'none'}) {
  if (!rows.length) return make('p', {class: 'soft'}, caption + ': ' + empty);
  let order = sortBy === undefined ? null : sortBy, falls = true;
  let limit = kRows, wanted = '';
  const left = make('p', {class: 'soft printed'});
  const body = make('tbody');
  const said = make('span', {class: 'soft', 'aria-live': 'polite'});
  const further = make('button', {type: 'button', click: () => {
    limit += 5 * kRows;
    refresh();
  }}, 'Show more rows');
  const heads = columns.map((column, i) => make('th', {
    scope: 'col', class: column.right && 'right',
  }, make('button', {type: 'button', click: () => {
    falls = order === i ? !falls : Boolean(column.right);
    order = i;
    refresh();
  }}, column.name)));

  function open(button, line, row) {
    const isOpen = button.getAttribute('aria-expanded') === 'true';
    button.setAttribute('aria-expanded', String(!isOpen));
    if (isOpen) line.nextSibling.remove();
    else line.after(make('tr', {class: 'more'},
                         make('td', {colspan: columns.length}, more(row))));
  }

  function lineOf(row) {
    const line = make('tr', {}, columns.map((column, i) => {
      const shown = column.show ? column.show(row) : column.get(row);
      const text = i || !more ? shown : make('button', {
        type: 'button', class: 'open', 'aria-expanded': 'false',
        click: event => open(event.currentTarget, line, row),
      }, shown);
      return make('td', {class: column.right ? 'right' : column.kind || ''},
                  text);
    }));
    return line;
  }

  function refresh() {
    let list = rows.filter(row => !wanted || columns.some(
      column => String(column.get(row)).toLowerCase().includes(wanted)));
    const total = list.length;
    if (order !== null) {
      const get = columns[order].get;
      const compare = (a, b) => a < b ? -1 : a > b ? 1 : 0;
      list = [...list].sort((a, b) => (falls ? -1 : 1) *
                                      compare(get(a), get(b)));
    }
    heads.forEach((head, i) => head.setAttribute('aria-sort',
      i !== order ? 'none' : falls ? 'descending' : 'ascending'));
    body.replaceChildren(...list.slice(0, limit).map(lineOf));
    further.hidden = total <= limit;
    left.textContent = total > limit
      ? `${total - limit} more rows: open the file.` : '';
    said.textContent = total > limit ? `${limit} of ${total} rows`
      : wanted ? `${total} of ${rows.length} rows` : '';
  }

  const find = search && make('label', {class: 'tools'}, 'Find ',
    make('input', {type: 'search', input: event => {
      wanted = event.target.value.toLowerCase();
      refresh();
    }}));
  refresh();
  return make('div', {class: 'rows', rows: event => {
    limit = event.detail;
    refresh();
  }}, find || null, ' ', said,
    make('div', {class: 'wide', tabindex: 0, role: 'region',
                 'aria-label': caption},
         make('table', {}, make('caption', {}, caption),
              make('thead', {}, make('tr', {}, heads)), body)), further, left);
}
