// On the page colours are names of the style sheet, so that dark, light and
// paper need no second drawing; a saved file has them spelt out, as on paper.
const paper = {
  ink: '#1b1f24', soft: '#57606a', line: '#d0d7de', paper: '#ffffff', limit: '#b3261e',
  // Okabe and Ito's, which the colour-blind can distinguish, and a brown and a grey.
  c: ['#0072b2', '#d55e00', '#009e73', '#a8548b', '#b87900', '#3c9dd0', '#7f5539', '#6b7280'],
  // The parts of a stack, from light to dark, so that they read in grey.
  m: ['#c6dbef', '#7fb3dc', '#2f78b7', '#0b3a73', '#8a8f98', '#d6a94a', '#a5561f', '#5a2d82'],
  // What is written on either.
  mt: ['#000000', '#000000', '#ffffff', '#ffffff', '#000000', '#000000', '#ffffff', '#ffffff'],
  ct: ['#ffffff', '#000000', '#000000', '#ffffff', '#000000', '#000000', '#ffffff', '#ffffff'],
  s: ['#08306b', '#0b4a8f', '#1f69ad', '#3f88c5', '#86b9dd', '#aecfe9', '#cfe2f3', '#ffffff', '#fff3d6'],
  t: ['#ffffff', '#ffffff', '#ffffff', '#000000', '#0b1a2b', '#0b1a2b', '#0b1a2b', '#1b1f24', '#1b1f24'],
};

const named = (prefix, n, from = 1) => Array.from({ length: n }, (_, i) => `var(--${prefix}${i + from})`);

const screen = {
  ink: 'var(--ink)', soft: 'var(--soft)', line: 'var(--line)', paper: 'var(--paper)', limit: 'var(--limit)',
  c: named('c', 8), m: named('m', 8), mt: named('mt', 8), ct: named('ct', 8), s: named('s', 9), t: named('t', 9),
};

// palette is the colours of the page or of a saved file.
export const palette = (saved) => (saved ? paper : screen);

const dashes = [[1, 0], [7, 3], [2, 2], [9, 3, 2, 3]];
const shapes = ['circle', 'square', 'triangle-up', 'diamond', 'cross', 'triangle-down', 'triangle-right', 'triangle-left'];

// look is how a network is drawn wherever it is: a colour, and a dash and a mark
// for those who see no colours. The bare network is 0 and has the ink's.
export function look(network, colours) {
  if (network <= 0) return { colour: colours.ink, dash: [1, 0], shape: 'circle' };
  const i = network - 1;
  const round = Math.floor(i / colours.c.length);
  return { colour: colours.c[i % colours.c.length], dash: dashes[(i + round) % dashes.length], shape: shapes[(i + round) % shapes.length] };
}
