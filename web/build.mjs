// Bundles src/ with what it needs of Vega into one script, and gathers the
// licences of everything in it. The same packages give the same bytes.
//
//   node build.mjs [FOLDER]      where report.js and LICENSES.txt go
import { build } from 'esbuild';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2];

// Parts of Vega that no chart of the report uses: maps, trees and the like.
const unused = ['vega-crossfilter', 'vega-force', 'vega-geo', 'vega-hierarchy', 'vega-label', 'vega-regression', 'vega-voronoi', 'vega-wordcloud'];

const result = await build({
  alias: Object.fromEntries(unused.map((name) => [name, join(here, 'src/none.js')])),
  absWorkingDir: here, entryPoints: ['src/main.js'], bundle: true, minify: true, format: 'iife', target: 'es2022',
  charset: 'ascii', legalComments: 'none', metafile: true, write: false,
});

// The packages that anything in the bundle is of.
const packages = new Set();
for (const [path, input] of Object.entries(Object.values(result.metafile.outputs)[0].inputs)) {
  const parts = path.split('node_modules/');
  if (parts.length < 2 || input.bytesInOutput === 0) continue;
  const [scope, name] = parts.at(-1).split('/');
  packages.add(parts.slice(0, -1).join('node_modules/') + 'node_modules/' + (scope.startsWith('@') ? scope + '/' + name : scope));
}

// One text for all packages that come under it.
const byText = new Map();
for (const folder of [...packages].sort()) {
  const about = JSON.parse(readFileSync(join(here, folder, 'package.json'), 'utf8'));
  const file = readdirSync(join(here, folder)).sort().find((f) => /^licen[sc]e/i.test(f));
  const text = file ? readFileSync(join(here, folder, file), 'utf8').replaceAll('\r', '').trim() : `(the package has no licence file; its package.json says ${about.license})`;
  byText.set(text, [...(byText.get(text) || []), `${about.name} ${about.version} (${about.license})`]);
}
const licences = [...byText].map(([text, of]) => of.join(', ') + '\n\n' + text + '\n').join('\n' + '-'.repeat(72) + '\n\n');

const head = '/*\nThe report of cnibench (Apache-2.0) with parts of the packages below.\n\n' + licences.replaceAll('*/', '* /').replaceAll('</', '< /').replace(/[^\n\x20-\x7e]/g, '?') + '*/\n';
const script = head + result.outputFiles[0].text;
if (/<\/script|<!--/i.test(script) || script.includes('\r')) throw new Error('the bundle cannot stand inside a page: it has </script, <!-- or a carriage return');

writeFileSync(target ? join(target, 'report.js') : join(here, '../internal/report/format/templates/report.js'), script);
writeFileSync(join(target || here, 'LICENSES.txt'), licences);
