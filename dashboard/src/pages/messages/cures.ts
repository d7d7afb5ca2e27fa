// What to change so that messages are not dropped.

export type Cure =
  | 'cure.away'
  | 'cure.away.end'
  | 'cure.away.expiry'
  | 'cure.queue_full'
  | 'cure.queue_full.2'
  | 'cure.queue_full.3'
  | 'cure.other';

/** The cures for the reason of most drops, where the clients that miss them are `away` or `connected`. */
export function curesOf(reason: string, away: number, connected: number): Cure[] {
  if (reason !== 'queue_full') return ['cure.other'];
  const back: Cure[] = away > 0 ? ['cure.away', 'cure.away.end', 'cure.away.expiry'] : [];
  const faster: Cure[] =
    connected > 0 || away === 0 ? ['cure.queue_full', 'cure.queue_full.2', 'cure.queue_full.3'] : [];
  return [...back, ...faster];
}
