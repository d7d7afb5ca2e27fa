// As much of TOML as scenarios have. The broker reads the text itself; this reader only fills the form.

export type TomlValue = string | number | boolean | TomlValue[] | TomlTable;
export interface TomlTable {
  [key: string]: TomlValue;
}

/** A text that is no TOML, with its line. */
export class TomlError extends Error {
  readonly line: number;

  constructor(line: number) {
    super(`line ${line}`);
    this.line = line;
  }
}

export function isTable(value: TomlValue | undefined): value is TomlTable {
  return typeof value === 'object' && !Array.isArray(value);
}

const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  b: '\b',
  f: '\f',
  '"': '"',
  '\\': '\\',
};

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text.replaceAll('\r\n', '\n');
  }

  document(): TomlTable {
    const root: TomlTable = {};
    let table = root;
    for (;;) {
      this.#blank(true);
      if (this.#at >= this.#text.length) return root;
      if (this.#takes('[[')) {
        table = this.#element(root, this.#key());
        this.#wants(']]');
      } else if (this.#takes('[')) {
        table = this.#below(root, this.#key());
        this.#wants(']');
      } else this.#pair(table);
      this.#blank(false);
      if (this.#at < this.#text.length && this.#text[this.#at] !== '\n') this.#fail();
    }
  }

  #pair(table: TomlTable): void {
    const path = this.#key();
    this.#blank(false);
    this.#wants('=');
    this.#blank(false);
    const name = path.pop() ?? this.#fail();
    const parent = this.#below(table, path);
    if (Object.hasOwn(parent, name)) this.#fail();
    parent[name] = this.#value();
  }

  #key(): string[] {
    const path: string[] = [];
    do {
      this.#blank(false);
      const quote = this.#text[this.#at];
      if (quote === '"' || quote === "'") path.push(this.#string());
      else path.push(this.#match(/[A-Za-z0-9_-]+/y));
      this.#blank(false);
    } while (this.#takes('.'));
    return path;
  }

  #below(table: TomlTable, path: readonly string[]): TomlTable {
    let found = table;
    for (const name of path) {
      const known = Object.hasOwn(found, name) ? found[name] : undefined;
      const next = Array.isArray(known) ? known.at(-1) : known;
      if (next === undefined) {
        const made: TomlTable = {};
        found[name] = made;
        found = made;
      } else if (isTable(next)) found = next;
      else this.#fail();
    }
    return found;
  }

  #element(root: TomlTable, path: string[]): TomlTable {
    const name = path.pop() ?? this.#fail();
    const parent = this.#below(root, path);
    const list = parent[name] ?? [];
    if (!Array.isArray(list)) this.#fail();
    const made: TomlTable = {};
    list.push(made);
    parent[name] = list;
    return made;
  }

  #value(): TomlValue {
    const first = this.#text[this.#at];
    if (first === '"' || first === "'") return this.#string();
    if (this.#takes('[')) return this.#list();
    if (this.#takes('{')) return this.#inline();
    const word = this.#match(/[^\s,#\]}]+/y);
    if (word === 'true' || word === 'false') return word === 'true';
    if (!/^[+-]?(\d[\d_]*)(\.[\d_]+)?([eE][+-]?\d+)?$/.test(word)) this.#fail();
    return Number(word.replaceAll('_', ''));
  }

  #list(): TomlValue[] {
    const found: TomlValue[] = [];
    for (;;) {
      this.#blank(true);
      if (this.#takes(']')) return found;
      found.push(this.#value());
      this.#blank(true);
      if (!this.#takes(',')) {
        this.#wants(']');
        return found;
      }
    }
  }

  #inline(): TomlTable {
    const table: TomlTable = {};
    this.#blank(true);
    while (!this.#takes('}')) {
      this.#pair(table);
      this.#blank(true);
      if (!this.#takes(',')) {
        this.#wants('}');
        return table;
      }
      this.#blank(true);
    }
    return table;
  }

  #string(): string {
    for (const quotes of ['"""', "'''"])
      if (this.#takes(quotes)) {
        const end = this.#text.indexOf(quotes, this.#at);
        if (end < 0) this.#fail();
        const inner = this.#text.slice(this.#at, end).replace(/^\n/, '');
        this.#at = end + 3;
        return quotes === '"""' ? this.#unescaped(inner) : inner;
      }
    if (this.#takes("'")) {
      const found = this.#match(/[^'\n]*/y, true);
      this.#wants("'");
      return found;
    }
    this.#wants('"');
    const found = this.#match(/(?:[^"\\\n]|\\.)*/y, true);
    this.#wants('"');
    return this.#unescaped(found);
  }

  #unescaped(text: string): string {
    return text.replace(
      /\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))/gs,
      (_, four?: string, eight?: string, one?: string) => {
        const digits = four ?? eight;
        if (digits !== undefined) return String.fromCodePoint(Number.parseInt(digits, 16));
        return ESCAPES[one ?? ''] ?? this.#fail();
      },
    );
  }

  #blank(lines: boolean): void {
    this.#match(lines ? /(?:[ \t\n]|#[^\n]*)*/y : /[ \t]*(?:#[^\n]*)?/y, true);
  }

  #takes(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #wants(text: string): void {
    if (!this.#takes(text)) this.#fail();
  }

  #match(pattern: RegExp, empty = false): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? '';
    if (found === '' && !empty) this.#fail();
    this.#at += found.length;
    return found;
  }

  #fail(): never {
    throw new TomlError(this.#text.slice(0, this.#at).split('\n').length);
  }
}

/** Reads a text. Throws `TomlError`. */
export function parseToml(text: string): TomlTable {
  return new Reader(text).document();
}

/** A text as TOML writes it. */
export function quoted(text: string): string {
  const escaped = text
    .replaceAll('\\', '\\\\')
    .replaceAll('"', '\\"')
    .replaceAll('\n', '\\n')
    .replaceAll('\t', '\\t')

    .replace(/[\u0000-\u001f\u007f]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return `"${escaped}"`;
}
