// How one text became another, word by word.

export interface Word {
  text: string;
  kind: 'same' | 'removed' | 'added';
}

/** More words than this are not compared one by one. */
const MOST = 2000;

/** The words of both texts in one order; what stands together is one piece. */
export function wordDiff(before: string, after: string): Word[] {
  const [a, b] = [split(before), split(after)];
  if (a.length > MOST || b.length > MOST) {
    return [
      { text: before, kind: 'removed' },
      { text: after, kind: 'added' },
    ];
  }
  const found: Word[] = [];
  const add = (text: string, kind: Word['kind']) => {
    const last = found.at(-1);
    if (last?.kind === kind) last.text += text;
    else found.push({ text, kind });
  };
  const longest = common(a, b);
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      add(a[i]!, 'same');
      i++;
      j++;
    } else if (i < a.length && (j === b.length || longest[i + 1]![j]! >= longest[i]![j + 1]!)) {
      add(a[i++]!, 'removed');
    } else add(b[j++]!, 'added');
  }
  return found;
}

function split(text: string): string[] {
  return text.match(/\s+|[^\s]+/g) ?? [];
}

// How many words both have in common from each place on.
function common(a: string[], b: string[]): Uint16Array[] {
  const rows = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      rows[i]![j] =
        a[i] === b[j] ? rows[i + 1]![j + 1]! + 1 : Math.max(rows[i + 1]![j]!, rows[i]![j + 1]!);
    }
  }
  return rows;
}
