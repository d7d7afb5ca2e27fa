// Which page an address shows. Each page is loaded when it is opened; no page imports another.
import type { Component } from 'svelte';

export interface Page {
  /** A page with another key is built anew. */
  key: string;
  load: () => Promise<Component>;
}

type Loader = () => Promise<{ default: Component }>;

const page = (key: string, loader: Loader): Page => ({
  key,
  load: () => loader().then((found) => found.default),
});

function benchPage(view: string | undefined): Loader {
  switch (view) {
    case undefined:
      return () => import('./bench/Runs.svelte');
    case 'new':
      return () => import('./bench/NewRun.svelte');
    case 'compare':
      return () => import('./bench/Compare.svelte');
    default:
      return () => import('./bench/Run.svelte');
  }
}

/** The page of a place; null if there is none. */
export function pageFor(path: readonly string[]): Page | null {
  const [first, second] = path;
  switch (first) {
    case undefined:
    case 'home':
      return page('home', () => import('./home/Home.svelte'));
    case 'topics':
      return page('topics', () => import('./topics/Topics.svelte'));
    case 'clients':
      return second === undefined
        ? page('clients', () => import('./clients/Clients.svelte'))
        : page(`client ${second}`, () => import('./client/Client.svelte'));
    case 'messages':
      return page('messages', () => import('./messages/Messages.svelte'));
    case 'why':
      return page('why', () => import('./why/Why.svelte'));
    case 'bench':
      return page(`bench ${second ?? ''}`, benchPage(second));
    case 'data':
      return page('data', () => import('./data/Data.svelte'));
    case 'admin':
      return page('admin', () => import('./admin/Admin.svelte'));
    case 'account':
      return page('account', () => import('./account/Account.svelte'));
    case 'more':
      return page('more', () => import('./more/More.svelte'));
    default:
      return null;
  }
}
