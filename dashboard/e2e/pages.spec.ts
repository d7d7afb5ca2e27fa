import { expect, test } from '@playwright/test';
import { Broker, Client, NAME, PASSWORD } from './broker';
import { accessible, go, neverSideways, signIn, watched } from './page';

/** As long as a name may be that somebody gives, without a place to break it. */
const LONG = `robot-${'x'.repeat(194)}`;
let broker: Broker;
let clients: Client[] = [];
let timer: ReturnType<typeof setInterval>;

test.beforeAll(async () => {
  broker = await Broker.start();
  const slow = await Client.connect(broker.mqttPort, 'hist-1', 1);
  await slow.subscribe('site/#', 1);
  const reader = await Client.connect(broker.mqttPort, 'dash-2');
  await reader.subscribe('site/a/+/temp', 0);
  const shared = await Client.connect(broker.mqttPort, 'etl-1');
  await shared.subscribe('$share/etl/site/#', 0);
  const publisher = await Client.connect(broker.mqttPort, '<b>plc</b>/17');
  clients = [slow, reader, shared, publisher];
  let n = 0;
  timer = setInterval(() => {
    n += 1;
    publisher.publish('site/a/line3/temp', JSON.stringify({ t: 20 + n / 10, u: 'C' }), {
      qos: 1,
      retain: true,
    });
    publisher.publish('site/a/line3/raw', Buffer.from('a2617401617502', 'hex'));
    publisher.publish('/devices//7', '{"t": 7}');
    publisher.publish('site/<img src=x onerror=alert(1)>', '<script>alert(1)</script>');
  }, 200);
});

test.afterAll(async () => {
  clearInterval(timer);
  clients.forEach((client) => client.close());
  await broker.stop();
});

test('a wrong password is told, and the right one opens the page', async ({ page }) => {
  await page.goto(broker.url);
  await accessible(page);
  await page.getByLabel('Name', { exact: true }).fill(NAME);
  await page.getByLabel('Password').fill('wrong-wrong-wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('alert')).toContainText('wrong');
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('region', { name: 'Five figures' })).toBeVisible();
  await page.getByRole('button', { name: `Session of ${NAME}`, exact: true }).click();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible();
});

test('home says who loses messages, and shows them with one click', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker);
  await expect(page.getByRole('heading', { level: 1 })).toContainText('hist-1 loses messages', {
    timeout: 20_000,
  });
  await expect(page.locator('canvas').first()).toBeVisible();
  await accessible(page);
  await page.getByRole('link', { name: 'Open hist-1' }).first().click();
  await expect(page.getByRole('heading', { level: 1 })).toContainText('hist-1 loses messages');
  expect(errors).toEqual([]);
});

test('names of clients and topics are text, whatever is in them', async ({ page }) => {
  const errors = watched(page);
  page.on('dialog', () => errors.push('a dialog was opened'));
  await signIn(page, broker, '#/clients');
  await page.getByRole('link', { name: '<b>plc</b>/17' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toContainText('<b>plc</b>/17 is connected');
  await page.getByRole('button', { name: 'Show packets' }).click();
  await expect(page.getByText('PUBLISH').first()).toBeVisible();
  await go(page, broker, `topics/site/${encodeURIComponent('<img src=x onerror=alert(1)>')}`);
  await expect(page.locator('pre')).toContainText('<script>alert(1)</script>');
  expect(await page.locator('main img').count()).toBe(0);
  expect(errors).toEqual([]);
});

test('figures of each page say what they are, and how to get them elsewhere', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker);
  for (const [place, least] of [
    ['', 15],
    ['clients', 6],
    ['clients/hist-1', 8],
    ['topics/site/a/line3/temp', 9],
    ['messages', 4],
    ['messages/retained', 2],
    ['messages/groups', 4],
    ['admin/listeners', 4],
  ] as const) {
    await go(page, broker, place);
    const asked = page.getByRole('button', { name: /^What is .*PromQL, curl, command$/ });
    await expect.poll(() => asked.count(), place).toBeGreaterThanOrEqual(least);
    // The last one may be at the edge of the window.
    for (const one of [asked.first(), asked.last()]) {
      await one.focus();
      await page.keyboard.press('Enter');
      await expect(page.getByRole('button', { name: 'Copy as thrum command' })).toBeVisible();
      await expect(page.getByRole('button', { name: 'Copy as curl' })).toBeInViewport({ ratio: 1 });
      await page.keyboard.press('Escape');
      await expect(one).toBeFocused();
    }
  }
  await go(page, broker, 'clients');
  await page.getByRole('button', { name: /^What is Connects\?/ }).click();
  await expect(page.getByText('rate(thrum_clients_accepted_total[1m])')).toBeVisible();
  await accessible(page);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByRole('button', { name: 'Copy as curl' }).click();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(copied).toContain('/api/v1/history?figure=connects');
  expect(errors).toEqual([]);
});

