// The tabs of Admin. Each is loaded when it is opened.
import type { Component } from 'svelte';
import type { Scope } from '../../api/session.svelte';
import type { AdminTab } from '../../ui/places';

type Loader = () => Promise<{ default: Component }>;

export interface Tab {
  /** What the reader needs to see anything in it; null if everybody who is signed in may open it. */
  scope: Scope | null;
  load: () => Promise<Component>;
}

const tab = (scope: Scope | null, loader: Loader): Tab => ({
  scope,
  load: () => loader().then((found) => found.default),
});

export const TABS: Readonly<Record<AdminTab, Tab>> = {
  access: tab('users:read', () => import('./access/Tab.svelte')),
  people: tab('admin', () => import('./people/Tab.svelte')),
  listeners: tab('config:read', () => import('./listeners/Tab.svelte')),
  settings: tab('config:read', () => import('./settings/Tab.svelte')),
  audit: tab('audit:read', () => import('./audit/Tab.svelte')),
  logs: tab('logs:read', () => import('./logs/Tab.svelte')),
  backup: tab('admin', () => import('./backup/Tab.svelte')),
  api: tab(null, () => import('./api/Tab.svelte')),
  test: tab(null, () => import('./test/Tab.svelte')),
};
