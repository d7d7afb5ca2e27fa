// ⌘K, and what lists can be taken away with.
import { readFile } from 'node:fs/promises';
import { type Page, expect, test } from '@playwright/test';
import { Broker, Client } from './broker';
import { accessible, go, signIn, watched } from './page';

let broker: Broker;
let clients: Client[];

test.beforeAll(async () => {
  broker = await Broker.start();
  const one = await Client.connect(broker.mqttPort, 'one');
  await one.subscribe('site/#', 1);
  const shared = await Client.connect(broker.mqttPort, 'etl-1');
  await shared.subscribe('$share/etl/site/#', 0);
  one.publish('site/a/temp', '=1+1', { retain: true });
  clients = [one, shared];
});

test.afterAll(async () => {
  clients.forEach((client) => client.close());
  await broker.stop();
});

test('find has topics that nobody has looked at before', async ({ page }) => {
  await signIn(page, broker, '#/clients');
  const flow = setInterval(() => clients[0]?.publish('site/b/level', '3'), 100);
  try {
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog').getByRole('combobox').fill('b/lev');
    await expect(page.getByRole('option', { name: 'site/b/level', exact: true })).toBeVisible();
  } finally {
    clearInterval(flow);
  }
});

test('find leads to topics, settings and tabs, and does things', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker, '#/topics/site/a/temp');
  // The broker counts topics since somebody looks.
  await expect(page.getByRole('region', { name: 'site/a/temp' })).toContainText('Who publishes');
  clients[0]?.publish('site/a/temp', '2', { retain: true });
  await expect(page.getByRole('row', { name: /^temp/ })).toBeVisible();
  const find = async (words: string) => {
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog').getByRole('combobox').fill(words);
  };
  await find('site/a/te');
  await expect(page.getByRole('option', { name: 'site/a/temp', exact: true })).toBeVisible();
  await accessible(page);
  // What readers of the screen follow is the option, by an identifier without spaces.
  const active = await page.getByRole('combobox').getAttribute('aria-activedescendant');
  expect(active).toMatch(/^\S+$/);
  await expect(page.locator(`[id="${active ?? ''}"]`)).toHaveAttribute('aria-selected', 'true');
  await page.keyboard.press('Escape');
  await find('limits.client.queue');
  await page
    .getByRole('option', { name: /^limits\.client\.queue/ })
    .first()
    .click();
  await expect(page).toHaveURL(/admin\/settings\?find=limits\.client\.queue/);
  await find('light and dark');
  const before = await page.locator('html').getAttribute('data-theme');
  await page.keyboard.press('Enter');
  await expect.poll(() => page.locator('html').getAttribute('data-theme')).not.toBe(before);
  await find('benchmark');
  await page.getByRole('option', { name: 'Start a benchmark' }).click();
  await expect(page).toHaveURL(/bench\/new/);
  expect(errors).toEqual([]);
});

async function saved(page: Page, menu: RegExp, form: 'CSV' | 'JSON'): Promise<string> {
  const direct = page.getByRole('button', { name: `Save this list as ${form}` });
  const file = page.waitForEvent('download');
  if (await direct.first().isVisible()) await direct.first().click();
  else {
    await page.getByRole('button', { name: menu }).first().click();
    await page
      .getByRole('button', { name: `Save this list as ${form}` })
      .first()
      .click();
  }
  return readFile(await (await file).path(), 'utf8');
}

test('every list is saved as CSV and JSON', async ({ page }) => {
  await signIn(page, broker);
  for (const [place, ready, word] of [
    ['clients', 'etl-1', 'etl-1'],
    ['topics', 'site', 'site'],
    ['messages/retained', 'site/a/temp', 'site/a/temp'],
    ['messages/groups', 'etl-1', 'etl-1'],
    ['clients/one', 'What happened', 'connected'],
  ] as const) {
    await go(page, broker, place);
    if (place === 'topics') {
      await expect(page.locator('h1').first()).toContainText(/counted since|began to count/);
      clients[0]?.publish('site/a/temp', '3');
    }
    await expect(page.locator('main').getByText(ready).first(), place).toBeVisible();
    expect(await saved(page, /take it elsewhere/, 'CSV'), place).toContain(word);
    expect(JSON.stringify(JSON.parse(await saved(page, /take it elsewhere/, 'JSON'))), place).toContain(word);
  }
});
