// What has changed between two texts, line by line.

export interface Line {
  kind: 'same' | 'added' | 'removed';
  text: string;
}

/** Lines of both texts in one list; by their longest common part. */
export function changes(before: string, after: string): Line[] {
  const [old, new_] = [before.split('\n'), after.split('\n')];
  // longest[i][j]: of what follows the first i old and the first j new lines.
  const longest = Array.from({ length: old.length + 1 }, () => new Uint32Array(new_.length + 1));
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = new_.length - 1; j >= 0; j--) {
      longest[i]![j] =
        old[i] === new_[j]
          ? longest[i + 1]![j + 1]! + 1
          : Math.max(longest[i + 1]![j]!, longest[i]![j + 1]!);
    }
  }
  const found: Line[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < new_.length) {
    if (i < old.length && j < new_.length && old[i] === new_[j]) {
      found.push({ kind: 'same', text: old[i]! });
      i += 1;
      j += 1;
    } else if (j === new_.length || (i < old.length && longest[i + 1]![j]! >= longest[i]![j + 1]!)) {
      found.push({ kind: 'removed', text: old[i++]! });
    } else {
      found.push({ kind: 'added', text: new_[j++]! });
    }
  }
  return found;
}

/** Without what is far from any change: `undefined` stands for what is left out. */
export function near(lines: Line[], around = 3): (Line | undefined)[] {
  const close = (at: number) =>
    lines.slice(Math.max(0, at - around), at + around + 1).some(({ kind }) => kind !== 'same');
  return lines.flatMap((line, at) => {
    if (close(at)) return [line];
    return at === 0 || close(at - 1) ? [undefined] : [];
  });
}
