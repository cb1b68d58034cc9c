import { look, palette } from './colours.js';

const font = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';

// specOf is a chart as Vega-Lite, of the series and categories that the filter
// leaves. saved charts carry their title and spelt-out colours.
export function specOf(block, filter, width, saved) {
  const colours = palette(saved);
  const left = {
    ...block,
    series: block.series.filter((s) => filter.shows(s.of)),
    categories: (block.categories || []).map((c, at) => ({ ...c, at })).filter((c) => filter.shows(c.of)),
  };
  const kinds = { lines, bars, stack };
  const spec = kinds[block.kind](left, colours, width);
  return finish(spec, block.title, block.where, colours, width, saved);
}

// finish gives a drawing what all have in common.
export function finish(spec, title, where, colours, width, saved) {
  return {
    ...(saved ? { title: { text: title, ...(where && where !== title ? { subtitle: where } : {}), anchor: 'start', frame: 'group', fontSize: 14, offset: 14 }, background: colours.paper, padding: 12 } : { background: null, padding: 2 }),
    width, autosize: { type: 'fit-x', contains: 'padding' },
    ...spec,
    config: {
      font, view: { stroke: null },
      axis: { labelColor: colours.soft, titleColor: colours.ink, titleFontWeight: 500, titleFontSize: 12, labelFontSize: 12, gridColor: colours.line, domainColor: colours.line, tickColor: colours.line, labelLimit: 160, titlePadding: 8 },
      axisX: { grid: false },
      axisY: { domain: false, ticks: false, labelPadding: 6 },
      legend: { labelColor: colours.ink, labelFontSize: 12, labelLimit: 220, symbolSize: 90, symbolStrokeWidth: 2, orient: 'bottom', direction: 'horizontal', titleColor: colours.soft, columnPadding: 14, rowPadding: 3, offset: 10 },
      title: { color: colours.ink, fontWeight: 600, subtitleColor: colours.soft, subtitleFontSize: 12, subtitlePadding: 5 },
      text: { color: colours.ink },
      ...spec.config,
    },
  };
}

// columnsFor is how many names of a legend fit side by side.
function columnsFor(names, width) {
  const longest = Math.max(4, ...names.map((n) => n.length));
  return Math.max(1, Math.floor(width / (Math.min(longest, 34) * 7.2 + 42)));
}

// si says how an axis writes numbers of a unit.
function si(unit) {
  if (unit === 's') return "datum.value == 0 ? '0' : format(datum.value, '~s') + 's'";
  if (unit === 'B') return "datum.value < 1e5 ? format(datum.value, 'd') : format(datum.value, '~s')";
  if (unit === '') return "format(datum.value, '~r')";
  return "abs(datum.value) >= 1000 || datum.value == 0 ? format(datum.value, '~s') : format(datum.value, '~g')";
}

const axisTitle = (a) => (a.unit && a.unit !== 's' && a.unit !== '1' ? `${a.title} (${a.unit})` : a.title);

// nines is how far along an axis of percentiles a share beyond is.
const nines = (beyond) => -Math.log10(beyond);

const percentTicks = [[0, '0 %'], [nines(0.5), '50 %'], [1, '90 %'], [2, '99 %'], [3, '99.9 %'], [4, '99.99 %'], [5, '99.999 %']];

// share is what a share beyond leaves: 0.99 of 0.01.
export const share = (beyond) => Number((1 - beyond).toPrecision(8));

function xOf(axis, values) {
  const e = { field: 'x', type: 'quantitative', axis: { title: axisTitle(axis), labelExpr: si(axis.unit || '') } };
  const points = [...new Set(values)].sort((a, b) => a - b);
  switch (axis.scale) {
    case 'nines': {
      const most = Math.max(...values);
      const ticks = percentTicks.filter(([v]) => v <= most + 0.01);
      e.scale = { domain: [0, most], nice: false };
      e.axis.values = ticks.map(([v]) => v);
      e.axis.labelExpr = ticks.reduceRight((rest, [v, words]) => `abs(datum.value - ${v}) < 1e-6 ? '${words}' : ${rest}`, "''");
      e.axis.labelOverlap = 'greedy';
      break;
    }
    case 'log2':
      e.scale = { type: 'log', base: 2, domain: [points[0], points[points.length - 1]], nice: false };
      e.axis.values = points;
      e.axis.labelOverlap = 'greedy';
      break;
    default:
      e.scale = { zero: false, nice: false };
      if (points.length <= 12 && points.every(Number.isInteger)) e.axis.values = points;
      e.axis.tickMinStep = points.every(Number.isInteger) ? 1 : undefined;
  }
  return e;
}

