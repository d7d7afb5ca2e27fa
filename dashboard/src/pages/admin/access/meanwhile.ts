// A change of what somebody else has changed meanwhile.
import { Problem, asProblem } from '../../../api/problem';
import { t } from './texts';

/** What can differ of a user, a role or a group. */
export interface Seen {
  name: string;
  roles?: readonly string[];
  groups?: readonly string[];
  rules: readonly string[];
  superuser?: boolean;
  disabled?: boolean;
}

const LISTS = ['roles', 'groups', 'rules'] as const;
const SWITCHES = ['superuser', 'disabled'] as const;
/** So many names or rules are told. */
const TOLD_MOST = 4;

/** A list that differs; `added` and `removed` are empty if only the order does. */
interface ListChange {
  of: (typeof LISTS)[number];
  added: readonly string[];
  removed: readonly string[];
}
export type Difference = ListChange | { of: (typeof SWITCHES)[number]; is: boolean } | { of: 'password' };

/** What differs between how a thing was shown and how it is. The password is what is left: it is not shown. */
export function differences(was: Seen, is: Seen): Difference[] {
  const found: Difference[] = [];
  for (const of of LISTS) {
    const [before, after] = [was[of] ?? [], is[of] ?? []];
    if (JSON.stringify(before) === JSON.stringify(after)) continue;
    found.push({
      of,
      added: after.filter((one) => !before.includes(one)),
      removed: before.filter((one) => !after.includes(one)),
    });
  }
  for (const of of SWITCHES) {
    const now = is[of];
    if (now !== undefined && now !== was[of]) found.push({ of, is: now });
  }
  return found.length === 0 ? [{ of: 'password' }] : found;
}

function told(difference: Difference): string {
  if (difference.of === 'password') return t('meanwhile.password');
  const what = t(`meanwhile.${difference.of}`);
  if ('is' in difference) return t(difference.is ? 'meanwhile.now' : 'meanwhile.nomore', { what });
  const marked = [
    ...difference.added.map((one) => `+ ${one}`),
    ...difference.removed.map((one) => `− ${one}`),
  ];
  if (marked.length === 0) return `${what} ${t('meanwhile.order')}`;
  const more = marked.length - TOLD_MOST;
  const rest = more > 0 ? [t('meanwhile.more', { n: more })] : [];
  return `${what} ${[...marked.slice(0, TOLD_MOST), ...rest].join(', ')}`;
}

/**
 * Makes a change of what was shown. If it is no longer so, the list is loaded again, and the problem says what differs.
 * `reload` answers the thing as it is now, or nothing if the list no longer has it.
 */
export async function ofWhatWasSeen<T>(
  was: Seen,
  change: Promise<T>,
  reload: () => Promise<Seen | undefined>,
): Promise<T> {
  try {
    return await change;
  } catch (error) {
    const { title, status, detail } = asProblem(error);
    if (status !== 412) throw error;
    const is = await reload();
    throw new Problem({
      title,
      status,
      detail: is
        ? t('meanwhile', { name: was.name, what: differences(was, is).map(told).join('; ') })
        : detail,
      remedy: t('meanwhile.fix'),
    });
  }
}
