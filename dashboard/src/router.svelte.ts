// The address of the page is its state: "#/clients/meter-17?range=15m". The part before "#" is left alone, so
// that the dashboard works below any path.

export interface Place {
  /** Decoded segments of the path: ["clients", "meter-17"]. Those of a topic may be empty: "/a" is ["topics", "", "a"]. */
  path: string[];
  query: URLSearchParams;
}

/** Reads the part of an address behind "#". */
export function parsePlace(hash: string): Place {
  const text = hash.replace(/^#/, '');
  const mark = text.indexOf('?');
  const path = mark < 0 ? text : text.slice(0, mark);
  const query = new URLSearchParams(mark < 0 ? '' : text.slice(mark + 1));
  const parts = path.split('/').slice(1).map(decoded);
  return { path: parts[0] === 'topics' ? parts : parts.filter((part) => part !== ''), query };
}

/** The address of a place: `href(['clients', id], { sort: 'queue' })`. Empty values are left out. */
export function href(
  path: readonly string[],
  query: Readonly<Record<string, string | null | undefined>> = {},
): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) parameters.set(name, value);
  const tail = parameters.toString();
  return `#/${path.map(encodeURIComponent).join('/')}${tail === '' ? '' : `?${tail}`}`;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

class Router {
  place = $state.raw<Place>({ path: [], query: new URLSearchParams() });

  /** Follows the address; answers what ends that. */
  start(): () => void {
    const follow = () => (this.place = parsePlace(location.hash));
    follow();
    window.addEventListener('hashchange', follow);
    return () => window.removeEventListener('hashchange', follow);
  }

  go(path: readonly string[], query: Readonly<Record<string, string | null | undefined>> = {}): void {
    location.hash = href(path, query);
  }

  /** Changes parameters of this place, without a step in the history. */
  set(query: Readonly<Record<string, string | null | undefined>>): void {
    const all = Object.fromEntries(this.place.query);
    const next = href(this.place.path, { ...all, ...query });
    if (next === location.hash) return;
    history.replaceState(null, '', next);
    this.place = parsePlace(next);
  }

  param(name: string): string {
    return this.place.query.get(name) ?? '';
  }
}

export const router = new Router();
