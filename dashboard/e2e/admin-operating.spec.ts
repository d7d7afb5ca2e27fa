// The tabs of Admin with which a broker is operated, and the page of data.
import { readFile } from 'node:fs/promises';
import { expect, test } from '@playwright/test';
import { Broker, Client } from './broker';
import { accessible, go, logIn, neverSideways, signIn, signInAnew, watched } from './page';

let broker: Broker;
let client: Client;

test.beforeAll(async () => {
  broker = await Broker.start({ below: '/iot/broker' });
  client = await Client.connect(broker.mqttPort, 'plc-17');
});

test.afterAll(async () => {
  client.close();
  await broker.stop();
});

test.describe('settings', () => {
  test('a change is planned, shown as TOML, applied, and taken back by its version', async ({ page }) => {
    const errors = watched(page);
    await signIn(page, broker, '#/admin/settings?group=limits');
    await expect(page.getByRole('heading', { level: 1 })).toContainText(
      'settings differ from their defaults',
    );
    await page.getByLabel('limits.client.inflight', { exact: true }).fill('256');
    await page.keyboard.press('Tab');
    const pending = page.getByRole('region', { name: '1 change, not applied' });
    await expect(pending).toContainText('inflight = 256');
    await expect(pending).toContainText('inflight = 1_024');
    await expect(pending).toContainText('valid');
    await accessible(page);
    await pending.getByRole('button', { name: 'Apply 1 change' }).click();
    await expect(page.getByText('1 change is applied.')).toBeVisible();
    await expect(page.getByLabel('limits.client.inflight', { exact: true })).toHaveValue('256');
    const versions = page.getByRole('region', { name: 'Versions' });
    await expect(versions).toContainText('in force');
    await versions.getByRole('button', { name: 'Go back to version 0' }).click();
    await expect(page.getByRole('dialog')).toContainText('replace the 1 key');
    await expect(page.getByRole('dialog')).toContainText('inflight = 1_024');
    await accessible(page);
    await page.getByRole('dialog').getByRole('button', { name: 'Go back to version 0' }).click();
    await expect(page.getByLabel('limits.client.inflight', { exact: true })).toHaveValue('1024');
    expect(errors).toEqual([]);
  });

  test('what the broker refuses is told with its reason, and nothing changes', async ({ page }) => {
    await signIn(page, broker, '#/admin/settings?find=inflight');
    await page.getByLabel('limits.client.inflight', { exact: true }).fill('0');
    await page.keyboard.press('Tab');
    await expect(page.getByRole('alert')).toContainText('expected a whole number from 1 to 65535');
    await expect(page.getByRole('button', { name: 'Apply 1 change' })).toBeDisabled();
    await page.getByRole('button', { name: 'Discard all' }).click();
    await expect(page.getByRole('alert')).toHaveCount(0);
  });

  test('a key of a file is pinned and names its line', async ({ page }) => {
    await signIn(page, broker, '#/admin/settings?find=limits.client.queue');
    const key = page.getByLabel('limits.client.queue', { exact: true });
    await expect(key).toHaveAttribute('readonly', '');
    await expect(page.getByText(/pinned by .*thrum\.toml:\d+/).first()).toBeVisible();
    await page.getByLabel('Find a setting').fill('nothing is called so');
    await expect(page.getByText('No setting is like that.')).toBeVisible();
  });

  test('files are reloaded after a look at what differs', async ({ page }) => {
    await signIn(page, broker, '#/admin/settings');
    await page.getByRole('button', { name: 'Reload files…' }).click();
    await expect(page.getByRole('dialog')).toContainText('Nothing has changed in the files.');
    await accessible(page);
    await page.getByRole('button', { name: 'Reload 0 changes' }).click();
    await expect(page.getByText('Reloaded: 0 keys have changed.')).toBeVisible();
  });
});

