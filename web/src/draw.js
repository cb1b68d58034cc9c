import * as vega from 'vega';
import { compile } from 'vega-lite';
import { expressionInterpreter } from 'vega-interpreter';

// viewOf makes a Vega view. Expressions are interpreted, so that the page's
// policy need not allow code from text.
export function viewOf(spec, options) {
  const compiled = compile(spec, { logger: quiet }).spec;
  const runtime = vega.parse(compiled, null, { ast: true });
  return new vega.View(runtime, { expr: expressionInterpreter, logLevel: vega.Error, renderer: 'none', ...options });
}

// quiet keeps Vega-Lite's remarks off the console; errors are thrown.
const quiet = { level: () => quiet, error: () => quiet, warn: () => quiet, info: () => quiet, debug: () => quiet };

// saved draws a specification for a file.
export async function saved(spec, kind) {
  const view = viewOf(spec, {});
  try {
    if (kind === 'SVG') return await view.toSVG();
    const canvas = await view.toCanvas(2);
    return await new Promise((done, fail) => canvas.toBlob((b) => (b ? done(b) : fail(new Error('no picture'))), 'image/png'));
  } finally {
    view.finalize();
  }
}
