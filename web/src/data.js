// The data of the page: JSON, gzip, base64.
export async function load() {
  const text = document.getElementById('data').textContent.trim();
  const packed = atob(text);
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return JSON.parse(await new Response(stream).text());
}

// unpackSeries makes the numbers of a chart ready to draw.
export function unpackSeries(block) {
  const numbers = (packed) => packed && unpack(packed);
  return { ...block, series: block.series.map((s) => ({ ...s, x: numbers(s.x), y: unpack(s.y), low: numbers(s.low), high: numbers(s.high) })) };
}

// unpack makes numbers of [e, v, d, …], which are v × 10^e, (v + d) × 10^e …;
// null is absent. A division by a power of ten is exact where a multiplication
// is not.
function unpack([exponent, ...steps]) {
  const factor = 10 ** Math.abs(exponent);
  let whole = 0;
  return steps.map((d) => {
    if (d === null) return null;
    whole += d;
    return exponent < 0 ? whole / factor : whole * factor;
  });
}

// cellText is what a place of a table says.
export function cellText(cell) {
  if (typeof cell === 'string') return cell;
  if (Array.isArray(cell)) return cell[0];
  return cell.l;
}

// cellValue is the number behind it, in base units; null: none.
export function cellValue(cell) {
  return Array.isArray(cell) ? cell[1] : null;
}

// rankText is a network's rank in words.
export function rankText(rank) {
  return rank === 'link' ? 'link-bound' : rank;
}
