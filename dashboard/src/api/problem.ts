// Failures of the interface: what, why, and what helps.
import { capital, opened } from '../format/sentence';
import { inChinese } from '../i18n/index.svelte';
import type { components } from './schema';

export type ProblemBody = components['schemas']['Problem'];

const chinese = inChinese(() => import('../i18n/zh').then((found) => found.problems));
/** A sentence in the language of the page. */
const said = (text: string) => chinese()?.(text) ?? text;

/** An answer that is no success, or none at all. */
export class Problem extends Error {
  readonly title: string;
  /** 0 if there was no answer. */
  readonly status: number;
  /** As the broker wrote it. */
  readonly detail: string;
  readonly #remedy: string;
  readonly retryAfterSeconds: number | null;
  /** An answer without an explanation is that of a proxy. */
  readonly #explained: boolean;

  constructor(body: ProblemBody, explained = true) {
    super(`${body.title}: ${body.detail}`);
    this.name = 'Problem';
    this.title = body.title;
    this.status = body.status;
    this.detail = body.detail;
    this.#remedy = body.remedy;
    this.retryAfterSeconds = body.retry_after_secs ?? null;
    this.#explained = explained;
  }

  /** Whether the broker did not answer: nothing came, or a proxy says that nothing did. */
  get unanswered(): boolean {
    return this.status === 0 || (this.status >= 500 && !this.#explained);
  }

  /** The title as the head of a card. */
  get heading(): string {
    return capital(said(this.title));
  }

  /** The detail as the begin of a sentence. */
  get sentence(): string {
    return opened(said(this.detail));
  }

  /** The detail within a sentence. */
  get told(): string {
    return said(this.detail);
  }

  /** The sentence with its full stop. */
  get whole(): string {
    const text = this.sentence;
    return `${text}${/[\u4e00-\u9fff）]$/.test(text) ? '。' : '.'}`;
  }

  /** What helps. */
  get remedy(): string {
    return said(this.#remedy);
  }
}

/** The problem of an answer; an answer of a proxy, which has no problem, is told by its status. */
export async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text().catch(() => '');
  const body = readProblem(text);
  if (body) return new Problem({ ...body, status: response.status });
  return new Problem(
    {
      title: 'unexpected answer',
      status: response.status,
      detail: `the answer has the status ${response.status} and no explanation`,
      remedy: 'look at the log of the broker, and at a proxy in front of it',
    },
    false,
  );
}

/** The problem for a request that was not answered. */
export function noAnswer(): Problem {
  return new Problem({
    title: 'no answer',
    status: 0,
    detail: 'the broker does not answer',
    remedy: 'check that it runs and that the network reaches it; this page tries again',
  });
}

/** The problem for a name that no browser can send in a path. */
export function unspeakable(): Problem {
  return new Problem({
    title: 'not sent',
    status: 0,
    detail: 'a browser cannot ask for something that is called "." or "..": it would ask for something else',
    remedy: 'use the command of thrum on a terminal',
  });
}

export function readProblem(text: string): ProblemBody | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  return isProblem(value) ? value : null;
}

function isProblem(value: unknown): value is ProblemBody {
  return (
    typeof value === 'object' &&
    value !== null &&
    'title' in value &&
    typeof value.title === 'string' &&
    'detail' in value &&
    typeof value.detail === 'string' &&
    'remedy' in value &&
    typeof value.remedy === 'string'
  );
}

/** Any failure as a problem. */
export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem({
    title: 'error of this page',
    status: 0,
    detail: error instanceof Error ? error.message : String(error),
    remedy: 'load the page again, and report this',
  });
}