test('a listener is stopped with its clients, and started again', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker, '#/admin/listeners');
  await expect(page.getByRole('heading', { level: 1 })).toContainText('2 listeners are open');
  await accessible(page);
  await page.getByRole('button', { name: 'Stop mqtt' }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog).toContainText('1 client stays connected');
  await dialog.getByLabel('Disconnect its 1 client, too').check();
  await dialog.getByRole('button', { name: 'Stop mqtt, disconnect 1 client' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toContainText('mqtt is stopped');
  await page.getByRole('button', { name: 'Start mqtt' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toContainText('2 listeners are open');
  await page.getByRole('button', { name: 'Stop http' }).click();
  await expect(page.getByRole('dialog')).toContainText('thrum listeners start http');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Listeners: take it elsewhere' }).click();
  const file = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Save this list as CSV' }).click();
  expect(await readFile(await (await file).path(), 'utf8')).toContain('\r\nmqtt,open,tcp,');
  expect(errors).toEqual([]);
});

test('the log comes as it is written, filtered, paused, and with a level for a time', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker, '#/admin/logs');
  const log = page.getByRole('list', { name: 'Log' });
  await expect(page.getByText('live', { exact: true })).toBeVisible();
  const first = await Client.connect(broker.mqttPort, 'log-1');
  await expect(log.getByRole('link', { name: 'log-1' }).first()).toBeVisible();
  await accessible(page);
  await page.getByRole('button', { name: 'Pause' }).click();
  const second = await Client.connect(broker.mqttPort, 'log-2');
  await expect(page.getByText(/\d+ lines? waits?\./)).toBeVisible();
  await expect(log.getByText('log-2')).toHaveCount(0);
  await page.getByRole('button', { name: 'Go on' }).first().click();
  await expect(log.getByRole('link', { name: 'log-2' }).first()).toBeVisible();
  first.close();
  second.close();
  await page.getByLabel('Text in a line').fill('log-2');
  await page.keyboard.press('Enter');
  await expect(log.getByText('log-1')).toHaveCount(0);
  expect(page.url()).toContain('text=log-2');
  const levels = page.getByRole('region', { name: 'Level for a time' });
  await levels.getByLabel('Part').fill('thrum_broker::door');
  await levels.getByRole('button', { name: 'Set the level' }).click();
  await expect(levels.getByText('thrum_broker::door')).toBeVisible();
  await levels.getByRole('button', { name: 'End now' }).click();
  await expect(levels.getByText('thrum_broker::door')).toHaveCount(0);
  expect(errors).toEqual([]);
});

test('a backup is made, fetched and removed', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker, '#/admin/backup');
  await expect(page.getByRole('heading', { level: 1 })).toContainText('keeps no backup');
  await accessible(page);
  await page.getByRole('button', { name: 'Make a backup' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toContainText('The newest backup is');
  await accessible(page);
  const file = page.waitForEvent('download');
  await page.getByRole('link', { name: /Download the backup/ }).click();
  expect((await file).suggestedFilename()).toMatch(/^thrum-.*\.tar$/);
  await page.getByRole('button', { name: /Remove the backup/ }).click();
  await expect(page.getByRole('dialog')).toContainText('0 backups stay');
  await page.getByRole('button', { name: 'Remove 1 backup' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toContainText('keeps no backup');
  expect(errors).toEqual([]);
});

test('the explorer sends what reads at once, and asks before what changes', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker, '#/admin/api');
  await page.getByLabel('Find an operation').fill('lists clients');
  await page.getByRole('button', { name: '/clients' }).first().click();
  await page.getByLabel('limit').fill('7');
  await expect(page.locator('pre').first()).toContainText('/iot/broker/api/v1/clients?limit=7');
  await page.getByRole('button', { name: 'Send GET' }).click();
  const answer = page.getByRole('region', { name: 'Answer' });
  await expect(answer.getByRole('status')).toContainText('200');
  await expect(answer).toContainText('"clients"');
  await accessible(page);
  await go(page, broker, 'admin/api?op=publish_message');
  await page.getByLabel('Body').fill('{"topic":"from/explorer","payload":"1"');
  await expect(page.getByRole('button', { name: 'Send POST…' })).toBeDisabled();
  await page.getByLabel('Body').fill('{"topic":"from/explorer","payload":"1"}');
  await page.getByRole('button', { name: 'thrum api' }).click();
  await expect(page.locator('pre').first()).toContainText("thrum api post /publish --data '");
  await page.getByRole('button', { name: 'Send POST…' }).click();
  await expect(page.getByRole('dialog')).toContainText('This changes the broker');
  await page.getByRole('button', { name: 'Send POST', exact: true }).click();
  await expect(answer.getByRole('status')).toContainText('200');
  await go(page, broker, 'admin/api?op=show_client');
  await page.getByRole('textbox', { name: /^id / }).fill('nobody');
  await page.getByRole('button', { name: 'Send GET' }).click();
  await expect(answer.getByRole('status')).toContainText('404');
  expect(errors).toEqual([]);
});

