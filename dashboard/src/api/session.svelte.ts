// Who is signed in, and what they may do.
import { type Schemas, api, setToken, whenSignedOut } from './client';
import { type Problem, asProblem } from './problem';

export type Who = Schemas['Whoami'];
export type Scope =
  | 'clients:read'
  | 'clients:write'
  | 'messages:read'
  | 'messages:write'
  | 'config:read'
  | 'config:write'
  | 'users:read'
  | 'users:write'
  | 'logs:read'
  | 'audit:read'
  | 'metrics:read'
  | 'benchmarks:read'
  | 'benchmarks:write'
  | 'admin';

/** Whether scopes permit something; `admin` includes everything. */
export function permits(scopes: readonly string[], scope: Scope): boolean {
  return scopes.includes(scope) || scopes.includes('admin');
}

class Session {
  who = $state.raw<Who | null>(null);
  problem = $state.raw<Problem | null>(null);
  /** The session ended without a "sign out" on this page. */
  lost = $state(false);
  #person: string | null = null;
  readonly #forget: (() => void)[] = [];

  get signedIn(): boolean {
    return this.who !== null && this.who.scopes.length > 0;
  }

  can(scope: Scope): boolean {
    return permits(this.who?.scopes ?? [], scope);
  }

  /** Calls `forget` when somebody else is signed in, or nobody: what one person typed is not for the next. */
  whenPersonChanges(forget: () => void): void {
    this.#forget.push(forget);
  }

  async load(): Promise<void> {
    whenSignedOut(() => this.end());
    try {
      this.take(await api.get('/login'));
      this.problem = null;
    } catch (error) {
      this.problem = asProblem(error);
    }
  }

  take(who: Who): void {
    setToken(who.token ?? null);
    this.who = who;
    const person = this.signedIn ? who.name : null;
    if (person !== this.#person) for (const forget of this.#forget) forget();
    this.#person = person;
    if (person !== null) this.lost = false;
  }

  /** The session is over: the page asks who it is, and shows the login. */
  end(): void {
    if (!this.signedIn) return;
    this.lost = true;
    setToken(null);
    void this.load();
  }

  async signOut(): Promise<void> {
    await api.delete('/login');
    setToken(null);
    await this.load();
    this.lost = false;
  }
}

export const session = new Session();
