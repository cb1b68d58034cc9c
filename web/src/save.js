import { cellText, cellValue, rankText } from './data.js';
import { make } from './dom.js';

// saveButton hands a file to the reader. content gives a string or a blob, or a
// promise of one.
// named gives the file's name where that is not always the same.
export function saveButton(kind, what, content, named = () => what) {
  const button = make('button', {
    type: 'button', class: 'save', 'aria-label': 'Save ' + what + ' as ' + kind, title: 'Save as ' + kind,
    onclick: async () => {
      button.disabled = true;
      try {
        const made = await content();
        const types = { CSV: 'text/csv;charset=utf-8', SVG: 'image/svg+xml', PNG: 'image/png' };
        handOver(made instanceof Blob ? made : new Blob([made], { type: types[kind] }), fileName(named()) + '.' + kind.toLowerCase());
      } finally {
        button.disabled = false;
      }
    },
  }, kind);
  return button;
}

function handOver(blob, name) {
  const link = make('a', { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// fileName is what text says, in characters that every file system takes.
function fileName(text) {
  return text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-+|-+$/g, '').slice(0, 80) || 'cnibench';
}

// field is a CSV field (RFC 4180). Text that begins like a formula gets an
// apostrophe, so that no spreadsheet runs it.
function field(v) {
  if (v == null) return '';
  if (typeof v === 'number') return String(v);
  const text = /^[=+\-@\t\r\n]/.test(v) && !/^[-+]?[0-9.]+(e[-+]?[0-9]+)?$/i.test(v) ? "'" + v : v;
  return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
}

const lines = (rows) => rows.map((r) => r.map(field).join(',') + '\r\n').join('');

// tableCSV is what is visible of a table: for each column of numbers the text
// and the value in base units.
export function tableCSV(block, visible) {
  const out = [[]];
  const has = block.columns.map((_, i) => i > 0 && block.rows.some((r) => cellValue(r[i]) != null));
  const ranked = block.columns.map((_, i) => block.rows.some((r) => Array.isArray(r[i]) && r[i][2]));
  block.columns.forEach((c, i) => {
    if (!visible.columns[i]) return;
    const name = c.sub ? c.head + ', ' + c.sub : c.head;
    out[0].push(name);
    if (has[i]) out[0].push(name + ' (base unit)');
    if (ranked[i]) out[0].push(name + ' (rank)');
  });
  block.rows.forEach((row, r) => {
    if (!visible.rows[r]) return;
    const line = [];
    row.forEach((cell, i) => {
      if (!visible.columns[i]) return;
      line.push(cellText(cell));
      if (has[i]) line.push(cellValue(cell));
      if (ranked[i]) line.push(Array.isArray(cell) && cell[2] ? rankText(cell[2]) : '');
    });
    out.push(line);
  });
  return lines(out);
}

// numbersCSV is a list of rows of numbers under names.
export function numbersCSV(names, rows) {
  return lines([names, ...rows]);
}
