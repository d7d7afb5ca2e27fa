import { expect, test } from '@playwright/test';
import { Broker, Client } from './broker';
import { signIn, watched } from './page';

test('a page stays honest while the broker is away, and comes back by itself', async ({ page }) => {
  const broker = await Broker.start();
  try {
    await signIn(page, broker);
    const client = await Client.connect(broker.mqttPort, 'one');
    client.publish('a', 'b');
    await expect(page.getByRole('region', { name: 'Five figures' })).toBeVisible();
    await expect(page.locator('header').getByText('· live')).toBeVisible();
    await broker.down();
    await expect(page.getByText('No connection to the broker:')).toBeVisible();
    await expect(page.getByText(/Figures are from \d\d:\d\d:\d\d/)).toBeVisible();
    await expect(page.locator('header').getByText(/^from \d\d/)).toBeVisible();
    // What the alarms were before says nothing now.
    await expect(page.getByRole('link', { name: 'Not known' })).toBeVisible();
    await expect(page.getByRole('heading', { level: 1 })).not.toContainText('Healthy');
    client.close();
    await broker.up();
    // The broker has forgotten its sessions: the page asks for the login, and goes on where it was.
    await expect(page.getByText('Your session has ended.').first()).toBeVisible({ timeout: 25_000 });
  } finally {
    await broker.stop();
  }
});

test('a broker without clients is not called ready while it does not answer', async ({ page }) => {
  const broker = await Broker.start();
  try {
    await signIn(page, broker);
    const headline = page.getByRole('heading', { level: 1 });
    await expect(headline).toContainText('Ready.');
    await broker.down();
    await expect(headline).toContainText('The health is not known. The broker does not answer.');
    await expect(page.getByText('Waiting for your message…')).toHaveCount(0);
  } finally {
    await broker.stop();
  }
});

test('the dashboard works below a path', async ({ page }) => {
  const errors = watched(page);
  const broker = await Broker.start({ below: '/iot/broker' });
  try {
    const client = await Client.connect(broker.mqttPort, 'one');
    client.publish('a', 'b');
    await signIn(page, broker, '#/clients');
    await expect(page.getByRole('link', { name: 'one', exact: true })).toBeVisible();
    client.close();
    expect(errors).toEqual([]);
  } finally {
    await broker.stop();
  }
});

test('ten tabs of a browser are all live', async ({ page }) => {
  const broker = await Broker.start();
  const client = await Client.connect(broker.mqttPort, 'one');
  let n = 0;
  const timer = setInterval(() => client.publish('a', String((n += 1))), 100);
  try {
    await signIn(page, broker, '#/topics');
    const tabs = [page];
    while (tabs.length < 10) {
      const tab = await page.context().newPage();
      tabs.push(tab);
      // A browser has six connections to a broker for all its tabs.
      await tab.goto(`${broker.url}#/topics`);
      await expect(tab.getByRole('row', { name: /^a/ })).toBeVisible();
    }
    const values = () => Promise.all(tabs.map((tab) => tab.getByRole('row', { name: /^a/ }).innerText()));
    const before = await values();
    await expect
      .poll(async () => (await values()).filter((value, index) => value === before[index]).length)
      .toBe(0);
    for (const tab of tabs)
      await expect(
        tab.locator('header').getByText(/· (live|every 8 s, as many tabs are open)$/),
      ).toBeVisible();
    // Those that are left give their connections back.
    for (const tab of tabs.splice(3)) await tab.close();
    for (const tab of tabs) await expect(tab.locator('header').getByText(/· live$/)).toBeVisible();
  } finally {
    clearInterval(timer);
    client.close();
    await broker.stop();
  }
});

test('a hidden page has no live connection', async ({ page }) => {
  const broker = await Broker.start();
  try {
    await signIn(page, broker);
    await expect(page.locator('header').getByText('· live')).toBeVisible();
    let asked = 0;
    page.on('request', (request) => (asked += request.url().includes('/stream') ? 1 : 0));
    const ended = page.waitForEvent('requestfailed', (request) => request.url().includes('/stream'));
    await page.evaluate(() => {
      Object.defineProperty(document, 'hidden', { value: true, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    });
    await ended;
    expect(asked).toBe(0);
    const again = page.waitForRequest((request) => request.url().includes('/stream'));
    await page.evaluate(() => {
      Object.defineProperty(document, 'hidden', { value: false, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    });
    expect((await again).headers()['last-event-id']).toMatch(/^\d+$/);
  } finally {
    await broker.stop();
  }
});
