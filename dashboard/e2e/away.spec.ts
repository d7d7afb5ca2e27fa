// Clients that are away or gone: what pages say of them, and where search leads.
import { type Page, expect, test } from '@playwright/test';
import { Broker, Client } from './broker';
import { accessible, go, signIn, watched } from './page';

let broker: Broker;
let plc: Client;

test.beforeAll(async () => {
  broker = await Broker.start({ rules: false });
  const archive = await Client.connect(broker.mqttPort, 'archive', 5);
  await archive.subscribe('site/#', 1);
  archive.close();
  const device = await Client.connect(broker.mqttPort, 'device-17');
  device.close();
  plc = await Client.connect(broker.mqttPort, 'plc');
  for (let n = 0; n < 60; n += 1) plc.publish('site/a/temp', '{"value": 21.25}', { qos: 1 });
});

test.afterAll(async () => {
  plc.close();
  await broker.stop();
});

async function find(page: Page, words: string) {
  await page.keyboard.press('Control+k');
  await page.getByRole('dialog').getByRole('combobox').fill(words);
}

test('search leads to what happened to a client that is gone', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker);
  await find(page, 'device-17');
  const option = page.getByRole('option', { name: /^device-17.*gone, disconnected.*what happened/ });
  await expect(option).toHaveAttribute('aria-selected', 'true');
  await expect(page.getByRole('option').last()).toContainText('Open the topic device-17');
  await accessible(page);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('region', { name: 'What happened' })).toContainText('Disconnected');
  await expect(page.getByRole('heading', { level: 1 })).toContainText('has no session');
  expect(errors).toEqual([]);
});

test('a word that nobody knows opens no empty topic', async ({ page }) => {
  await signIn(page, broker);
  await find(page, 'nobody-at-all');
  const topic = page.getByRole('option', { name: 'Open the topic nobody-at-all' });
  await expect(topic).toHaveAttribute('aria-selected', 'false');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('dialog')).toBeVisible();
  await page.keyboard.press('ArrowDown');
  await expect(topic).toHaveAttribute('aria-selected', 'true');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/topics\/nobody-at-all/);
});

test('the list filters while a person types, and says who is gone', async ({ page }) => {
  await signIn(page, broker, '#/clients');
  await expect(page.getByRole('row', { name: /archive/ })).toContainText('away');
  await page.getByLabel('Filter clients').pressSequentially('device-17');
  await expect(page.getByText('device-17 is gone, disconnected')).toBeVisible();
  await accessible(page);
  await page.getByRole('link', { name: 'What happened' }).click();
  await expect(page).toHaveURL(/clients\/device-17/);
});

test('a client that is away is called away, and what cures its drops is said', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker, '#/clients');
  await expect(page.getByRole('heading', { level: 1 })).toContainText(
    '1 client that is away needs attention',
  );
  await go(page, broker, 'clients/archive');
  await expect(page.getByRole('heading', { level: 1 })).toContainText(/archive is away since .* and loses/);
  await expect(page.getByText('Away since', { exact: true })).toBeVisible();
  await page.getByRole('button', { name: 'End session…' }).click();
  await expect(page.getByRole('dialog')).toContainText('no connection is closed');
  await accessible(page);
  await page.keyboard.press('Escape');
  await go(page, broker, 'messages');
  await expect(page.getByText('Bring archive back.')).toBeVisible();
  await expect(page.getByRole('link', { name: 'limits.session_expiry' })).toBeVisible();
  await expect(page.getByText('receive maximum')).toHaveCount(0);
  await accessible(page);
  expect(errors).toEqual([]);
});

test('nothing is green while messages are dropped, or nothing was measured', async ({ page }) => {
  await signIn(page, broker, '#/');
  const more = setInterval(() => plc.publish('site/a/temp', '{"value": 21.25}', { qos: 1 }), 50);
  await go(page, broker, 'why');
  const says = page.getByRole('heading', { level: 1 });
  await expect(says).toContainText(/dropped|Slow because/, { timeout: 20_000 });
  // A machine that is busy with other tests may be the cause of what was measured before.
  await expect(page.locator('.verdict')).toHaveClass(/bad|warn/);
  await expect(page.locator('li', { hasText: 'Routing' })).not.toHaveClass(/ok/);
  await accessible(page);
  await page.getByRole('button', { name: /^Drops/ }).click();
  await expect(page.getByText('archive is away: bring it back', { exact: false })).toBeVisible();
  await go(page, broker, 'topics/site/a/temp');
  await page.getByRole('button', { name: 'Show what they get' }).click();
  await expect(page.getByText('dropped: its queue is full')).toBeVisible();
  await expect(page.locator('.bv')).toHaveText('21.25');
  await accessible(page);
  clearInterval(more);
});

test('Home tells one cause once, and the health in the bar leads to it', async ({ page }) => {
  await signIn(page, broker, '#/');
  const attention = page.getByRole('region', { name: 'Needs attention' });
  await expect(attention).toContainText('archive is away and loses messages.');
  await expect(attention.locator('.att')).toHaveCount(1);
  await page.locator('.pill').click();
  await expect(attention).toBeFocused();
  await accessible(page);
  await attention.getByRole('link', { name: 'Open archive' }).click();
  await expect(page).toHaveURL(/clients\/archive/);
});

test('another language holds for what was said to readers of the screen, and its menu closes', async ({
  page,
}) => {
  await signIn(page, broker, '#/');
  // Texts that come late are waited for.
  await page.route('**/assets/zh*', async (route) => {
    await page.waitForTimeout(1500);
    await route.continue();
  });
  await page.getByRole('button', { name: /^Session of/ }).click();
  await page.locator('.verdict [aria-live]').evaluate((speaks) => {
    const heard: string[] = [];
    const hears = () => {
      const text = speaks.textContent;
      if (text !== '' && document.documentElement.lang === 'zh-CN') heard.push(text);
    };
    new MutationObserver(hears).observe(speaks, { characterData: true, childList: true, subtree: true });
    Object.assign(window, { heard });
  });
  await page.getByRole('button', { name: 'Change the language to Chinese' }).click();
  await expect(page.locator('.user .pop')).toHaveCount(0);
  const spoken = page.locator('.verdict [aria-live]');
  await expect(spoken).toContainText(/[\u4e00-\u9fff]/);
  const heard = await page.evaluate<string[]>('heard');
  expect(heard.filter((text) => !/[\u4e00-\u9fff]/.test(text))).toEqual([]);
  await expect(page.getByRole('region', { name: '需要处理' })).toContainText('archive 离线');
  await expect(spoken).toHaveText('', { timeout: 15_000 });
});
