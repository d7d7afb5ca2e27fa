// What all tests ask of a page: no error, nothing forbidden by the policy, no violation of accessibility.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { type Cookie, expect, type Page } from '@playwright/test';
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

/** The session of the administrator at each broker, for the tests that follow the first one. */
const sessions = new WeakMap<Broker, { run: number; cookies: Cookie[] }>();

/** Fills in the login that the page shows. */
export async function logIn(page: Page, name = NAME, password = PASSWORD): Promise<void> {
  await page.getByLabel('Name', { exact: true }).fill(name);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('button', { name: `Session of ${name}`, exact: true })).toBeVisible();
}

/** Opens a place as the administrator. The first test at a broker logs in, the others go on with its session. */
export async function signIn(page: Page, broker: Broker, place = ''): Promise<void> {
  const kept = sessions.get(broker);
  if (kept?.run === broker.run) {
    await page.context().addCookies(kept.cookies);
    await page.goto(`${broker.url}${place}`);
    await expect(page.getByRole('button', { name: `Session of ${NAME}`, exact: true })).toBeVisible();
    return;
  }
  await signInAnew(page, broker, place);
  sessions.set(broker, { run: broker.run, cookies: await page.context().cookies(broker.url) });
}

/** Opens a place with a session of its own, which the test may end. */
export async function signInAnew(page: Page, broker: Broker, place = ''): Promise<void> {
  await page.goto(`${broker.url}${place}`);
  await logIn(page);
}

let loads = 0;

/** Loads a place anew with the session of the page. */
export async function go(page: Page, broker: Broker, place: string): Promise<void> {
  // With the same address but for "#" the browser would not load it.
  loads += 1;
  await page.goto(`${broker.url}?load=${loads}#/${place}`);
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
  // Colours on their way to others are not those that the page has.
  await page.evaluate(() =>
    Promise.allSettled(
      document
        .getAnimations()
        .filter((one) => one.effect?.getComputedTiming().endTime !== Infinity)
        .map((one) => one.finished),
    ),
  );
  const found = await page.evaluate<Violation[]>(
    "axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }).then((result) => result.violations)",
  );
  expect(
    found.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map((node) => node.html).join(' ')}`),
  ).toEqual([]);
}

/** Widths on both sides of each breakpoint of the styles. */
const WIDTHS = [360, 720, 1024, 1280, 1920, 3840];

/** Fails with the places that are wider than the window, or whose tables are wider than their card. */
export async function neverSideways(page: Page, places: readonly string[]): Promise<void> {
  const wide: string[] = [];
  for (const place of places) {
    await page.evaluate(async (hash) => {
      location.hash = hash;
      // The place that was left is gone with the next frames.
      for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
    }, `#/${place}`);
    await expect(page.locator('main h1').first()).toBeAttached();
    await expect(page.locator('main .sk'), place).toHaveCount(0);
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      // Two frames: charts follow the size of their card.
      const beyond = await page.evaluate(async () => {
        for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
        const boxes = [document.documentElement, ...document.querySelectorAll('main .tw')];
        return Math.max(...boxes.map((box) => box.scrollWidth - box.clientWidth));
      });
      if (beyond > 0) wide.push(`${place} at ${width} px: ${beyond} px too wide`);
    }
  }
  expect(wide).toEqual([]);
}
