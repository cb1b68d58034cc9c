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

// rasterised makes a picture of an SVG's text.
export async function rasterised(text, scale) {
  const image = new Image();
  const url = URL.createObjectURL(new Blob([text], { type: 'image/svg+xml' }));
  try {
    image.src = url;
    await image.decode();
    const canvas = document.createElement('canvas');
    canvas.width = image.width * scale;
    canvas.height = image.height * scale;
    canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
    return await pngOf(canvas);
  } finally {
    URL.revokeObjectURL(url);
  }
}

const pngOf = (canvas) => new Promise((done, fail) => canvas.toBlob((b) => (b ? done(b) : fail(new Error('no picture'))), 'image/png'));

// saved draws a specification for a file.
export async function saved(spec, kind) {
  const view = viewOf(spec, {});
  try {
    if (kind === 'SVG') return await view.toSVG();
    return await pngOf(await view.toCanvas(2));
  } finally {
    view.finalize();
  }
}
