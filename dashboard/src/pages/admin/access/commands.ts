// Commands of thrum that do what the dialogs do. A password is never in one: the command asks for it.
import { commandOf, each } from '../../../ui/same';

/** Whether the command can say these rules: it puts those that deny before the others. */
export function sayable(rules: readonly string[]): boolean {
  const effects = rules.map((rule) => (/^deny\s/.test(rule) ? 'deny' : 'allow'));
  return effects.lastIndexOf('deny') < effects.length - effects.filter((one) => one === 'allow').length;
}

/** Rules as options, which are without "allow" and "deny". */
export function ruleOptions(rules: readonly string[]): string[] {
  return rules.flatMap((rule) => {
    const [, effect, rest] = /^(allow|deny)\s+(.*)$/.exec(rule) ?? [];
    if (effect === undefined || rest === undefined) return ['--allow', rule];
    return [`--${effect}`, rest];
  });
}

interface UserForm {
  name: string;
  roles: readonly string[];
  groups: readonly string[];
  rules: readonly string[];
  superuser: boolean;
}

export function addUser(user: UserForm & { scram: boolean }): string {
  return commandOf([
    'users',
    'add',
    user.name || 'NAME',
    ...each('--role', user.roles),
    ...each('--group', user.groups),
    ...ruleOptions(user.rules),
    user.superuser && '--superuser',
    user.scram && '--scram',
  ]);
}

/** Rights of a user, as a dialog has them. */
export interface Rights {
  roles: readonly string[];
  groups: readonly string[];
  rules: readonly string[];
  superuser: boolean;
  disabled: boolean;
}

/** What differs of rights, and nothing else: what others have changed meanwhile must stay. */
export function changedRights(was: Rights, is: Rights): Partial<Rights> {
  const differs = (name: keyof Rights) => JSON.stringify(was[name]) !== JSON.stringify(is[name]);
  return {
    ...(differs('roles') ? { roles: is.roles } : {}),
    ...(differs('groups') ? { groups: is.groups } : {}),
    ...(differs('rules') ? { rules: is.rules } : {}),
    ...(differs('superuser') ? { superuser: is.superuser } : {}),
    ...(differs('disabled') ? { disabled: is.disabled } : {}),
  };
}

/** Null if the command cannot say the change: rules that it would put in another order. */
export function changeUser(name: string, change: Partial<Rights>): string | null {
  const { roles, groups, rules, superuser, disabled } = change;
  if (rules && !sayable(rules)) return null;
  return commandOf([
    'users',
    'change',
    name,
    ...(roles?.length === 0 ? ['--no-roles'] : each('--role', roles ?? [])),
    ...(groups?.length === 0 ? ['--no-groups'] : each('--group', groups ?? [])),
    ...(rules ? ['--no-rules', ...ruleOptions(rules)] : []),
    ...(superuser === undefined ? [] : ['--superuser', String(superuser)]),
    ...(disabled === undefined ? [] : ['--disabled', String(disabled)]),
  ]);
}

export function setRules(
  kind: 'role' | 'group',
  name: string,
  roles: readonly string[],
  rules: readonly string[],
): string {
  const words = kind === 'role' ? ['roles', 'set'] : ['users', 'groups', 'set'];
  return commandOf([...words, name || 'NAME', ...each('--role', roles), ...ruleOptions(rules)]);
}

/** A duration as commands take it: 600 → 10m. */
export function duration(seconds: number): string {
  for (const [unit, size] of [
    ['d', 86_400],
    ['h', 3600],
    ['m', 60],
  ] as const)
    if (seconds % size === 0) return `${seconds / size}${unit}`;
  return `${seconds}s`;
}

export type BanKind = 'client_id' | 'user' | 'address';

export function addBan(
  kind: BanKind,
  value: string,
  seconds: number,
  reason: string,
  disconnect: boolean,
): string {
  return commandOf([
    'bans',
    'add',
    `--${kind.replace('_', '-')}`,
    value || '…',
    ...(seconds > 0 ? ['--for', duration(seconds)] : []),
    ...(reason === '' ? [] : ['--reason', reason]),
    !disconnect && '--keep-connected',
  ]);
}
