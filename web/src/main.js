import { leavesChart, makeChart } from './chart.js';
import { load, unpackSeries } from './data.js';
import { make } from './dom.js';
import { saved } from './draw.js';
import { makeFlame } from './flame.js';
import { makeFilter } from './filter.js';
import { saveButton } from './save.js';
import { leaves, makeTable } from './table.js';
import { heatSpec, rangesSpec } from './tablespec.js';
import { makeTools } from './tools.js';
import { makeView } from './view.js';

// step is how many tables and charts of a section are shown at first, and how
// many more each time: a campaign of thousands of cells has hundreds of each.
const step = 16;

async function main() {
  performance.mark('begin');
  const data = await load();
  performance.mark('loaded');
  const filter = makeFilter(data, () => arrange(true));
  const sections = [...document.querySelectorAll('main > section')].map((element) => ({ element, limit: step, more: null }));
  const slots = new Map();
  for (const element of document.querySelectorAll('.slot')) slots.set(element, { element, block: data.blocks[element.dataset.block], built: null });

  // tableDrawings are the buttons that save a table as a drawing.
  function tableDrawings(block, visible) {
    const specs = { heat: heatSpec, ranges: rangesSpec };
    if (!specs[block.drawn]) return [];
    return ['SVG', 'PNG'].map((kind) => saveButton(kind, 'table ' + block.caption, () => saved(specs[block.drawn](data, block, visible()), kind)));
  }

  const isTable = (block) => Array.isArray(block.rows);
  const left = ({ block }) => (isTable(block) ? leaves(block, filter) : leavesChart(block, filter));

  function build(block) {
    if (isTable(block)) return makeTable(data, block, filter, tableDrawings);
    if (block.kind === 'flame') return makeFlame(data, block, filter);
    return makeChart(unpackSeries(block), filter);
  }

  // show builds what a slot holds when it is first shown.
  function show(slot, filtered) {
    if (!slot.built) {
      slot.built = build(slot.block);
      slot.element.replaceChildren(slot.built.element);
      if (!isTable(slot.block)) watch.observe(slot.element);
      if (filter.any() || isTable(slot.block)) slot.built.refresh();
    } else if (filtered) slot.built.refresh();
  }

  // arrange shows what the filter leaves, the first of each section.
  function arrange(filtered) {
    let hidden = 0;
    for (const section of sections) hidden += arrangeSection(section, filtered);
    filter.say(filter.any() ? (hidden ? `${hidden} tables and charts are hidden` : '') : '');
    return drawSoon();
  }

  function arrangeSection(section, filtered) {
    let shown = 0;
    let waiting = 0;
    let hidden = 0;
    let heading = null;
    let group = null;
    const place = (element, wanted, slot) => {
      const fits = shown < section.limit;
      element.hidden = !wanted || !fits;
      if (!wanted) hidden += slot ? 1 : 0;
      else if (!fits) waiting += 1;
      else {
        shown += 1;
        if (slot) show(slot, filtered);
        if (heading) heading.hidden = false;
        if (group) group.hidden = false;
      }
    };
    for (const element of section.element.children) {
      if (element.matches('h3')) {
        heading = element;
        heading.hidden = true;
      } else if (element.matches('.slot')) place(element, left(slots.get(element)), slots.get(element));
      else if (element.matches('.charts')) {
        group = element;
        group.hidden = true;
        for (const child of element.children) place(child, slots.has(child) ? left(slots.get(child)) : filter.shows(aboutOf(child)), slots.get(child));
        group = null;
      } else if (element.matches('ul.items')) {
        group = element;
        group.hidden = true;
        for (const item of element.children) place(item, filter.shows(aboutOf(item)), null);
        group = null;
      }
    }
    more(section, shown, waiting);
    return hidden;
  }

  const aboutOf = (element) => (element.dataset.of === undefined ? -1 : Number(element.dataset.of));

  // more is the way to what a section does not show yet.
  function more(section, shown, waiting) {
    if (section.more) section.more.remove();
    section.more = null;
    if (waiting === 0) return;
    const raise = (by) => () => { section.limit += by; arrange(false); };
    section.more = make(
      'p', { class: 'more' }, `${shown} of ${shown + waiting} are shown. `,
      make(
        'span', { class: 'screen' }, 'Filter above, or ',
        make('button', { type: 'button', onclick: raise(step) }, `show ${Math.min(step, waiting)} more`), ' ',
        make('button', { type: 'button', onclick: raise(Infinity) }, 'show all'),
      ),
    );
    section.element.append(section.more);
  }

  const chartsShown = () => [...slots.values()].filter((s) => s.built && !isTable(s.block) && s.element.offsetParent !== null);
  const near = new Set();
  const watch = new IntersectionObserver((entries) => {
    for (const e of entries) if (e.isIntersecting) near.add(slots.get(e.target)); else near.delete(slots.get(e.target));
    drawSoon();
  }, { rootMargin: '400px' });

  // drawSoon draws what is near first, the rest when there is nothing to do, so
  // that a print has all. Its promise is kept when all is drawn.
  let drawing = null;
  let again = false;
  function drawSoon() {
    again = true;
    drawing ??= drawAll();
    return drawing;
  }
  async function drawAll() {
    delete document.documentElement.dataset.drawn;
    await null; // with nothing to draw this would end before drawSoon has its promise
    while (again) {
      again = false;
      for (const s of near) if (s.element.offsetParent !== null) await s.built.draw();
      for (const s of chartsShown()) {
        if (again) break;
        if (await s.built.draw()) await idle();
      }
    }
    drawing = null;
    document.documentElement.dataset.drawn = 'yes';
  }
  const idle = () => new Promise((done) => (window.requestIdleCallback ? requestIdleCallback(done, { timeout: 200 }) : setTimeout(done, 0)));

  if (data.factors.length > 0) document.getElementById('filter').append(filter.element);
  const tools = makeTools(drawSoon);
  document.getElementById('tools').append(...tools.buttons);
  window.cnibenchView = makeView(filter, tools, sections, () => arrange(true));
  arrange(false);
  let resized = 0;
  window.addEventListener('resize', () => { clearTimeout(resized); resized = setTimeout(drawSoon, 150); });
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

main().catch((error) => {
  const note = document.getElementById('trouble');
  note.textContent = 'The tables and charts cannot be shown by this browser (' + error.message + '). Every figure is in cnibench report --format markdown and --format csv.';
  note.hidden = false;
  document.documentElement.dataset.failed = error.message;
});
