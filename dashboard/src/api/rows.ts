// Lists of the live stream: the first event is whole, later ones have the rows that changed.

/** An event of a list. */
export interface ListEvent<Row> {
  whole?: boolean;
  rows?: Row[];
  order?: string[];
  left_out?: number;
}

/** Rows by name, and their order. */
export interface LiveRows<Row> {
  byName: ReadonlyMap<string, Row>;
  order: readonly string[];
  leftOut: number;
}

export function emptyRows<Row>(): LiveRows<Row> {
  return { byName: new Map(), order: [], leftOut: 0 };
}

/** The list after an event. Rows that the order no longer names have gone. */
export function merged<Row>(
  list: LiveRows<Row>,
  event: ListEvent<Row>,
  name: (row: Row) => string,
): LiveRows<Row> {
  const byName = new Map(event.whole ? [] : list.byName);
  for (const row of event.rows ?? []) byName.set(name(row), row);
  const order = event.order ?? (event.whole ? (event.rows ?? []).map(name) : list.order);
  if (event.order) {
    const named = new Set(event.order);
    for (const key of byName.keys()) if (!named.has(key)) byName.delete(key);
  }
  return { byName, order: order.filter((key) => byName.has(key)), leftOut: event.left_out ?? 0 };
}

/** The rows in their order. */
export function ordered<Row>(list: LiveRows<Row>): Row[] {
  const rows: Row[] = [];
  for (const key of list.order) {
    const row = list.byName.get(key);
    if (row !== undefined) rows.push(row);
  }
  return rows;
}
