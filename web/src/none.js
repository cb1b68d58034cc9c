// Nothing: what stands in the place of the parts of Vega that are left out.
export {};