test('clients are filtered by facets and terms, and the address keeps it', async ({ page }) => {
  await signIn(page, broker, '#/clients');
  await expect(page.getByRole('row')).toHaveCount(5);
  await page.getByLabel('Filters').getByText('cannot keep up').click();
  await expect(page.getByRole('row')).toHaveCount(2);
  expect(page.url()).toContain('problem%3Dslow');
  await page.reload();
  await expect(page.getByRole('row')).toHaveCount(2);
  await page.getByLabel('Filter clients').fill('queue>');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('alert')).toContainText('queue');
  await page.getByLabel('Filter clients').fill('dash');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('link', { name: 'dash-2' })).toBeVisible();
  await accessible(page);
});

test('a client has its story, its queue, and may be kicked', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker, '#/clients/hist-1');
  await expect(page.getByRole('region', { name: 'What happened' })).toContainText('Connected from');
  await expect(page.getByRole('region', { name: 'Held for it' })).toContainText('site/a/line3/temp');
  await accessible(page);
  await page.getByRole('button', { name: 'May it publish to…?' }).click();
  await page.getByLabel('Topic').fill('locked/config');
  await page.getByRole('button', { name: 'Ask the broker' }).click();
  await expect(page.getByRole('dialog').getByRole('status')).toContainText('No.');
  await page.keyboard.press('Escape');
  await go(page, broker, 'clients/etl-1');
  await page.getByRole('button', { name: 'Kick…' }).click();
  await expect(page.getByRole('dialog')).toContainText('disconnect the client');
  await page.getByRole('button', { name: 'Kick 1 client' }).click();
  await expect(page.getByText('etl-1 was kicked.')).toBeVisible();
  await expect(page.getByRole('heading', { level: 1 })).toContainText('has no session');
  expect(errors).toEqual([]);
});

test('a client that is not known is told', async ({ page }) => {
  await signIn(page, broker, '#/clients/nobody');
  await expect(page.getByRole('heading', { level: 1 })).toContainText('does not know nobody');
});

test('the tree shows a value, who sends it and what it was before', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker, '#/topics/site/a/line3/temp');
  await expect(page.getByRole('row', { selected: true })).toContainText('temp');
  const topic = page.getByRole('region', { name: 'site/a/line3/temp' });
  await expect(topic.getByRole('link', { name: '<b>plc</b>/17' })).toBeVisible();
  await expect(topic).toContainText('+0.1 since the message before');
  await accessible(page);
  await page.getByRole('row', { name: /raw/ }).click();
  await expect(page.locator('pre')).toContainText('"u": 2');
  await expect(page.getByRole('button', { name: 'CBOR' })).toHaveAttribute('aria-pressed', 'true');
  expect(errors).toEqual([]);
});

test('a topic with empty levels opens from the tree', async ({ page }) => {
  await signIn(page, broker, '#/topics');
  const row = page.getByRole('row', { name: /^(?:\/|devices|7)(?:\s|$)/ });
  for (const [level, name] of ['/', 'devices', '/', '7'].entries()) {
    const one = row.and(page.locator(`[aria-level="${level + 1}"]`)).filter({ hasText: name });
    await one.first().focus();
    await page.keyboard.press(level < 3 ? 'ArrowRight' : 'Enter');
  }
  await expect(page.getByRole('region', { name: '/devices//7' })).toContainText('"t": 7');
});

test('a search says when it finds nothing, opens what it found, and takes no filter for a topic', async ({
  page,
}) => {
  await signIn(page, broker, '#/topics/site/a/line3/temp');
  await expect(page.getByRole('region', { name: 'site/a/line3/temp' })).toContainText('Who publishes');
  const field = page.locator('[data-filter]');
  await field.fill('nowhere');
  await expect(page.getByText('No topic contains “nowhere”.')).toBeVisible();
  await field.fill('RAW ');
  await field.press('Enter');
  await expect(page.getByRole('region', { name: 'site/a/line3/raw' })).toBeVisible();
  await field.fill('+/temp');
  await field.press('Enter');
  await expect(page.getByText('+/temp is a filter, and no topic')).toBeVisible();
  await field.fill('');
  await expect(page.locator('header').getByText('· live')).toBeVisible();
  await page.getByRole('row', { name: /^site/ }).first().click();
  await expect(page.getByText('No message had exactly this topic')).toBeVisible();
});

test('the tree works with keys alone, and can be paused', async ({ page }) => {
  await signIn(page, broker, '#/topics');
  const site = page.getByRole('row', { name: /^site/ });
  await site.focus();
  await page.keyboard.press('ArrowRight');
  await expect(page.getByRole('row', { name: /^a / })).toBeVisible();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowLeft');
  await expect(page.getByRole('row', { name: /^a / })).toHaveCount(0);
  await page.getByRole('button', { name: 'Pause' }).click();
  await expect(page.getByText(/Paused\. \d+ change/)).toBeVisible();
  await page.getByRole('button', { name: 'Go on' }).last().click();
  await expect(page.getByText(/Paused\./)).toHaveCount(0);
});

