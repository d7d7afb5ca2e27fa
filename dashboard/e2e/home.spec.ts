// Home: what it says of a broker that is gone, of deliveries that stop, and that its figures agree.
import { expect, type Page, test } from '@playwright/test';
import { Broker, Client } from './broker';
import { accessible, signIn, watched } from './page';

let broker: Broker;

test.beforeEach(async () => {
  broker = await Broker.start();
});

test.afterEach(async () => broker.stop());

/** Marks of a state that is good, in the page and in the bar. */
const good = (page: Page) => page.locator('main .ok, header .ok');

test('a broker that is gone is not called well on the first page', async ({ page }) => {
  await signIn(page, broker);
  const listeners = page.getByRole('region', { name: 'What is set up' });
  await expect(listeners.getByText('listening')).toHaveCount(2);
  await broker.down();
  await expect(page.getByText('No connection to the broker:')).toBeVisible();
  await expect(listeners.getByText('not known')).toHaveCount(2);
  await expect(good(page)).toHaveCount(0);
  await accessible(page);
});

test('a broker that is gone is not called well on any page', async ({ page }) => {
  const client = await Client.connect(broker.mqttPort, 'plant-a');
  await client.subscribe('site/#', 0);
  client.publish('site/a', '1', { retain: true });
  await signIn(page, broker);
  await expect(page.getByRole('heading', { name: 'Healthy.' })).toBeVisible();
  // Each page is open while the broker ends.
  const places = ['topics', 'clients', 'clients/plant-a', 'messages', 'admin/listeners'];
  const pages = [page];
  for (const place of places) {
    const other = await page.context().newPage();
    await other.goto(`${broker.url}#/${place}`);
    await expect(other.locator('main h1').first()).toBeVisible();
    await expect(other.locator('main .sk'), place).toHaveCount(0);
    pages.push(other);
  }
  await broker.down();
  for (const one of pages) {
    await one.bringToFront();
    await expect(one.getByText('No connection to the broker:')).toBeVisible({ timeout: 30_000 });
    await expect(good(one), one.url()).toHaveCount(0);
    await expect(
      one
        .locator('main')
        .getByText(/not known/i)
        .first(),
      one.url(),
    ).toBeVisible();
  }
  await page.bringToFront();
  await expect(page.getByRole('region', { name: 'Broker' }).getByText('not known').first()).toBeVisible();
  client.close();
});

test('deliveries that clients hold up are told, with what to do', async ({ page }) => {
  const errors = watched(page);
  let streams = 0;
  page.on('request', (request) => {
    if (request.url().includes('/stream?')) streams += 1;
  });
  // It takes one message and acknowledges none.
  const receiver = await Client.connect(broker.mqttPort, 'stuck', 1);
  await receiver.subscribe('site/#', 1);
  const sender = await Client.connect(broker.mqttPort, 'sender');
  const sending = setInterval(() => sender.publish('site/a', '1', { qos: 1 }), 1500);
  await signIn(page, broker);
  const attention = page.getByRole('region', { name: 'Needs attention' });
  await expect(attention.getByText('Nothing is delivered:')).toBeVisible({ timeout: 40_000 });
  await expect(page.getByRole('heading', { name: 'Nothing is delivered,' })).toBeVisible();
  await expect(page.locator('header .pill.warn')).toBeVisible();
  await expect(attention.getByRole('link', { name: 'Show 1' })).toBeVisible();
  await expect(attention.getByRole('link', { name: 'Why?' })).toBeVisible();
  // What the shell looks at is no reason to connect anew.
  expect(streams).toBeLessThan(6);
  await accessible(page);
  expect(errors).toEqual([]);
  clearInterval(sending);
  for (const client of [receiver, sender]) client.close();
});

test('the chart of the flow and the tiles show the same rates', async ({ page }) => {
  const client = await Client.connect(broker.mqttPort, 'plant-a');
  await client.subscribe('site/#', 0);
  let sent = 0;
  // Not the same number each second.
  const sending = setInterval(() => {
    for (let n = 0; n < (sent % 17) * 3; n += 1) client.publish('site/a', '1');
    sent += 1;
  }, 150);
  await signIn(page, broker);
  await expect(page.getByRole('region', { name: 'Flow' })).toBeVisible();
  await page.waitForTimeout(4000);
  for (let look = 0; look < 3; look += 1) {
    await page.waitForTimeout(1000);
    const shown = await page.evaluate(() => {
      const texts = (where: string) => [...document.querySelectorAll(where)].map((one) => one.textContent);
      return {
        tiles: texts('.tile .tv')
          .slice(1, 3)
          .map((text) => text.replace('msg/s', '')),
        legend: texts('section[aria-label="Flow"] .legend b').slice(0, 2),
      };
    });
    expect(shown.legend).toEqual(shown.tiles);
  }
  clearInterval(sending);
  client.close();
});

test('a large screen has a third list, and taller charts', async ({ page }) => {
  await page.setViewportSize({ width: 3840, height: 2160 });
  const client = await Client.connect(broker.mqttPort, 'plant-a');
  await signIn(page, broker);
  const events = page.getByRole('region', { name: 'Last events' });
  await expect(events.getByText('The broker started')).toBeVisible();
  const tops = (name: string) =>
    page.getByRole('region', { name }).evaluate((one) => one.getBoundingClientRect().top);
  expect(await tops('Last events')).toBe(await tops('Broker'));
  expect(await tops('Last events')).toBe(await tops('Most active'));
  const flow = page.getByRole('region', { name: 'Flow' });
  expect(await flow.evaluate((one) => one.clientHeight)).toBeGreaterThan(380);
  await accessible(page);
  await page.setViewportSize({ width: 1280, height: 900 });
  await expect(events).toHaveCount(0);
  client.close();
});
