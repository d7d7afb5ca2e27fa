// What clients with a problem are called, in the sentence of the page and in the list below it.
import type { Piece } from '../../i18n/texts';
import type { Item } from './attention';
import { t } from './texts';

type Clients = Extract<Item, { kind: 'clients' }>;

/** Whether it is one client, and away: it cannot take anything. */
export function isAway({ problem, one }: Clients): boolean {
  return one !== null && !one.connected && (problem === 'dropping' || problem === 'queue');
}

export function titleOf(item: Clients): Piece[] {
  const { problem, one, clients } = item;
  if (one === null) return t.rich(`problem.${problem}`, { n: clients });
  const id = one.client_id;
  if (isAway(item) && (problem === 'dropping' || problem === 'queue'))
    return t.rich(`problem.away.${problem}`, { id });
  return t.rich(`problem.one.${problem}`, { id });
}
