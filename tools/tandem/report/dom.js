// Elements. What comes from facts is text or a number in every case: nothing
// here reads HTML, and names of elements and attributes are those of this page.

const kSvg = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes))
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value !== undefined)
      element.setAttribute(name, value);
  for (const child of children.flat(Infinity))
    if (child !== null && child !== undefined)
      element.append(child instanceof Node ? child : String(child));
  return element;
}

// A listener is an attribute that is a function.
function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(kSvg, tag), attributes, children);
}

// A picture that a narrow window shows a part of: it says so, and scrolls.
function widePicture(picture) {
  return [make('p', {class: 'soft narrow'},
    'The picture goes on to the right: scroll it, or go through it with the ' +
    'arrow keys.'), make('div', {class: 'wide'}, picture)];
}

// Brings a part of a picture into sight that was chosen with a key.
function intoSight(item) {
  if (item) item.scrollIntoView({block: 'nearest', inline: 'nearest'});
}

// A number as people read it, with itself behind it.
function number(value, text, id) {
  return make('data', {
    value, id: id && 'fact-' + id, title: value.toLocaleString('en')}, text);
}
const bytes = (value, id) => number(value, bytesText(value), id);
const count = (value, id) => number(value, countText(value), id);
const seconds = (value, id) => number(value, secondsText(value), id);

function card(value, what) {
  return make('div', {class: 'card'}, make('b', {}, value),
              make('span', {}, what));
}

// A choice among texts; `chosen` gets the place of the new one.
function choice(label, texts, now, chosen) {
  const select = make('select', {
    change: () => chosen(select.selectedIndex),
  }, texts.map((text, i) => make('option', {value: i, selected: i === now},
                                 text)));
  return make('label', {}, label + ' ', select);
}

function legend(texts) {
  return make('ul', {class: 'legend'}, texts.map((text, i) => make('li', {},
    draw('svg', {viewBox: '0 0 10 10', 'aria-hidden': 'true'},
         draw('rect', {width: 10, height: 10, class: 'c' + i % 10})),
    ' ', text)));
}

// A bar that is cut into `parts`, [{name, value}]; with its legend.
function partsBar(parts, label) {
  const whole = parts.reduce((sum, part) => sum + part.value, 0) || 1;
  let x = 0;
  const pieces = parts.map((part, i) => {
    const width = part.value / whole * 1000;
    const piece = draw('rect', {x, y: 0, width, height: 30,
                                class: 'item c' + i % 10},
                       draw('title', {}, part.name + ': ' + part.text));
    x += width;
    return piece;
  });
  return [draw('svg', {viewBox: '0 0 1000 30', role: 'img',
                       'aria-label': label, preserveAspectRatio: 'none',
                       height: 30}, pieces),
          legend(parts.map(part => part.name + ' ' + part.text))];
}