function yOf(axis, values) {
  const e = { field: 'y', type: 'quantitative', axis: { title: axisTitle(axis), labelExpr: si(axis.unit || ''), tickCount: 6 }, scale: { zero: true } };
  const low = Math.min(...values);
  const high = Math.max(...values);
  if (axis.scale === 'log' && low > 0 && high / low > 5) {
    e.scale = { type: 'log', domain: [low * 0.95, high * 1.05], nice: false };
    const ticks = [];
    for (let p = Math.floor(Math.log10(low)); p <= Math.log10(high); p++) for (const d of high / low > 200 ? [1] : [1, 2, 5]) ticks.push(d * 10 ** p);
    e.axis.values = ticks.filter((v) => v >= low * 0.95 && v <= high * 1.05);
  } else if (axis.scale) {
    e.scale = { zero: false, nice: true };
  }
  return e;
}

const present = (v) => v != null;

function lines(chart, colours, width) {
  const toX = chart.x.scale === 'nines' ? nines : (v) => v;
  const rows = chart.series.flatMap((s) => s.y.map((y, i) => ({ s: s.name, x: toX(s.x[i]), x0: chart.x.scale === 'nines' ? share(s.x[i]) : s.x[i], y, lo: s.low ? s.low[i] : null, hi: s.high ? s.high[i] : null, xt: chart.x, yt: chart.y })).filter((r) => present(r.y)));
  const names = chart.series.map((s) => s.name);
  const looks = chart.series.map((s) => look(s.network, colours));
  const limit = chart.limit;
  const values = rows.flatMap((r) => [r.y, r.lo, r.hi].filter(present)).concat(limit ? [limit.value] : []);
  const x = xOf(chart.x, rows.map((r) => r.x));
  const y = yOf(chart.y, values);
  const legend = { title: null, columns: columnsFor(names, width), symbolType: 'stroke' };
  const colour = { field: 's', type: 'nominal', sort: null, scale: { domain: names, range: looks.map((l) => l.colour) }, legend };
  const dash = { field: 's', type: 'nominal', sort: null, scale: { domain: names, range: looks.map((l) => l.dash) }, legend };
  const shape = { field: 's', type: 'nominal', sort: null, scale: { domain: names, range: looks.map((l) => l.shape) }, legend: null };
  const few = rows.length / Math.max(1, names.length) <= 24;
  const bounded = rows.some((r) => present(r.lo));
  const layer = [];
  if (bounded && chart.x.scale === 'log2') {
    layer.push({ mark: { type: 'rule', strokeWidth: 1.5 }, encoding: { x, y: { ...y, field: 'lo' }, y2: { field: 'hi' }, color: { ...colour, legend: null } } });
  } else if (bounded) {
    layer.push({ mark: { type: 'area', opacity: 0.14, interpolate: 'linear' }, encoding: { x, y: { ...y, field: 'lo' }, y2: { field: 'hi' }, color: { ...colour, legend: null } } });
  }
  layer.push({ mark: { type: 'line', strokeWidth: 2 }, encoding: { x, y, color: colour, strokeDash: dash } });
  layer.push({ mark: { type: 'point', filled: true, size: few ? 36 : 60, opacity: few ? 1 : 0, tooltip: { content: 'data' } }, encoding: { x, y, color: { ...colour, legend: null }, shape } });
  if (limit) {
    layer.push({ data: { values: [{ y: limit.value }] }, mark: { type: 'rule', color: colours.limit, strokeWidth: 1.5, strokeDash: [3, 3] }, encoding: { y } });
    layer.push({ data: { values: [{ y: limit.value, l: limit.label }] }, mark: { type: 'text', align: 'left', baseline: 'bottom', dy: -4, x: 4, color: colours.limit, fontSize: 12 }, encoding: { y, text: { field: 'l' } } });
  }
  return { height: 250, data: { name: 'points', values: rows }, layer };
}

