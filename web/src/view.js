// makeView lets a newer page of the same run (cnibench run --live) begin as the
// reader left this one.
export function makeView(filter, tools, sections, arrange) {
  const id = (s) => s.element.id;
  const top = (s) => s.element.getBoundingClientRect().top;
  return {
    // get is what is chosen: the filter, the theme, how much of each section is shown.
    get: () => ({ unwanted: filter.unwanted(), theme: tools.theme(), limits: Object.fromEntries(sections.map((s) => [id(s), s.limit])) }),
    // set chooses it; it is done when all is drawn.
    async set({ unwanted, theme, limits }) {
      tools.setTheme(theme);
      filter.setUnwanted(unwanted);
      for (const s of sections) s.limit = limits[id(s)] ?? s.limit;
      await arrange();
    },
    // place is what is at the top of the window: so far below a section's beginning.
    place() {
      const above = sections.findLast((s) => top(s) <= 0);
      return above ? { id: id(above), below: -top(above) } : { id: '', below: window.scrollY };
    },
    goTo(place) {
      const above = sections.find((s) => id(s) === place.id);
      window.scrollTo(0, place.below + (above ? top(above) + window.scrollY : 0));
    },
    // busy tells that the reader is at something that a newer page would undo.
    busy: () => document.querySelector('.choice[open]') !== null || document.activeElement?.matches('input[type=search], select') === true,
  };
}
