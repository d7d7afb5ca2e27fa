// Differences as lines: of lists of texts, and of values before and after.

export interface Line {
  kind: 'same' | 'add' | 'del';
  text: string;
}

/** The shortest way from one list of lines to another. */
export function lineDifference(before: readonly string[], after: readonly string[]): Line[] {
  const longest = Array.from({ length: before.length + 1 }, () =>
    new Array<number>(after.length + 1).fill(0),
  );
  const at = (row: number, column: number) => longest[row]?.[column] ?? 0;
  for (let row = before.length - 1; row >= 0; row -= 1)
    for (let column = after.length - 1; column >= 0; column -= 1) {
      const cells = longest[row];
      if (cells)
        cells[column] =
          before[row] === after[column]
            ? at(row + 1, column + 1) + 1
            : Math.max(at(row + 1, column), at(row, column + 1));
    }
  const lines: Line[] = [];
  let row = 0;
  let column = 0;
  while (row < before.length || column < after.length) {
    if (row < before.length && column < after.length && before[row] === after[column]) {
      lines.push({ kind: 'same', text: before[row] ?? '' });
      row += 1;
      column += 1;
    } else if (
      row < before.length &&
      (column === after.length || at(row + 1, column) >= at(row, column + 1))
    ) {
      lines.push({ kind: 'del', text: before[row] ?? '' });
      row += 1;
    } else {
      lines.push({ kind: 'add', text: after[column] ?? '' });
      column += 1;
    }
  }
  return lines;
}

/** A value as lines "path = value"; what is null has none. */
export function flatLines(value: unknown, path = ''): string[] {
  if (value === null || value === undefined) return [];
  if (Array.isArray(value)) {
    if (value.length === 0) return [`${path || 'value'} = []`];
    return value.flatMap((one, index) => flatLines(one, `${path}[${index}]`));
  }
  if (typeof value === 'object') {
    const fields = Object.entries(value);
    if (fields.length === 0 && path !== '') return [`${path} = {}`];
    return fields.flatMap(([name, one]) => flatLines(one, path === '' ? name : `${path}.${name}`));
  }
  return [`${path || 'value'} = ${JSON.stringify(value)}`];
}

/** A state before and after as lines. */
export function valueDifference(before: unknown, after: unknown): Line[] {
  return lineDifference(flatLines(before), flatLines(after));
}
