import { cellText, cellValue, rankText } from './data.js';
import { palette } from './colours.js';
import { finish } from './spec.js';

// Tables as drawings, for papers and slides.

// heatSpec is a heat table: networks × traffics, the figures in the cells.
export function heatSpec(data, block, visible) {
  const colours = palette(true);
  const columns = block.columns.map((c, i) => ({ ...c, i })).filter((c) => c.i > 0 && visible.columns[c.i]);
  const name = (c) => (c.sub ? c.head + '\n' + c.sub : c.head);
  const rows = [];
  block.rows.forEach((row, r) => {
    if (!visible.rows[r]) return;
    for (const c of columns) {
      const cell = row[c.i];
      const [, , rank, shade] = Array.isArray(cell) ? cell : [];
      rows.push({ r: cellText(row[0]), c: name(c), words: cellText(cell) + (rank ? '\n' + rankText(rank) : ''), shade: shade || 0 });
    }
  });
  const at = { x: { field: 'c', type: 'nominal', sort: columns.map(name), axis: { title: null, orient: 'top', labelAngle: 0, labelExpr: "split(datum.value, '\\n')", domain: false, ticks: false, labelColor: colours.ink, labelLimit: 170 } }, y: { field: 'r', type: 'nominal', sort: block.rows.map((row) => cellText(row[0])), axis: { title: null, labelColor: colours.ink, labelLimit: 240 } } };
  const scale = (range) => ({ domain: [0, ...range.map((_, i) => i + 1)], range: [colours.paper, ...range] });
  const words = (range) => ({ domain: [0, ...range.map((_, i) => i + 1)], range: [colours.ink, ...range] });
  const width = Math.max(360, 160 + 170 * columns.length);
  return finish({
    height: { step: 38 }, data: { values: rows },
    layer: [
      { mark: { type: 'rect', stroke: colours.line }, encoding: { ...at, color: { field: 'shade', type: 'ordinal', scale: scale(colours.s), legend: null } } },
      { mark: { type: 'text', fontSize: 12, lineBreak: '\n', dy: { expr: "indexof(datum.words, '\\n') < 0 ? 0 : -7" }, baseline: 'middle' }, encoding: { ...at, text: { field: 'words' }, color: { field: 'shade', type: 'ordinal', scale: words(colours.t), legend: null } } },
    ],
    resolve: { scale: { color: 'independent' } },
  }, block.caption, block.where, colours, width, true);
}

// rangesSpec is a table of values with intervals, drawn from 0.
export function rangesSpec(data, block, visible) {
  const colours = palette(true);
  const rows = [];
  block.rows.forEach((row, r) => {
    const drawn = row.find((cell) => cell && cell.b);
    const value = cellValue(row[1]);
    if (!visible.rows[r] || !drawn || value == null) return;
    const whole = value / drawn.b[1];
    rows.push({ n: cellText(row[0]), v: value, lo: drawn.b[0] * whole, hi: drawn.b[2] * whole, words: cellText(row[1]) });
  });
  const y = { field: 'n', type: 'nominal', sort: rows.map((r) => r.n), axis: { title: null, labelColor: colours.ink, labelLimit: 240 }, scale: { paddingInner: 0.3 } };
  const most = Math.max(...rows.map((r) => Math.max(r.v, r.hi)));
  const x = (field) => ({ field, type: 'quantitative', scale: { domain: [0, most * 1.3], nice: false }, axis: { title: block.columns[1].head + ' (base unit)', format: '~s', grid: true, domain: false, tickCount: 6 } });
  return finish({
    height: { step: 28 }, data: { values: rows },
    layer: [
      { mark: { type: 'bar', color: colours.m[0] }, encoding: { y, x: x('v') } },
      { mark: { type: 'rule', color: colours.ink, strokeWidth: 3 }, encoding: { y, x: x('lo'), x2: { field: 'hi' } } },
      { mark: { type: 'text', align: 'left', dx: 8, fontSize: 12 }, encoding: { y, x: x('hi'), text: { field: 'words' } } },
    ],
  }, block.caption, block.where, colours, 760, true);
}
