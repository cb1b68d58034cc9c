import { cellText, cellValue, rankText } from './data.js';
import { make, newId, svg } from './dom.js';
import { saveButton, tableCSV } from './save.js';

// longRows is how many rows are on a page in full; more are looked through in a
// box of their own.
const longRows = 40;

// makeTable builds a table; its refresh() hides what the filter does not want
// and tells whether anything is left.
export function makeTable(data, block, filter, drawn) {
  const id = newId('table');
  const columns = block.columns;
  const head = make('tr', {}, ...columns.map((c) => make('th', { scope: 'col', class: c.number ? 'number' : null }, c.head, c.sub ? make('small', {}, c.sub) : null)));
  const rows = block.rows.map((row) => make('tr', {}, ...row.map((cell, i) => tableCell(cell, columns[i] || {}, i))));
  const table = make('table', { 'aria-labelledby': id }, make('thead', {}, head), make('tbody', {}, ...rows));
  const visible = () => ({
    rows: block.rows.map((_, r) => filter.shows(block.rowOf && block.rowOf[r])),
    columns: columns.map((c) => filter.shows(c.of)),
  });
  const tools = make('div', { class: 'tools' }, saveButton('CSV', 'table ' + block.caption, () => tableCSV(block, visible())), ...drawn(block, visible));
  const element = make(
    'figure', { class: 'table' },
    make('div', { class: 'caption' }, make('figcaption', { id }, block.caption), tools),
    make('div', { class: rows.length > longRows ? 'scroll long' : 'scroll', role: 'region', tabindex: '0', 'aria-labelledby': id }, table),
    block.legend ? legend(data.steps) : null,
    block.notes ? make('ul', { class: 'notes' }, ...block.notes.map((n) => make('li', {}, n))) : null,
  );
  return {
    element,
    refresh() {
      const v = visible();
      rows.forEach((tr, r) => { tr.hidden = !v.rows[r]; });
      for (const tr of [head, ...rows]) for (let i = 0; i < tr.cells.length; i++) tr.cells[i].hidden = !v.columns[i];
    },
  };
}

// leaves tells whether the filter leaves anything of a table.
export function leaves(block, filter) {
  const rows = !block.rowOf || block.rows.length === 0 || block.rowOf.some((of) => filter.shows(of));
  const own = block.columns.slice(1);
  return filter.shows(block.of) && rows && (own.length === 0 || own.some((c) => filter.shows(c.of)));
}

function tableCell(cell, column, i) {
  if (i === 0) return make('th', { scope: 'row', class: column.wide ? 'wide' : null }, cellText(cell));
  const classes = [column.number ? 'number' : '', column.wide ? 'wide' : ''];
  if (cell && cell.b) return make('td', {}, intervalBar(cell));
  if (!Array.isArray(cell)) return make('td', { class: classes.join(' ').trim() || null }, cellText(cell));
  const [words, , rank, shade] = cell;
  if (shade) classes.push('shade', 'shade' + shade);
  const value = cellValue(cell);
  return make(
    'td', { class: classes.join(' ').trim() || null },
    value == null ? words : make('data', { value }, words),
    rank ? make('small', { class: 'rank' }, rankText(rank)) : null,
  );
}

const barWidth = 200;

// intervalBar draws a value from 0, and its interval.
function intervalBar({ b: [low, mid, high], l }) {
  return svg(
    'svg', { class: 'bar', role: 'img', 'aria-label': l, viewBox: `0 0 ${barWidth} 16`, preserveAspectRatio: 'none', width: barWidth, height: 16 },
    svg('rect', { class: 'value', x: 0, y: 2, width: barWidth * mid, height: 12 }),
    svg('rect', { class: 'range', x: barWidth * low, y: 5, width: Math.max(1, barWidth * (high - low)), height: 6 }),
    svg('rect', { class: 'mid', x: Math.min(Math.max(barWidth * mid - 1, 0), barWidth - 2), y: 1, width: 2, height: 14 }),
  );
}

function legend(steps) {
  return make('div', { class: 'legend', 'aria-hidden': 'true' }, make('span', {}, 'efficiency'), ...steps.map((s, i) => make('span', { class: 'shade shade' + (i + 1) }, s)));
}
