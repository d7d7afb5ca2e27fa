// What a page says while the broker does not answer: nothing is known of now, and what is shown is from before.
import type { Piece } from '../i18n/texts';
import type { State } from './state';

/** A sentence as it was: no state is claimed, and the moment comes first. */
export function asOf(was: { is: State; say: Piece[] }, moment: string): { is: State; say: Piece[] } {
  const plain = was.say.map((piece): Piece =>
    piece.look === 'strong' ? { ...piece, look: 'plain' } : piece,
  );
  return { is: 'off', say: [{ text: `${moment} `, look: 'strong' }, ...plain] };
}

/** The time that what is shown is of: it stands still while nothing comes. */
export function shownMs(isLost: boolean, newestMs: number | null, nowMs: number): number {
  return isLost ? (newestMs ?? nowMs) : nowMs;
}
