import { make } from './dom.js';

let tip = null;

// showTip shows what is under the pointer.
export function showTip(handler, event, item, value) {
  const row = item && item.datum;
  if (value == null || !row || !row.yt) {
    hideTip();
    return;
  }
  const lines = [row.s, `${row.xt.title || ''} ${where(row)}`.trim(), `${row.yt.title} ${si(row.y, row.yt.unit)}`];
  if (row.lo != null && row.hi != null) lines.push(`${si(row.lo, row.yt.unit)} to ${si(row.hi, row.yt.unit)}`);
  tipAt(event, lines);
}

export function hideTip() {
  if (tip) tip.hidden = true;
}

// tipAt shows some lines beside the pointer.
export function tipAt(event, lines) {
  if (!tip) {
    tip = make('div', { class: 'tip', 'aria-hidden': 'true', hidden: true });
    document.body.append(tip);
  }
  tip.replaceChildren(...lines.map((l, i) => make(i === 0 ? 'strong' : 'span', {}, l)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, document.documentElement.clientWidth - box.width - 4)) + 'px';
  tip.style.top = Math.max(4, event.clientY + 14 + box.height > window.innerHeight ? event.clientY - box.height - 10 : event.clientY + 14) + 'px';
}

function where(row) {
  if (row.xt.scale === 'nines') return Number((100 * row.x0).toPrecision(6)) + ' %';
  return typeof row.x0 === 'number' ? si(row.x0, row.xt.unit) : row.x0;
}

const prefixes = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, ''], [1e-3, 'm'], [1e-6, 'µ'], [1e-9, 'n']];

// si says a number with an SI prefix and four digits.
function si(v, unit) {
  const named = unit && unit !== '1' ? unit : '';
  if (v === 0 || (named === '' && Math.abs(v) >= 0.001 && Math.abs(v) < 1e5) || (named === 'B' && v < 1e5)) return `${Number(v.toPrecision(4))} ${named}`.trim();
  const [factor, prefix] = prefixes.find(([f]) => Math.abs(v) >= f) || prefixes[prefixes.length - 1];
  return `${Number((v / factor).toPrecision(4))} ${prefix}${named}`.trim();
}
