import { make, newId } from './dom.js';
import { saved, viewOf } from './draw.js';
import { numbersCSV, saveButton } from './save.js';
import { share, specOf } from './spec.js';
import { showTip } from './tip.js';

// widest is how wide a saved chart is, in pixels.
const widest = 860;

// makeChart builds the frame of a chart; its draw() draws it, as wide as the
// page lets it, with what the filter leaves.
export function makeChart(block, filter) {
  const id = newId('chart');
  const name = ['chart', block.title, block.where].filter(Boolean).join(' ');
  const plot = make('div', { class: 'plot', role: 'img', 'aria-labelledby': id });
  if (block.kind === 'stack') plot.style.minHeight = 26 * block.categories.length + 60 + 'px';
  const save = (kind) => saveButton(kind, name, () => saved(specOf(block, filter, widthFor(block, widest), true), kind));
  const tools = make('div', { class: 'tools' }, saveButton('CSV', name, () => numbersCSV(...numbers(block, filter))), save('SVG'), save('PNG'));
  const details = make('details', { class: 'numbers' }, make('summary', {}, 'The numbers'));
  details.addEventListener('toggle', () => { if (details.open) fill(details, block, filter); });
  const element = make(
    'figure', { class: 'chart' },
    make('div', { class: 'caption' }, make('figcaption', { id }, block.title), tools),
    plot,
    block.words ? make('p', { class: 'words' }, block.words) : null,
    details,
  );
  let view = null;
  let drawnWidth = 0;
  let stale = true;
  const chart = {
    element,
    refresh() {
      stale = true;
      if (details.open) fill(details, block, filter);
    },
    // draw gives true where it drew it again.
    async draw() {
      const width = Math.floor(plot.clientWidth);
      if (width <= 0 || (!stale && width === drawnWidth)) return false;
      stale = false;
      drawnWidth = width;
      if (view) view.finalize();
      view = viewOf(specOf(block, filter, widthFor(block, width), false), {});
      view.tooltip(showTip).renderer('svg').initialize(plot).hover();
      await view.runAsync();
      const drawing = plot.querySelector('svg');
      if (drawing) drawing.setAttribute('aria-hidden', 'true');
      return true;
    },
    // data is what is drawn, for those who look behind it.
    data: () => (view ? view.data('points') : []),
  };
  plot.chart = chart;
  return chart;
}

// widthFor keeps a few bars from being as wide as a page, and leaves their labels
// room for a word.
function widthFor(block, width) {
  if (block.kind !== 'bars') return width;
  return Math.min(width, Math.max(260, 110 + Math.max(34 * block.series.length, 100) * block.categories.length));
}

// leavesChart tells whether the filter leaves anything of a chart.
export function leavesChart(block, filter) {
  const some = (list) => !list || list.length === 0 || list.some((x) => filter.shows(x.of));
  return filter.shows(block.of) && some(block.series) && some(block.categories);
}

// numbers are the column names and rows behind a chart.
function numbers(block, filter) {
  const unit = (a) => (a.unit && a.unit !== '1' ? `${a.title} (${a.unit})` : a.title);
  const series = block.series.filter((s) => filter.shows(s.of));
  const bounds = series.some((s) => s.low);
  const names = block.kind === 'stack' ? ['network', 'part', unit(block.x)] : ['series', unit(block.x), unit(block.y)];
  if (bounds) names.push('low', 'high');
  const rows = [];
  for (const s of series) {
    s.y.forEach((y, i) => {
      const c = block.categories && block.categories[i];
      if (y == null || (c && !filter.shows(c.of))) return;
      const where = c ? c.name : block.x.scale === 'nines' ? share(s.x[i]) : s.x[i];
      const row = block.kind === 'stack' ? [where, s.name, y] : [s.name, where, y];
      if (bounds) row.push(s.low ? s.low[i] : null, s.high ? s.high[i] : null);
      rows.push(row);
    });
  }
  return [names, rows];
}

// fill puts the numbers behind a chart into a table.
function fill(details, block, filter) {
  const [names, rows] = numbers(block, filter);
  const say = (v) => (typeof v === 'number' ? String(v) : v == null ? '' : v);
  const table = make(
    'table', { 'aria-label': block.title },
    make('thead', {}, make('tr', {}, ...names.map((n) => make('th', { scope: 'col' }, n)))),
    make('tbody', {}, ...rows.map((r) => make('tr', {}, ...r.map((v, i) => make(i === 0 ? 'th' : 'td', i === 0 ? { scope: 'row' } : { class: typeof v === 'number' ? 'number' : null }, say(v)))))),
  );
  for (const old of details.querySelectorAll('.scroll')) old.remove();
  details.append(make('div', { class: 'scroll tall', role: 'region', tabindex: '0', 'aria-label': 'The numbers of ' + block.title }, table));
}
