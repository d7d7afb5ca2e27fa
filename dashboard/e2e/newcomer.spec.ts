import { expect, test } from '@playwright/test';
import { Broker } from './broker';
import { accessible, watched } from './page';

test('a newcomer opens the setup link, and sees the first message', async ({ page }) => {
  const errors = watched(page);
  const broker = await Broker.start({ administrator: false });
  try {
    await page.goto(broker.url);
    await expect(page.getByText('This broker has no administrator yet.')).toBeVisible();

    await page.goto(await broker.setupLink());
    await accessible(page);
    await page.getByLabel('Password').fill('a long enough sentence');
    await page.getByRole('button', { name: 'Finish and open the dashboard' }).click();

    await expect(page.getByRole('heading', { name: 'no client has connected yet' })).toBeVisible();
    await expect(page.getByLabel('mosquitto_pub', { exact: true })).toContainText(`-p ${broker.mqttPort}`);
    expect(page.url()).not.toContain('setup');
    await accessible(page);

    await broker.publish('hello/me', 'Hello');
    await expect(page.getByRole('region', { name: 'Five figures' })).toBeVisible();
    await expect(page.getByText('Your first message has arrived.')).toBeVisible();
    await page.getByRole('link', { name: 'Topics', exact: true }).first().click();
    await expect(page.getByRole('heading', { level: 1 })).toContainText('this page began to count');
    await broker.publish('welcome', 'Hello tree');
    await expect(page.getByRole('row', { name: /^welcome/ })).toBeVisible();
    expect(errors).toEqual([]);
  } finally {
    await broker.stop();
  }
});

test('a used or wrong setup link is refused with what helps', async ({ page }) => {
  const broker = await Broker.start({ administrator: true });
  try {
    await page.goto(`${broker.url}setup?t=wrong`);
    await page.getByLabel('Password').fill('a long enough sentence');
    await page.getByRole('button', { name: 'Finish and open the dashboard' }).click();
    await expect(page.getByRole('alert')).toBeVisible();
  } finally {
    await broker.stop();
  }
});
