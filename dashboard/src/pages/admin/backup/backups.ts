// What the page says about backups.
import type { Schemas } from '../../../api/client';
import type { State } from '../../../ui/state';

type Backup = Schemas['Backup'];

/** Backups that the broker keeps at most. */
export const KEPT = 10;
/** Days after which the newest one is called old. */
const OLD_DAYS = 7;

export function verdict(
  backups: readonly Backup[],
  running: Backup | null,
  failed: Backup | null,
  nowMs: number,
): { is: State; say: 'running' | 'failed' | 'none' | 'old' | 'fresh' } {
  if (running) return { is: 'info', say: 'running' };
  if (failed) return { is: 'bad', say: 'failed' };
  const [newest] = backups;
  if (!newest) return { is: 'warn', say: 'none' };
  const days = (nowMs - Date.parse(newest.began_at)) / 86_400_000;
  return days > OLD_DAYS ? { is: 'warn', say: 'old' } : { is: 'ok', say: 'fresh' };
}
