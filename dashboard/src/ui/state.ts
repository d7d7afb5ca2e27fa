import type { IconName } from './icons';

/** A state that colour, icon and word tell together. */
export type State = 'ok' | 'warn' | 'bad' | 'info' | 'off';

/** The icon of a state: each has a shape of its own. */
export const STATE_ICON: Readonly<Record<State, IconName>> = {
  ok: 'ok',
  warn: 'warn',
  bad: 'bad',
  info: 'info',
  off: 'away',
};