test('the test client speaks MQTT 5.0 below a path, and keeps its password out of addresses', async ({
  page,
}) => {
  const errors = watched(page);
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  page.on('websocket', (socket) => asked.push(socket.url()));
  await signIn(page, broker, '#/admin/listeners');
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  expect(asked.filter((url) => url.includes('mqtt.esm'))).toEqual([]);
  await page.getByRole('link', { name: 'Test client' }).click();
  await accessible(page);
  await page.getByLabel('Client identifier').fill('try-1');
  await page.getByLabel('User name').fill('someone');
  await page.getByLabel('Password').fill('very-secret');
  await page.getByRole('button', { name: 'Session, will, properties' }).click();
  await page.getByLabel('With a will').check();
  await page.getByLabel('Topic of the will').fill('wills/try-1');
  await accessible(page);
  // No user store: a name that nobody asked for is admitted as it is.
  await page.getByRole('button', { name: 'Connect', exact: true }).click();
  await expect(page.getByRole('heading', { level: 1 })).toContainText('try-1 is connected');
  expect(asked.some((url) => url.startsWith('ws://') && url.endsWith('/iot/broker/mqtt'))).toBe(true);
  expect(asked.filter((url) => url.includes('very-secret'))).toEqual([]);

  await page.getByLabel('Topic filter').fill('try/#');
  await page.getByRole('button', { name: 'Subscribe', exact: true }).click();
  const subscriptions = page.getByRole('region', { name: 'Subscriptions' });
  await expect(subscriptions).toContainText('QoS 1 · 0 received');
  await page.getByLabel('Topic', { exact: true }).first().fill('try/a');
  await page.getByLabel('Payload', { exact: true }).fill('{"t":21.7}');
  await page.getByRole('button', { name: 'Properties of MQTT 5.0 (0)' }).click();
  await page.getByLabel('Content type').fill('application/json');
  await page.getByLabel('Response topic').fill('try/answer');
  await page.getByLabel('Correlation data', { exact: true }).fill('42');
  await page.getByLabel('User properties').fill('from=dashboard');
  await page.getByRole('button', { name: 'Publish 1 message' }).click();
  await expect(subscriptions).toContainText('QoS 1 · 1 received');
  const messages = page.getByRole('region', { name: 'Messages' });
  await messages.getByRole('button', { name: /received.*try\/a/ }).click();
  await expect(messages).toContainText('application/json');
  await expect(messages).toContainText('dashboard');
  await expect(messages.locator('pre')).toContainText('"t": 21.7');
  await accessible(page);
  await messages.getByRole('button', { name: 'Answer' }).click();
  await expect(page.getByLabel('Topic', { exact: true }).first()).toHaveValue('try/answer');

  await page.getByRole('button', { name: 'Hex' }).first().click();
  await page.getByLabel('Payload', { exact: true }).fill('a2 61 74');
  await page.getByLabel('Topic', { exact: true }).first().fill('locked/x');
  await page.getByRole('region', { name: 'Publish' }).getByLabel('QoS').selectOption('1');
  await page.getByRole('button', { name: 'Publish 1 message' }).click();
  await expect(messages.getByRole('button', { name: /locked\/x.*refused/ })).toBeVisible();

  // Kicked: it comes back by itself, and subscribes again.
  await page.evaluate(async () => {
    const who: unknown = await (await fetch('api/v1/login')).json();
    const token = typeof who === 'object' && who !== null && 'token' in who ? String(who.token) : '';
    await fetch('api/v1/clients/try-1', { method: 'DELETE', headers: { 'x-thrum-token': token } });
  });
  await expect(page.getByRole('heading', { level: 1 })).toContainText('The connection is lost');
  await expect(page.getByRole('heading', { level: 1 })).toContainText('try-1 is connected');
  await broker.publish('try/after', 'again');
  await expect(messages.getByRole('button', { name: /received.*try\/after/ })).toBeVisible();

  // Without the broker it says so; the session of the reader is gone with it.
  await broker.down();
  await expect(page.getByRole('heading', { level: 1 })).toContainText('The connection is lost', {
    timeout: 15_000,
  });
  await broker.up();
  await expect(page.getByText('Your session has ended.').first()).toBeVisible({ timeout: 25_000 });
  expect(errors.filter((error) => !error.includes('WebSocket'))).toEqual([]);
});

