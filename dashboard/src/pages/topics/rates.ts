// Rates of the last minute of the rows of the tree.
import { sparkLine } from '../../charts/spark';
import type { Row } from './tree';

const HISTORY = 60;

export class Rates {
  #byKey = new Map<string, number[]>();

  /** Takes the rates of now, one a second. Rows that are no longer there are forgotten. */
  push(rows: readonly Row[]): void {
    const next = new Map<string, number[]>();
    for (const row of rows) {
      if (row.kind !== 'topic') continue;
      const values = this.#byKey.get(row.key) ?? [];
      values.push(row.topic.messages_per_second);
      if (values.length > HISTORY) values.shift();
      next.set(row.key, values);
    }
    this.#byKey = next;
  }

  /** The path of the line of a row. */
  line(key: string): string {
    return sparkLine(this.#byKey.get(key) ?? []);
  }
}
