// What the page says about administrators and keys, and the commands that do the same.
import type { Schemas } from '../../../api/client';
import type { Scope } from '../../../api/session.svelte';
import { commandOf, each } from '../../../ui/same';

export const ROLES = ['viewer', 'operator', 'administrator'] as const;
export type Role = (typeof ROLES)[number];

/** What a key may be given, in groups of what is read and changed. */
export const SCOPES: readonly Scope[] = [
  'metrics:read',
  'clients:read',
  'clients:write',
  'messages:read',
  'messages:write',
  'config:read',
  'config:write',
  'users:read',
  'users:write',
  'logs:read',
  'audit:read',
  'admin',
];

export function roleOf(name: string): Role {
  return ROLES.find((role) => role === name) ?? 'viewer';
}

/** Administrators that could sign in with a password alone. */
export function withoutCode(all: readonly Schemas['Administrator'][]): string[] {
  return all.filter((one) => !one.disabled && !one.totp).map((one) => one.name);
}

/** Whether an administrator is the last one that may do everything: it stays. */
export function isLast(one: Schemas['Administrator'], all: readonly Schemas['Administrator'][]): boolean {
  const able = all.filter((other) => other.role === 'administrator' && !other.disabled);
  return able.length === 1 && able[0]?.name === one.name;
}

/** Keys that ask for a second look: expired, or with every right and without an end. */
export function doubtful(keys: readonly Schemas['ApiKey'][]) {
  return {
    expired: keys.filter((key) => key.expired).length,
    endless: keys.filter((key) => !key.expired && key.expires_at === null && key.scopes.includes('admin'))
      .length,
  };
}

export function addAdmin(name: string, role: string): string {
  return commandOf(['admin', 'add', name || 'NAME', '--role', role]);
}

export function changeAdmin(name: string, role: string, disabled: boolean, removeTotp: boolean): string {
  return commandOf([
    'admin',
    'change',
    name,
    '--role',
    role,
    '--disabled',
    String(disabled),
    removeTotp && '--remove-totp',
  ]);
}

export function addKey(label: string, scopes: readonly string[], days: number): string {
  return commandOf([
    'keys',
    'add',
    label || 'LABEL',
    ...each('--scope', scopes),
    '--expires',
    days > 0 ? `${days}d` : 'never',
  ]);
}
