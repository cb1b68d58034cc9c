import { palette } from './colours.js';
import { make, newId, svg } from './dom.js';
import { rasterised } from './draw.js';
import { numbersCSV, saveButton } from './save.js';
import { hideTip, tipAt } from './tip.js';

const rowHeight = 18;
const letter = 6.3; // width of one, in pixels, at this size
const fontSize = 11;
const savedWidth = 1200;

// makeFlame builds a flame graph: functions below their callers, as wide as their
// CPU time. The reader chooses the network, looks into a function, finds others.
export function makeFlame(data, block, filter) {
  const id = newId('chart');
  const trees = block.series.map((s) => treeOf(data, s));
  let at = 0; // the network that is shown
  let into = null; // the function that is looked into; null is the whole
  let current = null; // the one that the keyboard is at
  let found = '';
  let drawnWidth = 0;
  let stale = true;

  const networks = make('select', { onchange: () => { at = Number(networks.value); look(null); } });
  const search = make('input', { type: 'search', size: 14, oninput: () => { found = search.value.trim().toLowerCase(); redraw(); } });
  const whole = make('button', { type: 'button', class: 'reset', hidden: true, onclick: () => look(null) }, 'Whole graph');
  const status = make('span', { role: 'status', class: 'status' });
  const plot = make('div', { class: 'plot flame', role: 'group', 'aria-labelledby': id });
  const name = () => ['chart', block.title, block.series[at].name, block.where].filter(Boolean).join(' ');
  const drawing = () => picture(block, trees[at], into, found, savedWidth);
  const tools = make('div', { class: 'tools' },
    saveButton('CSV', block.title, () => numbersCSV(...numbers(data, trees[at])), name),
    saveButton('SVG', block.title, () => text(drawing()), name),
    saveButton('PNG', block.title, () => rasterised(text(drawing()), 2), name));
  const details = make('details', { class: 'numbers' }, make('summary', {}, 'The numbers'));
  details.addEventListener('toggle', fill);
  const element = make('figure', { class: 'chart flame' },
    make('div', { class: 'caption' }, make('figcaption', { id }, block.title), tools),
    make('div', { class: 'choose' }, make('label', {}, 'Network ', networks), make('label', { class: 'screen' }, 'Find a function ', search), whole, status),
    plot, legend(data, trees), block.words ? make('p', { class: 'words' }, block.words) : null, details);

  function look(node) {
    into = node;
    current = node;
    whole.hidden = !node;
    fill();
    redraw();
  }

  function choices() {
    const left = block.series.map((s, i) => [s, i]).filter(([s]) => filter.shows(s.of));
    networks.replaceChildren(...left.map(([s, i]) => make('option', { value: i }, s.name)));
    if (left.length > 0 && !left.some(([, i]) => i === at)) [[, at], into, current] = [left[0], null, null];
    networks.value = String(at);
    whole.hidden = !into;
  }

  function fill() {
    for (const old of details.querySelectorAll('.scroll')) old.remove();
    if (details.open) details.append(table(block, ...numbers(data, trees[at])));
  }

  function redraw() {
    const width = Math.floor(plot.clientWidth);
    if (width <= 0) return;
    drawnWidth = width;
    stale = false;
    const held = plot.contains(document.activeElement);
    const tree = trees[at];
    const boxes = lay(tree, into, width);
    if (!current || !boxes.some((b) => b.node === current)) current = boxes[0].node;
    const drawn = drawBoxes(boxes, tree, palette(false), found, true);
    drawn.forEach((g, i) => { g.node = boxes[i].node; g.setAttribute('tabindex', boxes[i].node === current ? '0' : '-1'); });
    const height = rowHeight * (1 + Math.max(...boxes.map((b) => b.row)));
    plot.replaceChildren(svg('svg', { role: 'tree', 'aria-label': `${block.series[at].name}: functions by CPU time`, width, height, viewBox: `0 0 ${width} ${height}` }, ...drawn));
    plot.style.minHeight = height + 'px';
    if (held) focus(current);
    status.textContent = found ? `${percent(share(tree, found))} of the time is in functions with “${found}”` : into ? `${into.name}: ${percent(into.under / tree.under)} of the time` : '';
  }

  function focus(node) {
    for (const g of plot.querySelectorAll('[role=treeitem]')) {
      g.setAttribute('tabindex', g.node === node ? '0' : '-1');
      if (g.node === node) g.focus();
    }
    current = node;
  }

  plot.addEventListener('click', (e) => { const g = e.target.closest('[role=treeitem]'); if (g) look(g.node.above ? g.node : null); });
  plot.addEventListener('pointermove', (e) => { const g = e.target.closest('[role=treeitem]'); if (g) tipAt(e, words(data, trees[at], g.node)); else hideTip(); });
  plot.addEventListener('pointerleave', hideTip);
  plot.addEventListener('keydown', (e) => {
    const go = { ArrowDown: below, ArrowUp: (n) => n.above, ArrowRight: (n) => beside(n, 1), ArrowLeft: (n) => beside(n, -1), Home: () => trees[at] }[e.key];
    if (go) {
      const next = current && go(current);
      if (next && [...plot.querySelectorAll('[role=treeitem]')].some((g) => g.node === next)) focus(next);
    } else if (e.key === 'Enter' || e.key === ' ') look(current && current.above ? current : null);
    else if (e.key === 'Escape' && into) look(null);
    else return;
    e.preventDefault();
  });

  plot.chart = {
    // data is what is drawn, for those who look behind it.
    data: () => [...plot.querySelectorAll('[role=treeitem]')].map((g) => ({ s: block.series[at].name, f: g.node.name, d: g.node.depth, y: g.node.under / 1e6, own: g.node.own / 1e6, w: Number(g.querySelector('rect').getAttribute('width')) })),
  };
  choices();
  return {
    element,
    refresh() { stale = true; choices(); fill(); },
    async draw() {
      if (!stale && Math.floor(plot.clientWidth) === drawnWidth) return false;
      redraw();
      return true;
    },
  };

  // words say what a function is.
  function words(data, tree, n) {
    const own = n.above ? [`itself ${seconds(n.own)}, ${percent(n.own / tree.under)}; ${data.components[n.component]}`] : [];
    return [n.name, `${seconds(n.under)}, ${percent(n.under / tree.under)} of the time`, ...own];
  }

  function drawBoxes(boxes, tree, colours, found, named) {
    const fills = [...colours.m, ...colours.c];
    const inks = [...colours.mt, ...colours.ct];
    return boxes.map(({ node, x, width, row }) => {
      const hit = found && node.name.toLowerCase().includes(found);
      const fill = node.above ? fills[node.component] : colours.line;
      const room = Math.floor((width - 6) / letter);
      const label = node.name.length <= room ? node.name : room > 3 ? node.name.slice(0, room - 1) + '…' : '';
      const g = svg('g', named ? { role: 'treeitem', 'aria-level': node.depth + 2, 'aria-label': words(data, tree, node).join(', '), class: hit ? 'hit' : found ? 'miss' : 'box' } : { opacity: found && !hit ? 0.35 : 1 },
        svg('rect', { x: round(x), y: row * rowHeight, width: round(Math.max(0.5, width)), height: rowHeight - 1, fill, stroke: hit ? colours.limit : colours.paper, 'stroke-width': hit ? 2 : width > 3 ? 1 : 0 }));
      if (label) g.append(svg('text', { x: round(x + 4), y: row * rowHeight + 12.5, 'font-size': fontSize, fill: node.above ? inks[node.component] : colours.ink, 'aria-hidden': 'true' }, label));
      return g;
    });
  }

  // picture is the graph as a file of its own.
  function picture(block, tree, into, found, width) {
    const colours = palette(true);
    const boxes = lay(tree, into, width - 24);
    const top = 52;
    const height = rowHeight * (1 + Math.max(...boxes.map((b) => b.row)));
    const names = used(tree);
    const columns = Math.floor((width - 24) / 190);
    const keys = names.map((c, i) => svg('g', { transform: `translate(${12 + 190 * (i % columns)} ${top + height + 14 + 18 * Math.floor(i / columns)})` },
      svg('rect', { width: 12, height: 12, fill: [...colours.m, ...colours.c][c] }), svg('text', { x: 18, y: 10.5, 'font-size': 12, fill: colours.ink }, data.components[c])));
    const all = top + height + 22 + 18 * Math.ceil(names.length / columns);
    return svg('svg', { xmlns: 'http://www.w3.org/2000/svg', width, height: all, viewBox: `0 0 ${width} ${all}`, 'font-family': 'system-ui, "DejaVu Sans", sans-serif' },
      svg('rect', { width, height: all, fill: colours.paper }),
      svg('text', { x: 12, y: 22, 'font-size': 14, 'font-weight': 600, fill: colours.ink }, `${block.title}: ${tree.network}`),
      svg('text', { x: 12, y: 40, 'font-size': 12, fill: colours.soft }, [block.where, into ? 'inside ' + into.name : '', `CPU time of ${tree.samples} samples: ${seconds(tree.under)}`].filter(Boolean).join('; ')),
      svg('g', { transform: `translate(12 ${top})` }, ...drawBoxes(boxes, tree, colours, found, false)), ...keys);
  }
}

