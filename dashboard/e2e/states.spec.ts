// Each page while it loads, when nothing is there, when the broker refuses, and when the broker starts again.
import { expect, test } from '@playwright/test';
import { Broker, Client, NAME, PASSWORD } from './broker';
import { accessible, go, signIn, watched } from './page';

const PLACES = [
  '',
  'clients',
  'clients/one',
  'topics',
  'messages',
  'messages/retained',
  'messages/groups',
  'why',
];

let broker: Broker;

test.beforeAll(async () => {
  broker = await Broker.start();
});

test.afterAll(async () => broker.stop());

test('an empty broker is told on each page', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker);
  for (const [place, text] of [
    ['', 'no client has connected yet'],
    ['clients', 'No client'],
    ['clients/one', 'does not know one'],
    ['topics', 'No message has passed yet.'],
    ['messages', 'Nothing'],
    ['messages/retained', 'No '],
    ['messages/groups', 'No '],
  ] as const) {
    await go(page, broker, place);
    await expect(page.locator('main').getByText(text).first(), place).toBeVisible();
    await accessible(page);
  }
  expect(errors).toEqual([]);
});

test('each page shows that it loads, and not a wrong answer meanwhile', async ({ page }) => {
  await signIn(page, broker);
  // Answers never come, except those about the session.
  await page.route(/\/api\/v1\/(?!login)/, () => undefined);
  for (const place of PLACES) {
    await go(page, broker, place);
    await expect(page.locator('main')).toBeVisible();
    await expect(page.locator('main .sk, main [aria-busy=true], main h1').first(), place).toBeVisible();
    const text = await page.locator('main').innerText();
    expect([place, /\b(Healthy|All well|Nothing|NaN|undefined|null)\b/.exec(text)?.[0]]).toEqual([
      place,
      undefined,
    ]);
  }
});

test('each page says why it has nothing, when the broker refuses', async ({ page }) => {
  await signIn(page, broker);
  await page.route(/\/api\/v1\/(?!login)/, (route) =>
    route.fulfill({
      status: 503,
      contentType: 'application/problem+json',
      body: JSON.stringify({
        type: 'about:blank',
        title: 'busy',
        status: 503,
        detail: 'the broker is busy with a test',
        remedy: 'wait a little',
      }),
    }),
  );
  for (const place of PLACES) {
    await go(page, broker, place);
    await expect(page.getByText('the broker is busy with a test').first(), place).toBeVisible();
    await accessible(page);
  }
});

test('a page survives that the broker starts again, and tells what it is', async ({ page }) => {
  const own = await Broker.start();
  try {
    const errors = watched(page);
    await signIn(page, own, '#/clients');
    const before = await Client.connect(own.mqttPort, 'before');
    await expect(page.getByRole('link', { name: 'before', exact: true })).toBeVisible();
    await own.down();
    await expect(page.getByText('No connection to the broker:')).toBeVisible();
    before.close();
    await own.up();
    const after = await Client.connect(own.mqttPort, 'after');
    // The sessions of administrators are gone with the broker: the page asks again, and returns to its place.
    await expect(page.getByText('Your session has ended.').first()).toBeVisible({ timeout: 30_000 });
    await page.getByLabel('Name', { exact: true }).fill(NAME);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await expect(page.getByRole('link', { name: 'after', exact: true })).toBeVisible();
    await expect(page.getByRole('link', { name: 'before', exact: true })).toHaveCount(0);
    await expect(page.locator('header').getByText('· live')).toBeVisible();
    after.close();
    expect(errors).toEqual([]);
  } finally {
    await own.stop();
  }
});

test('the styles of a page count after those of all pages', async ({ page }) => {
  await signIn(page, broker);
  for (const place of PLACES) {
    await page.evaluate((hash) => (location.hash = hash), `#/${place}`);
    await expect(page.locator('h1').first()).toBeVisible();
  }
  const sheets = await page.evaluate(() =>
    [...document.styleSheets].map(({ href, media }) => `${href?.split('/').at(-1) ?? ''} ${media.mediaText}`),
  );
  const assets = sheets.filter((sheet) => !sheet.startsWith('start.css'));
  expect(assets[0]).toMatch(/^index-.* all$/);
  expect(assets.length).toBeGreaterThan(3);
});
