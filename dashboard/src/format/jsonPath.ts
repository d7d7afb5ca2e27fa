// Numbers within JSON, by their path: "$.t", "$.motor[0].rpm", "$" for a payload that is a number.

/** Paths that a chart offers, at most. */
const MOST = 40;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The paths of all numbers in a payload. */
export function numberPaths(text: string): string[] {
  const found: string[] = [];
  const look = (value: unknown, path: string, depth: number) => {
    if (found.length >= MOST || depth > 8) return;
    if (typeof value === 'number') found.push(path);
    else if (Array.isArray(value))
      value.slice(0, 10).forEach((one, index) => look(one, `${path}[${index}]`, depth + 1));
    else if (typeof value === 'object' && value !== null)
      for (const [key, one] of Object.entries(value))
        look(one, /^\w+$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`, depth + 1);
  };
  look(parsed(text), '$', 0);
  return found;
}

/** The number at a path; null if there is none. */
export function numberAt(text: string, path: string): number | null {
  let value = parsed(text);
  for (const match of path.slice(1).matchAll(/\.(\w+)|\[(\d+)\]|\[("(?:\\.|[^"\\])*")\]/g)) {
    if (typeof value !== 'object' || value === null) return null;
    const key = match[1] ?? match[2] ?? String(parsed(match[3] ?? '""'));
    value = Object.hasOwn(value, key) ? new Map<string, unknown>(Object.entries(value)).get(key) : undefined;
  }
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

/** The change between two numbers: "+0.1", "−3", "0". */
export function change(before: number | null, after: number | null): string {
  if (before === null || after === null) return '';
  const by = Number((after - before).toPrecision(6));
  if (by === 0) return '0';
  const size = Number(Math.abs(by).toPrecision(4)).toString();
  return by > 0 ? `+${size}` : `−${size}`;
}