// treeOf makes the functions of a network a tree; its root is all of them.
function treeOf(data, series) {
  const s = series.stacks;
  const root = { name: 'all', network: series.name, samples: s.samples, under: s.total, own: 0, depth: -1, component: 0, below: [], above: null };
  const callers = [root];
  s.f.forEach((f, i) => {
    const above = callers[s.d[i]];
    const node = { name: data.functions[f], component: s.c[i], depth: s.d[i], under: s.t[2 * i], own: s.t[2 * i + 1], below: [], above };
    above.below.push(node);
    callers[s.d[i] + 1] = node;
  });
  return root;
}

// lay gives each function its box: the callers of what is looked into above it,
// as wide as the whole. What is narrower than half a pixel has none.
function lay(tree, into, width) {
  const out = [];
  const callers = [];
  for (let n = (into || tree).above; n; n = n.above) callers.unshift(n);
  callers.forEach((node, row) => out.push({ node, x: 0, width, row }));
  const per = width / Math.max(1, (into || tree).under);
  (function put(node, x, row) {
    out.push({ node, x, width: node.under * per, row });
    for (const b of node.below) {
      if (b.under * per >= 0.5) put(b, x, row + 1);
      x += b.under * per;
    }
  })(into || tree, 0, callers.length);
  return out;
}

