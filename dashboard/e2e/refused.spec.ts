// Messages that are refused to their publishers, and the search of topics in branches that are closed.
import { expect, test } from '@playwright/test';
import { Broker, Client } from './broker';
import { accessible, go, signIn, watched } from './page';

let broker: Broker;
let publisher: Client;
let timer: ReturnType<typeof setInterval>;

test.beforeAll(async () => {
  broker = await Broker.start();
  publisher = await Client.connect(broker.mqttPort, 'plc-17');
  for (let n = 0; n < 3; n += 1) publisher.publish('locked/own', 'x', { qos: 1 });
  publisher.publish('locked/own', 'x');
  timer = setInterval(() => {
    for (let line = 0; line < 120; line += 1)
      publisher.publish(`plant/hall-${String(line % 4)}/line-${String(line)}/Pressure`, '1');
  }, 500);
});

test.afterAll(async () => {
  clearInterval(timer);
  publisher.close();
  await broker.stop();
});

test('refused messages are told apart from dropped ones, with their publisher and the cure', async ({
  page,
}) => {
  const errors = watched(page);
  await signIn(page, broker, '#/messages');
  const refused = page.getByRole('region', { name: 'Refused to publishers' });
  await expect(refused).toContainText('Refused: 4.');
  await expect(refused).toContainText('do not know of 1');
  await expect(page.getByRole('heading', { level: 1 })).toContainText('Nothing was dropped');
  await expect(page.getByText('The rules deny it.')).toBeVisible();
  await accessible(page);
  await page
    .getByRole('region', { name: 'Refused by publisher' })
    .getByRole('button', { name: 'plc-17' })
    .click();
  await expect(page).toHaveURL(/publisher=plc-17/);
  await page.getByRole('link', { name: 'Open plc-17' }).click();
  await expect(page.getByText('Refused to it')).toBeVisible();
  await expect(page.getByText('the rules deny it', { exact: true })).toBeVisible();
  expect(errors).toEqual([]);
});

test('home says that publishers are refused while it happens', async ({ page }) => {
  const strict = await Broker.start({ limits: 'retained_messages = 1' });
  try {
    const client = await Client.connect(strict.mqttPort, 'plc-18');
    client.publish('state/1', 'x', { qos: 1, retain: true });
    const again = setInterval(() => client.publish('state/2', 'x', { qos: 1, retain: true }), 200);
    await signIn(page, strict);
    const attention = page.getByRole('region', { name: 'Needs attention' });
    await expect(attention).toContainText('Publishers are refused', { timeout: 40_000 });
    // A publisher that is told still has its message: nothing is lost.
    await expect(attention.locator('.att')).toHaveCount(1);
    await attention.getByRole('link', { name: 'Show what is refused' }).click();
    await expect(page.getByRole('region', { name: 'Refused to publishers' })).toBeInViewport();
    clearInterval(again);
    client.close();
  } finally {
    await strict.stop();
  }
});

test('a search finds topics of closed branches, by a part or a filter, with keys alone', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker, '#/topics');
  await expect(page.getByRole('row', { name: /^plant/ })).toBeVisible();
  const field = page.locator('[data-filter]');
  await field.fill('LINE-17/pres');
  const hits = page.getByRole('list', { name: 'Topics that were found' });
  await expect(hits.getByRole('link')).toHaveText(['plant/hall-1/line-17/Pressure']);
  await accessible(page);
  await field.press('ArrowDown');
  await expect(hits.getByRole('link').first()).toBeFocused();
  await page.keyboard.press('ArrowUp');
  await expect(field).toBeFocused();
  await field.press('ArrowDown');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('region', { name: 'plant/hall-1/line-17/Pressure' })).toBeVisible();
  await field.fill('pressure');
  await expect(page.getByText('The first 100 by name are shown, there are more')).toBeVisible();
  await field.fill('plant/hall-2/+/Pressure');
  await expect(page.getByText('30 topics or levels were found')).toBeVisible();
  await field.fill('a+');
  await expect(page.getByText('stand alone between slashes')).toBeVisible();
  await field.fill('');
  await expect(page.getByRole('row', { name: /^plant/ })).toBeVisible();
  await page.keyboard.press('Control+k');
  await page.getByRole('dialog').getByRole('combobox').fill('line-99/');
  await page.getByRole('option', { name: /^plant\/hall-3\/line-99\/Pressure/ }).click();
  await expect(page.getByRole('region', { name: 'plant/hall-3/line-99/Pressure' })).toBeVisible();
  expect(errors).toEqual([]);
});

test('the parts fit a phone', async ({ page }) => {
  await page.setViewportSize({ width: 360, height: 740 });
  await signIn(page, broker, '#/messages');
  await expect(page.getByRole('region', { name: 'Refused by reason' })).toBeVisible();
  await go(page, broker, 'topics');
  await page.locator('[data-filter]').fill('pressure');
  await expect(page.getByText('The first 100 by name are shown, there are more')).toBeVisible();
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  expect(wide).toBeLessThanOrEqual(0);
});
