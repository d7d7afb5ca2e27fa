// Who may see what: roles, pages without a right, keys alone, and the address that leads back.
import { type Page, expect, test } from '@playwright/test';
import { Broker, Client, NAME, PASSWORD } from './broker';
import { accessible, go, logIn, signIn, signInAnew, watched } from './page';

let broker: Broker;
let client: Client;

test.beforeAll(async () => {
  broker = await Broker.start();
  client = await Client.connect(broker.mqttPort, 'one');
  client.publish('site/a', 'secret', { retain: true });
});

test.afterAll(async () => {
  client.close();
  await broker.stop();
});

async function signInAs(page: Page, name: string, place = ''): Promise<void> {
  await page.goto(`${broker.url}${place}`);
  await logIn(page, name);
}

test('a viewer sees figures and clients, but no payloads, and changes nothing', async ({ page }) => {
  const errors = watched(page);
  await broker.administrator('vera', 'viewer');
  await signInAs(page, 'vera', '#/clients/one');
  await expect(page.getByRole('heading', { level: 1 })).toContainText('one is connected');
  await expect(page.getByRole('button', { name: 'Kick…' })).toHaveCount(0);
  await go(page, broker, 'topics/site/a');
  await expect(page.getByRole('region', { name: 'site/a' })).toContainText('Who publishes');
  client.publish('site/a', 'secret', { retain: true });
  await expect(page.getByText('Your role may not read payloads.')).toBeVisible();
  await expect(page.getByText('secret')).toHaveCount(0);
  await expect(page.getByRole('button', { name: 'Publish', exact: true })).toHaveCount(0);
  await go(page, broker, 'messages/retained');
  await expect(page.locator('main').getByText('messages:read')).toBeVisible();
  await accessible(page);
  expect(errors).toEqual([]);
});

for (const [how, disconnects] of [
  ['connected', false],
  ['disconnected', true],
] as const)
  test(`who signs in next gets nothing of a test client that is ${how}`, async ({ page }) => {
    const errors = watched(page);
    const next = `next-${how}`;
    await broker.administrator(next, 'viewer');
    await signInAnew(page, broker, '#/admin/test');
    await page.getByLabel('Client identifier').fill('mine');
    await page.getByLabel('User name').fill('ann');
    await page.getByLabel('Password').fill('secret-of-ann');
    await page.getByRole('button', { name: 'Connect', exact: true }).click();
    await expect(page.getByRole('heading', { level: 1 })).toContainText('mine is connected');
    await page.getByRole('button', { name: 'Subscribe', exact: true }).click();
    await expect(page.getByRole('button', { name: /received.*site\/a/ })).toBeVisible();
    if (disconnects) {
      await page.getByRole('button', { name: 'Disconnect' }).click();
      await expect(page.getByLabel('Client identifier')).toHaveValue('mine');
      await expect(page.getByLabel('Password')).toHaveValue('');
    }
    await page.getByRole('button', { name: `Session of ${NAME}`, exact: true }).click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    // The test client has a field for a password, too.
    await expect(page.getByRole('heading', { level: 1 })).toContainText('Sign in');
    await logIn(page, next, PASSWORD);
    await expect(page.getByRole('heading', { level: 1 })).toContainText('Not connected');
    await expect(page.getByLabel('Client identifier')).not.toHaveValue('mine');
    await expect(page.getByLabel('User name')).toHaveValue('');
    await expect(page.getByLabel('Password')).toHaveValue('');
    await expect(page.getByText('No message yet.')).toBeVisible();
    await expect(page.getByText('0 received')).toBeVisible();
    expect(errors).toEqual([]);
  });

test('each page says which right is missing', async ({ page }) => {
  test.setTimeout(90_000);
  const errors = watched(page);
  // The broker has no role with so little; the page learns its rights from this answer.
  await page.route('**/api/v1/login', async (route) => {
    if (route.request().method() !== 'GET') return route.continue();
    const answer = await route.fetch();
    const who: unknown = await answer.json();
    const scopes =
      typeof who === 'object' && who !== null && 'token' in who && who.token ? ['logs:read'] : [];
    await route.fulfill({ response: answer, json: { ...(who as object), scopes } });
  });
  await signIn(page, broker);
  for (const [place, scope] of [
    ['', 'metrics:read'],
    ['clients', 'clients:read'],
    ['clients/one', 'clients:read'],
    ['topics', 'clients:read'],
    ['messages', 'clients:read'],
    ['messages/retained', 'messages:read'],
    ['messages/groups', 'clients:read'],
    ['why', 'clients:read'],
  ] as const) {
    await go(page, broker, place);
    await expect(page.locator('main').getByText(scope).first(), place).toBeVisible();
    await accessible(page);
  }
  expect(errors).toEqual([]);
});

test('a login leads to the place that was asked for', async ({ page }) => {
  await signInAs(page, NAME, '#/topics/site/a');
  await expect(page.getByRole('region', { name: 'site/a' })).toBeVisible();
});

test('every place is reached and used with keys alone', async ({ page }) => {
  await page.goto(broker.url);
  // The field of the name is the first thing.
  await expect(page.getByLabel('Name', { exact: true })).toBeFocused();
  await page.keyboard.type(NAME);
  await page.keyboard.press('Tab');
  await page.keyboard.type(PASSWORD);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('region', { name: 'Five figures' })).toBeVisible();
  await page.keyboard.press('Tab');
  await expect(page.getByRole('link', { name: 'Skip to content' })).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page.locator('main')).toBeFocused();
  for (const [key, place] of [
    ['t', 'topics'],
    ['c', 'clients'],
    ['m', 'messages'],
    ['b', 'bench'],
    ['w', 'why'],
    ['d', 'data'],
    ['a', 'admin'],
    ['c', 'clients'],
  ] as const) {
    await page.keyboard.press('g');
    await page.keyboard.press(key);
    await expect(page).toHaveURL(new RegExp(`#/${place}`));
  }
  // The list: filter, open the client, open a dialog and leave it; the focus returns.
  await expect(page.getByRole('link', { name: 'one', exact: true })).toBeVisible();
  await page.keyboard.press('/');
  await expect(page.getByLabel('Filter clients')).toBeFocused();
  await page.keyboard.type('one');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/filter=one/);
  const columns = page.getByRole('button', { name: 'Columns' });
  await columns.focus();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('dialog')).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await expect(columns).toBeFocused();
  await page.getByRole('link', { name: 'one', exact: true }).focus();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { level: 1 })).toContainText('one is connected');
});
