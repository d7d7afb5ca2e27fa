// Lists as files.

/** Gives the browser a file. */
export function download(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

/** Gives the browser a list as a file. */
export function saveList(name: string, form: 'csv' | 'json', rows: readonly object[]): void {
  if (form === 'json') download(`${name}.json`, 'application/json', `${JSON.stringify(rows, null, 2)}\n`);
  else download(`${name}.csv`, 'text/csv', tableOf(rows));
}

type Cell = string | number | boolean | null | undefined;

/** Rows as CSV (RFC 4180). A text that a spreadsheet would take for a formula gets an apostrophe in front. */
export function csv(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  return [head, ...rows].map((row) => row.map(cell).join(',')).join('\r\n') + '\r\n';
}

/** Objects as CSV, below the names of their fields: lists with spaces between, other values as JSON. */
export function tableOf(rows: readonly object[]): string {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const table = rows.map((row) => {
    const values = new Map<string, unknown>(Object.entries(row));
    return names.map((name) => flat(values.get(name)));
  });
  return csv(names, table);
}

function flat(value: unknown): Cell {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  if (Array.isArray(value) && value.every((one) => typeof one === 'string' && !/\s/.test(one)))
    return value.join(' ');
  return JSON.stringify(value);
}

function cell(value: Cell): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'string') return value.toString();
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
