// Nothing is left in English on a page in Chinese.
import { expect, type Page, test } from '@playwright/test';
import { Broker, Client, NAME, PASSWORD } from './broker';
import { KEYS } from '../src/pages/admin/settings/keysZh';
import { english } from './english';

const RUN = `version = 5
stages = ["warmup 1s", "hold 3s", "drain 1s"]

[groups.devices]
clients = 5
publish = { topic = "test/{run}/{i}", rate = "20/s", qos = 1, payload = "32B" }

[groups.backend]
clients = 1
subscribe = { filter = "test/{run}/#", qos = 1 }

[thresholds]
"delivered" = "== 100%"
"e2e.p99" = "< 1us"
`;
const PLACES = [
  '',
  'topics',
  'topics/site/a/line3/temp',
  'topics/none/here',
  'clients',
  'clients/hist-1',
  'clients/nobody',
  'messages',
  'messages/retained',
  'messages/groups',
  'why',
  'why?what=drops',
  'bench',
  'bench/new',
  'bench/new?way=toml',
  'bench/compare',
  'data',
  'admin/access',
  'admin/access/groups',
  'admin/access/rules',
  'admin/access/bans',
  'admin/access/test',
  'admin/people',
  'admin/people/keys',
  'admin/listeners',
  'admin/settings',
  'admin/audit',
  'admin/logs',
  'admin/backup',
  'admin/api',
  'admin/test',
  'account',
  'more',
] as const;
let broker: Broker;
let clients: Client[] = [];
let timer: ReturnType<typeof setInterval>;

test.describe.configure({ mode: 'serial' });
test.beforeAll(async () => {
  broker = await Broker.start();
  const slow = await Client.connect(broker.mqttPort, 'hist-1', 1);
  await slow.subscribe('site/#', 1);
  const shared = await Client.connect(broker.mqttPort, 'etl-1');
  await shared.subscribe('$share/etl/site/#', 0);
  const publisher = await Client.connect(broker.mqttPort, 'plc-17');
  clients = [slow, shared, publisher];
  let n = 0;
  timer = setInterval(() => {
    n += 1;
    publisher.publish('site/a/line3/temp', JSON.stringify({ t: 20 + n / 10 }), { qos: 1, retain: true });
    publisher.publish('locked/config', '1', { qos: 1 });
  }, 100);
});
test.afterAll(async () => {
  clearInterval(timer);
  clients.forEach((client) => client.close());
  await broker.stop();
});

/** The keys of a schema; `*` is a name of one's choice. */
function keysOf(schema: unknown, table = ''): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const properties = 'properties' in schema ? Object.entries(schema.properties ?? {}) : [];
  const named = 'additionalProperties' in schema ? schema.additionalProperties : null;
  const below = [
    ...properties,
    ...(typeof named === 'object' && named !== null ? [['*', named] as const] : []),
  ];
  if (below.length === 0) return [table];
  return below.flatMap(([name, node]) => keysOf(node, table === '' ? name : `${table}.${name}`));
}

const schemaOf = (page: Page): Promise<unknown> =>
  page.evaluate(async () => JSON.parse(await (await fetch('./api/v1/config/schema')).text()) as unknown);

/** Signs in, with pages in Chinese. */
async function open(page: Page): Promise<void> {
  await page.addInitScript(() => localStorage.setItem('thrum-language', 'zh'));
  await page.goto(broker.url);
  await expect(page.locator('html')).toHaveAttribute('lang', 'zh-CN');
  await page.getByLabel('用户名').fill(NAME);
  await page.getByLabel('密码').fill(PASSWORD);
  await page.getByRole('button', { name: '登录' }).click();
  await expect(page.getByRole('button', { name: `${NAME} 的会话`, exact: true })).toBeVisible();
}

async function show(page: Page, place: string): Promise<void> {
  await page.evaluate((hash) => {
    location.hash = hash;
  }, `#/${place}`);
  await expect(page.locator('main h1').first(), place).toBeAttached();
  await expect(page.locator('main .sk'), place).toHaveCount(0);
}

/** What is left in English at a place, with what its details and dialogs say. */
async function leftAt(page: Page, place: string): Promise<string[]> {
  await show(page, place);
  const title = page.locator('main h1').first();
  await expect(title, place).not.toContainText('正在测量', { timeout: 20_000 });
  // What is asked for when a page is open comes a moment later.
  await page.waitForTimeout(600);
  for (const details of await page.locator('main details:not([open]) > summary').all()) await details.click();
  const found = new Set(await english(page));
  const asking = page.locator('main button:visible:enabled', { hasText: '…' });
  for (let at = 0; at < (await asking.count()); at += 1) {
    await asking.nth(at).click();
    const dialog = page.getByRole('dialog');
    if (!(await dialog.isVisible())) continue;
    for (const text of await english(page)) found.add(text);
    await page.keyboard.press('Escape');
    await expect(dialog).toHaveCount(0);
  }
  return [...found].map((text) => `${place}: ${text}`);
}

test('no page has an English sentence', async ({ page }) => {
  test.setTimeout(240_000);
  await page.addInitScript(() => localStorage.setItem('thrum-language', 'zh'));
  await page.goto(broker.url);
  await expect(page.getByRole('button', { name: '登录' })).toBeVisible();
  expect(await english(page)).toEqual([]);
  await open(page);
  const groups = new Set(keysOf(await schemaOf(page)).map((key) => key.split('.')[0] ?? ''));
  const left: string[] = [];
  for (const place of [...PLACES, ...[...groups].map((group) => `admin/settings?group=${group}`)])
    left.push(...(await leftAt(page, place)));
  expect(left).toEqual([]);
});

test('a benchmark has no English sentence, from its plan to its comparison', async ({ page }) => {
  test.setTimeout(180_000);
  await open(page);
  const left: string[] = [];
  for (const name of ['first', 'second']) {
    await show(page, `bench/new?way=toml&toml=${encodeURIComponent(RUN)}&name=${name}`);
    await page.getByRole('button', { name: '开始测试' }).click();
    await expect(page).toHaveURL(/#\/bench\/[^/?]*$/);
    await expect(page.getByRole('progressbar').first()).toBeVisible({ timeout: 20_000 });
    left.push(...(await english(page)));
    await expect(page.getByRole('link', { name: 'report.md' })).toBeVisible({ timeout: 60_000 });
    left.push(...(await english(page)));
  }
  left.push(...(await leftAt(page, 'bench')));
  for (const box of await page.locator('main').getByRole('checkbox').all()) await box.check();
  await page.getByRole('link', { name: /^对比 2/ }).click();
  await expect(page.locator('main .sk')).toHaveCount(0);
  await page.waitForTimeout(1000);
  left.push(...(await english(page)));
  expect(left).toEqual([]);
});

test('every key of the configuration has a text in Chinese', async ({ page }) => {
  await open(page);
  const keys = keysOf(await schemaOf(page));
  expect(keys.filter((key) => KEYS[key] === undefined)).toEqual([]);
  expect(Object.keys(KEYS).filter((key) => !keys.includes(key))).toEqual([]);
});