const below = (n) => n.below.reduce((most, b) => (!most || b.under > most.under ? b : most), null);
const beside = (n, by) => n.above && n.above.below[n.above.below.indexOf(n) + by];

// share is the part of the time that is in functions of such a name.
function share(tree, found) {
  const within = (n) => (n.above && n.name.toLowerCase().includes(found) ? n.under : n.below.reduce((sum, b) => sum + within(b), 0));
  return within(tree) / tree.under;
}

function used(tree) {
  const seen = new Set();
  (function walk(n) {
    if (n.above) seen.add(n.component);
    n.below.forEach(walk);
  })(tree);
  return [...seen].sort((a, b) => a - b);
}

function legend(data, trees) {
  const all = [...new Set(trees.flatMap(used))].sort((a, b) => a - b);
  return make('div', { class: 'legend', 'aria-hidden': 'true' }, ...all.map((c) => make('span', { class: 'key key' + (c + 1) }, data.components[c])));
}

// numbers are the functions, each once, the largest own time first. Of calls
// inside calls of the same function the outer one counts.
function numbers(data, tree) {
  const rows = new Map();
  (function walk(n, within) {
    if (n.above) {
      const row = rows.get(n.name) || { component: n.component, under: 0, own: 0, most: -1 };
      if (!within.includes(n.name)) row.under += n.under;
      row.own += n.own;
      if (n.own > row.most) [row.component, row.most] = [n.component, n.own];
      rows.set(n.name, row);
    }
    for (const b of n.below) walk(b, [...within, n.name]);
  })(tree, []);
  const sorted = [...rows].sort(([a, x], [b, y]) => y.own - x.own || y.under - x.under || (a < b ? -1 : 1));
  return [
    ['function', 'component', 'CPU time itself (s)', 'CPU time with callees (s)', 'share with callees (%)'],
    sorted.map(([name, r]) => [name, data.components[r.component], r.own / 1e6, r.under / 1e6, Number(((100 * r.under) / tree.under).toPrecision(4))]),
  ];
}

function table(block, names, rows) {
  return make('div', { class: 'scroll tall', role: 'region', tabindex: '0', 'aria-label': 'The numbers of ' + block.title },
    make('table', { 'aria-label': block.title },
      make('thead', {}, make('tr', {}, ...names.map((n) => make('th', { scope: 'col' }, n)))),
      make('tbody', {}, ...rows.map((r) => make('tr', {}, make('th', { scope: 'row' }, r[0]), ...r.slice(1).map((v) => make('td', { class: typeof v === 'number' ? 'number' : null }, String(v))))))));
}

const text = (drawing) => new XMLSerializer().serializeToString(drawing);
const round = (v) => Number(v.toFixed(2));
const percent = (v) => `${Number((100 * v).toPrecision(3))}\u00a0%`;
const seconds = (us) => (us >= 1e6 ? `${Number((us / 1e6).toPrecision(4))} s` : `${Number((us / 1e3).toPrecision(4))} ms`);