test('a message is published from the page, retained, and deleted again', async ({ page }) => {
  await signIn(page, broker, '#/topics/test/here');
  await page.getByRole('button', { name: 'Publish', exact: true }).click();
  await page.getByLabel('Payload').fill('42');
  await page.getByLabel('Retain it').check();
  await page.getByRole('button', { name: 'Publish 1 message' }).click();
  await expect(page.getByText('Published: nobody subscribes to it.')).toBeVisible();
  await expect(page.getByRole('region', { name: 'test/here' })).toContainText('retained');
  await page.getByRole('button', { name: 'Delete retained…' }).click();
  await page.getByRole('button', { name: 'Delete 1 retained message' }).click();
  await expect(page.getByText('1 retained message was deleted.')).toBeVisible();
  await page.getByRole('button', { name: 'Who may write?' }).click();
  await page.getByLabel('Client', { exact: true }).fill('someone');
  await page.getByRole('button', { name: 'Ask the broker' }).click();
  await expect(page.getByRole('dialog').getByRole('status')).toContainText('Allowed.');
});

test('messages show what is dropped, retained and shared', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker, '#/messages');
  await expect(page.getByRole('heading', { level: 1 })).toContainText('dropped each second', {
    timeout: 15_000,
  });
  await expect(page.getByRole('region', { name: 'Client × topic' })).toContainText('hist-1');
  await accessible(page);
  await page.getByRole('button', { name: 'Retained' }).click();
  await expect(page.getByRole('link', { name: 'site/a/line3/temp' })).toBeVisible();
  await page.getByRole('button', { name: 'Shared groups' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toContainText('group');
  expect(errors).toEqual([]);
});

test('why names the client that does not acknowledge', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker, '#/why');
  await expect(page.getByRole('heading', { level: 1 })).toContainText('Measuring');
  await expect(page.getByRole('heading', { level: 1 })).toContainText('clients that do not acknowledge', {
    timeout: 20_000,
  });
  await expect(page.getByRole('link', { name: 'hist-1' })).toBeVisible();
  await accessible(page);
  await page.getByRole('button', { name: /^Drops/ }).click();
  await expect(page.getByRole('heading', { level: 1 })).toContainText('dropped');
  expect(errors).toEqual([]);
});

test('Control K finds a client', async ({ page }) => {
  await signIn(page, broker);
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox').fill('dash');
  await expect(page.getByRole('option', { name: /dash-2/ })).toBeVisible();
  await accessible(page);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { level: 1 })).toContainText('dash-2');
});

test('the page speaks Chinese and keeps it', async ({ page }) => {
  await signIn(page, broker);
  await page.getByRole('button', { name: `Session of ${NAME}`, exact: true }).click();
  await page.getByRole('button', { name: 'Change the language to Chinese' }).click();
  await expect(page.getByRole('link', { name: '客户端', exact: true }).first()).toBeVisible();
  await page.reload();
  await expect(page.getByRole('region', { name: '五个数值' })).toBeVisible();
  await expect(page.locator('html')).toHaveAttribute('lang', 'zh-CN');
});

test('no page scrolls sideways, from 360 px to 4K, however long a name is', async ({ page }) => {
  const long = await Client.connect(broker.mqttPort, LONG);
  long.publish(`long/${LONG}`, LONG, { retain: true });
  await long.subscribe(`never/${LONG}`, 1);
  await signIn(page, broker);
  await neverSideways(page, [
    `clients/${LONG}`,
    `topics/long/${LONG}`,
    '',
    'clients',
    'clients/hist-1',
    'topics/site/a/line3/temp',
    'messages',
    'messages/retained',
    'messages/groups',
    'bench',
    'admin/access',
    'admin/access/rules',
    'admin/access/test',
    'admin/people',
    'admin/audit',
    'admin/settings',
    'admin/listeners',
    'admin/backup',
    'account',
    'data',
    'more',
  ]);
  long.publish(`long/${LONG}`, '', { retain: true });
  long.close();
});

test('a long tree draws the rows in sight, and keys lead to all of them', async ({ page }) => {
  await signIn(page, broker, '#/topics/many/000');
  // The broker counts topics since somebody looks.
  const tree = page.getByRole('treegrid', { name: 'Topics' });
  await expect(tree.getByRole('row', { name: /^site/ })).toBeVisible();
  const publisher = await Client.connect(broker.mqttPort, 'many');
  for (let n = 0; n < 100; n += 1) publisher.publish(`many/${String(n).padStart(3, '0')}`, String(n));
  await expect(tree).toHaveAttribute('aria-rowcount', /^1\d\d$/);
  expect(await tree.getByRole('row').count()).toBeLessThan(80);
  await tree.getByRole('row', { name: /^000/ }).focus();
  const focused = page.locator('[role=row]:focus');
  await page.keyboard.press('ArrowLeft');
  await expect(focused).toContainText('many');
  await page.keyboard.press('ArrowRight');
  await expect(focused).toContainText('000');
  await page.keyboard.press('End');
  await expect(focused).toHaveAttribute('aria-rowindex', (await tree.getAttribute('aria-rowcount')) ?? '');
  await expect(focused).toBeInViewport({ ratio: 1 });
  await page.keyboard.press('Home');
  await expect(focused).toHaveAttribute('aria-rowindex', '2');
  await expect(focused).toBeInViewport({ ratio: 1 });
  await accessible(page);
  publisher.close();
});
