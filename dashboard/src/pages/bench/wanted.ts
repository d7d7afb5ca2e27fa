// What the fields of a new run ask for.
import type { Wanted } from '../../api/bench';

/** Fields beside the scenario, as they are written. */
export interface Where {
  target: string;
  hold: string;
  clients: string;
  rate: string;
  name: string;
  note: string;
}

/** The question of a check or a run; null while nothing is chosen. */
export function wantedOf(
  what: { scenario: string } | { toml: string },
  where: Where,
  login: { username: string; password: string },
): Wanted | null {
  const text = ('scenario' in what ? what.scenario : what.toml).trim();
  if (text === '') return null;
  const wanted: Wanted = 'scenario' in what ? { scenario: text } : { toml: what.toml };
  const put = (key: 'target' | 'name' | 'note', value: string) => {
    if (value.trim() !== '') wanted[key] = value.trim();
  };
  put('target', where.target);
  put('name', where.name);
  put('note', where.note);
  for (const [key, value] of [
    ['duration_secs', where.hold],
    ['clients', where.clients],
    ['rate', where.rate],
  ] as const) {
    const number = Number(value);
    if (value.trim() !== '' && Number.isFinite(number) && number > 0) wanted[key] = number;
  }
  if (login.username !== '') wanted.username = login.username;
  if (login.password !== '') wanted.password = login.password;
  return wanted;
}