function bars(chart, colours, width) {
  const rows = chart.series.flatMap((s) => chart.categories.map((c) => ({ s: s.name, x0: c.name, c: c.name, y: s.y[c.at], lo: s.low ? s.low[c.at] : null, hi: s.high ? s.high[c.at] : null, xt: chart.x, yt: chart.y })).filter((r) => present(r.y)));
  const names = chart.series.map((s) => s.name);
  const fills = chart.series.map((s) => (s.tint ? colours.c[(s.tint - 1) % colours.c.length] : look(s.network, colours).colour));
  const legend = { title: null, columns: columnsFor(names, width), symbolType: 'square' };
  // A label has the room of its bars: a list of words goes below each other.
  const labels = { labelAngle: 0, labelExpr: "split(datum.label, ', ')", labelLimit: Math.max(40, (width - 60) / Math.max(1, chart.categories.length) - 6) };
  const x = { field: 'c', type: 'nominal', sort: chart.categories.map((c) => c.name), axis: { title: axisTitle(chart.x), ...labels, ticks: false, labelPadding: 6 }, scale: { paddingInner: 0.18, paddingOuter: 0.08 } };
  const y = yOf(chart.y, rows.map((r) => r.y));
  const offset = { field: 's', type: 'nominal', sort: names, scale: { domain: names, paddingInner: 0.08 } };
  const colour = { field: 's', type: 'nominal', sort: null, scale: { domain: names, range: fills }, legend };
  return {
    height: 260, data: { name: 'points', values: rows },
    layer: [
      { mark: { type: 'bar', tooltip: { content: 'data' } }, encoding: { x, xOffset: offset, y, color: colour } },
      { transform: [{ filter: 'isValid(datum.lo)' }], mark: { type: 'rule', color: colours.paper, strokeWidth: 3 }, encoding: { x, xOffset: offset, y: { ...y, field: 'lo' }, y2: { field: 'hi' } } },
      { transform: [{ filter: 'isValid(datum.lo)' }], mark: { type: 'rule', color: colours.ink, strokeWidth: 1.25 }, encoding: { x, xOffset: offset, y: { ...y, field: 'lo' }, y2: { field: 'hi' } } },
    ],
  };
}

// tints are the colours of a stack's parts: their own, or by their order.
function tints(chart, colours) {
  const all = [...colours.m, ...colours.c];
  return chart.series.map((s, i) => all[(s.tint ? s.tint - 1 : i) % all.length]);
}

function stack(chart, colours, width) {
  const rows = chart.series.flatMap((s, i) => chart.categories.map((c) => ({ s: s.name, x0: c.name, c: c.name, y: s.y[c.at], i, xt: chart.x, yt: { ...chart.x, title: s.name + ', ' + chart.x.title } })).filter((r) => present(r.y)));
  const names = chart.series.map((s) => s.name);
  return {
    height: { step: 26 }, autosize: { type: 'fit-x', contains: 'padding' }, data: { name: 'points', values: rows },
    mark: { type: 'bar', tooltip: { content: 'data' }, stroke: colours.paper, strokeWidth: 1 },
    encoding: {
      y: { field: 'c', type: 'nominal', sort: chart.categories.map((c) => c.name), axis: { title: null, labelLimit: Math.min(200, width * 0.4), labelColor: colours.ink }, scale: { paddingInner: 0.28 } },
      x: { field: 'y', type: 'quantitative', axis: { title: axisTitle(chart.x), grid: true, domain: false, ticks: false, tickCount: 6, labelExpr: si(chart.x.unit || '') } },
      color: { field: 's', type: 'nominal', sort: null, scale: { domain: names, range: tints(chart, colours) }, legend: { title: null, columns: columnsFor(names, width), symbolType: 'square' } },
      order: { field: 'i', type: 'quantitative' },
    },
  };
}
