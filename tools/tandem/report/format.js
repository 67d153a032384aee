// How numbers and types are written: as the tools write them.

const kUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

// One digit behind the point; what lies between two is rounded to the even one,
// as printf does.
function oneDigit(value) {
  const tenths = value * 10, below = Math.floor(tenths);
  const isTie = tenths - below === 0.5;
  return ((isTie ? below + below % 2 : Math.round(tenths)) / 10).toFixed(1);
}

function bytesText(bytes) {
  let unit = 0, value = bytes;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return (unit ? oneDigit(value) : value.toFixed(0)) + ' ' + kUnits[unit];
}

// A number of things, with a thousand's letter.
function countText(count) {
  const letters = ['', ' k', ' M', ' G', ' T', ' P'];
  let letter = 0, value = count;
  for (; value >= 1000 && letter < 5; ++letter) value /= 1000;
  const digits = letter && value < 100 ? (value < 10 ? 2 : 1) : 0;
  return value.toFixed(digits) + letters[letter];
}

function secondsText(seconds) {
  if (!seconds) return '0 s';
  if (seconds >= 1) return seconds.toPrecision(3) + ' s';
  if (seconds >= 1e-3) return (seconds * 1e3).toPrecision(3) + ' ms';
  if (seconds >= 1e-6) return (seconds * 1e6).toPrecision(3) + ' µs';
  return (seconds * 1e9).toPrecision(3) + ' ns';
}

function percentText(part) {
  return (part * 100).toFixed(1) + ' %';
}

function typeText(dtype, shape) {
  return dtype + '[' + shape.join(', ') + ']';
}

const kElementBytes = {
  bool: 1, i8: 1, u8: 1, i16: 2, u16: 2, i32: 4, u32: 4, i64: 8, u64: 8,
  f16: 2, bf16: 2, f32: 4, f64: 8, f8E4M3FN: 1, f8E5M2: 1,
};

function bytesOf(dtype, shape) {
  return shape.reduce((count, size) => count * size, kElementBytes[dtype]);
}

// 'tandem.exp' as 'exp'.
function opText(op) {
  return op.startsWith('tandem.') ? op.slice(7) : op;
}
