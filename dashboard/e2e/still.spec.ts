// What a reader looks at stays where it is.
import { expect, test } from '@playwright/test';
import { Broker, Client } from './broker';
import { signIn } from './page';

let broker: Broker;

test.beforeAll(async () => {
  broker = await Broker.start();
});

test.afterAll(async () => broker.stop());

test('the list of clients stays where it is when it is filtered', async ({ page }) => {
  const clients = await Promise.all(['plant-a', 'plant-b'].map((id) => Client.connect(broker.mqttPort, id)));
  await signIn(page, broker, '#/clients');
  const list = page.getByRole('table').locator('tbody');
  const row = list.getByRole('link', { name: 'plant-a', exact: true });
  for (const width of [400, 820, 1280, 3840]) {
    await page.setViewportSize({ width, height: 900 });
    await page.evaluate(() => (location.hash = '#/clients'));
    await expect(list.getByRole('link')).toHaveCount(2);
    const before = await row.evaluate((one) => one.getBoundingClientRect().top);
    await page.evaluate(() => (location.hash = '#/clients?filter=state%3Dconnected%20client%3Dplant-a'));
    await expect(list.getByRole('link')).toHaveCount(1);
    await expect(page.getByRole('heading', { name: 'matches the filter' })).toBeVisible();
    const after = await row.evaluate((one) => one.getBoundingClientRect().top);
    expect(Math.abs(after - before), `${width} px: from ${before} to ${after}`).toBeLessThan(1);
  }
  for (const client of clients) client.close();
});
