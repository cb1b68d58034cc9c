import { make } from './dom.js';

// makeTools are the buttons of the whole page.
export function makeTools(draw) {
  const themes = ['auto', 'light', 'dark'];
  let at = 0;
  const theme = make('button', { type: 'button', class: 'tool', onclick: () => setTheme(themes[(at + 1) % themes.length]) });
  function setTheme(name) {
    at = Math.max(0, themes.indexOf(name));
    theme.textContent = 'Theme: ' + themes[at];
    if (at === 0) delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = themes[at];
  }
  setTheme('auto');
  const print = make('button', { type: 'button', class: 'tool', onclick: async () => { await draw(); window.print(); } }, 'Print');
  return { buttons: [theme, print], theme: () => themes[at], setTheme };
}
