// Lines that an address names.

/** `#L120` or `#L120-L140`: the first line and the last. */
export function range(hash: string): [number, number] | undefined {
  const found = /^#L(\d{1,12})(?:-L?(\d{1,12}))?$/.exec(hash);
  if (!found) return undefined;
  const [a, b] = [Number(found[1]), Number(found[2] ?? found[1])];
  return a < 1 || b < 1 ? undefined : [Math.min(a, b), Math.max(a, b)];
}
