// Nothing: what replaces the parts of Vega that are left out.
export {};