test('data says what a sink is while there is none, and accounts for one that there is', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker, '#/data');
  await expect(page.getByRole('heading', { level: 1 })).toContainText('No data leaves this broker by itself');
  await accessible(page);
  // It is made on the page of the settings, as its text says.
  await go(page, broker, 'admin/settings?find=sinks');
  const add = page.getByRole('region', { name: 'A key that is not listed' });
  await add.getByRole('button', { name: 'Add…' }).click();
  const file = `${broker.folder}/orders.jsonl`;
  for (const [key, value] of [
    ['sinks.orders.filter', 'orders/#'],
    ['sinks.orders.path', file],
  ] as const) {
    await add.getByLabel('Key').fill(key);
    await add.getByLabel('Value').fill(value);
    await add.getByRole('button', { name: 'Add to your changes' }).click();
  }
  await page.getByRole('button', { name: 'Apply 2 changes' }).click();
  await expect(page.getByText('2 changes are applied.')).toBeVisible();
  await broker.publish('orders/1', 'one', '-q', '1');
  await broker.publish('orders/2', 'two', '-q', '1');
  await go(page, broker, 'data');
  await expect(page.getByRole('heading', { level: 1 })).toContainText('1 sink writes what it gets');
  const account = page.getByRole('region', { name: 'The account of orders' });
  await expect(account).toContainText('adds up');
  await expect(account).toContainText(/2\s*written/);
  await accessible(page);
  expect(await readFile(file, 'utf8')).toContain('"topic":"orders/1"');
  expect(errors).toEqual([]);
});

test('a viewer sees what it may, and reads what it lacks', async ({ page }) => {
  await signInAnew(page, broker);
  const status = await page.evaluate(async () => {
    const who: unknown = await (await fetch('api/v1/login')).json();
    const token = typeof who === 'object' && who !== null && 'token' in who ? String(who.token) : '';
    const made = await fetch('api/v1/admins', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-thrum-token': token },
      body: JSON.stringify({ name: 'watcher', role: 'viewer', password: 'watch-watch-watch' }),
    });
    await fetch('api/v1/login', { method: 'DELETE', headers: { 'x-thrum-token': token } });
    return made.status;
  });
  expect(status).toBe(201);
  await page.goto(`${broker.url}#/admin/settings`);
  await page.reload();
  await logIn(page, 'watcher', 'watch-watch-watch');
  for (const [place, text] of [
    ['admin/settings', 'Your role may look at settings and not change them'],
    ['admin/listeners', 'open'],
    ['admin/backup', 'It needs the scope admin'],
    ['admin/api?op=kick_client', 'Your role lacks this scope'],
    ['data', 'sink'],
  ] as const) {
    await go(page, broker, place);
    await expect(page.locator('main')).toContainText(text);
  }
  await go(page, broker, 'admin/listeners');
  await expect(page.getByRole('button', { name: /^Stop/ })).toHaveCount(0);
});

test('no tab scrolls sideways, from 360 px to 4K', async ({ page }) => {
  await signIn(page, broker);
  await neverSideways(page, [
    'admin/settings?group=limits',
    'admin/settings?group=listeners.mqtt',
    'admin/listeners',
    'admin/logs',
    'admin/backup',
    'admin/api?op=list_clients',
    'admin/test',
    'data',
  ]);
});
