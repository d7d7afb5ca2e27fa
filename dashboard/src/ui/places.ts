import type { IconName } from './icons';

/** The eight places of the dashboard, in their order, with the second key of "g …". */
export const PLACES = [
  { name: 'home', icon: 'home', key: 'h' },
  { name: 'topics', icon: 'topics', key: 't' },
  { name: 'clients', icon: 'clients', key: 'c' },
  { name: 'messages', icon: 'messages', key: 'm' },
  { name: 'bench', icon: 'bench', key: 'b' },
  { name: 'why', icon: 'why', key: 'w' },
  { name: 'data', icon: 'data', key: 'd' },
  { name: 'admin', icon: 'admin', key: 'a' },
] as const satisfies readonly { name: string; icon: IconName; key: string }[];

export type PlaceName = (typeof PLACES)[number]['name'];

export function isPlace(name: string): name is PlaceName {
  return PLACES.some((place) => place.name === name);
}

/** The tabs of Admin, in their order. */
export const ADMIN_TABS = [
  'access',
  'people',
  'listeners',
  'settings',
  'audit',
  'logs',
  'backup',
  'api',
  'test',
] as const;

export type AdminTab = (typeof ADMIN_TABS)[number];
