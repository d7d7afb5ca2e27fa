// Lists that the broker gives in pages, as a whole.

/** Most rows of a list that is saved as a file. */
export const MOST = 100_000;

export interface Whole<Row> {
  rows: Row[];
  /** There are more than were asked for. */
  cut: boolean;
}

/** Asks page after page until the last one, or until there are `most` rows. */
export async function everyPage<Row>(
  ask: (cursor: string | undefined) => Promise<{ rows: readonly Row[]; next?: string | null | undefined }>,
  most = MOST,
): Promise<Whole<Row>> {
  const rows: Row[] = [];
  let cursor: string | undefined;
  do {
    const page = await ask(cursor);
    rows.push(...page.rows);
    cursor = page.next ?? undefined;
  } while (cursor !== undefined && rows.length < most);
  return { rows: rows.slice(0, most), cut: cursor !== undefined || rows.length > most };
}
