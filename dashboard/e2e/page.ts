// What all tests ask of a page: no error, nothing forbidden by the policy, no violation of accessibility.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { expect, type Page } from '@playwright/test';
import { type Broker, NAME, PASSWORD } from './broker';

/** Collects errors of the page and violations of its policy. */
export function watched(page: Page): string[] {
  const found: string[] = [];
  page.on('pageerror', (error) => found.push(error.message));
  page.on('console', (line) => {
    // Answers with an error status are the subject of some tests.
    if (line.type() === 'error' && !line.text().startsWith('Failed to load resource'))
      found.push(line.text());
  });
  return found;
}

export async function signIn(page: Page, broker: Broker, place = ''): Promise<void> {
  await page.goto(`${broker.url}${place}`);
  await page.getByLabel('Name').fill(NAME);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('button', { name: `Session of ${NAME}`, exact: true })).toBeVisible();
}

/** Goes to a place of the signed in page. */
export async function go(page: Page, broker: Broker, place: string): Promise<void> {
  await page.goto(`${broker.url}#/${place}`);
  await page.reload();
}

interface Violation {
  id: string;
  help: string;
  nodes: { html: string }[];
}

const axe = readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Fails with the violations that axe finds. */
export async function accessible(page: Page): Promise<void> {
  await page.evaluate(await axe);
  const found = await page.evaluate<Violation[]>(
    "axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }).then((result) => result.violations)",
  );
  expect(
    found.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map((node) => node.html).join(' ')}`),
  ).toEqual([]);
}
