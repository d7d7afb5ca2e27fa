import { expect, test } from '@playwright/test';
import { Broker } from './broker';
import { accessible, go, signIn, watched } from './page';

const TOML = `version = 5
stages = ["warmup 1s", "hold 5s", "drain 2s"]

[groups.devices]
clients = 20
publish = { topic = "test/{run}/{i}", rate = "2/s", qos = 1, payload = "32B" }

[groups.backend]
clients = 1
subscribe = { filter = "test/{run}/#", qos = 1 }

[thresholds]
"delivered" = "== 100%"
"broker.rss" = "< 4GB"
`;
const own = (text: string, more = '') => `bench/new?way=toml&toml=${encodeURIComponent(text)}${more}`;
let broker: Broker;

test.describe.configure({ mode: 'serial' });
test.beforeAll(async () => {
  broker = await Broker.start();
});
test.afterAll(() => broker.stop());

test('without a run the page says what it is for, and offers scenarios by group', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker, '#/bench');
  await expect(page.getByRole('heading', { level: 1 })).toContainText('Nothing was measured yet.');
  await accessible(page);
  await page.getByRole('link', { name: 'New run' }).click();
  await page
    .getByRole('radio', { name: /p2p-1K/ })
    .first()
    .check();
  await expect(page).toHaveURL(/scenario=p2p-1K/);
  await expect(page.getByRole('heading', { level: 1 })).toContainText('Ready:');
  await expect(page.getByRole('heading', { level: 1 })).toContainText('1\u202f000 msg/s');
  await expect(page.getByRole('region', { name: 'What a run may take' })).toContainText('process of its own');
  await accessible(page);
  expect(errors).toEqual([]);
});

test('a form and its text say the same, and what is wrong is named before the start', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker, '#/bench');
  await go(page, broker, own(TOML));
  await page.getByRole('button', { name: 'Form' }).click();
  const group = page.getByRole('group', { name: 'Group devices' });
  await expect(group.getByLabel('Topic')).toHaveValue('test/{run}/{i}');
  await group.getByLabel('Number').fill('30');
  await accessible(page);
  await page.getByRole('button', { name: 'TOML' }).click();
  const text = page.getByLabel('The scenario as TOML');
  await expect(text).toHaveValue(/\[groups\.devices\]\nclients = 30\n/);
  await expect(page.getByRole('heading', { level: 1 })).toContainText('Ready: 31 clients');
  await text.fill(`${TOML}\n[groups.more]\nclients = 1\nqso = 1\n`);
  await expect(page.getByRole('heading', { level: 1 })).toContainText('cannot start');
  await expect(page.getByRole('heading', { level: 1 })).toContainText('qso');
  await expect(page.getByRole('button', { name: 'Start the run' })).toBeDisabled();
  await page.getByRole('button', { name: 'Form' }).click();
  await expect(page.getByText('The form has no field for groups.more.qso.')).toBeVisible();
  expect(errors).toEqual([]);
});

test('a run is shown live, and ends with a verdict and files', async ({ page }) => {
  test.setTimeout(90_000);
  const errors = watched(page);
  await signIn(page, broker, '#/bench');
  await go(page, broker, own(TOML, '&name=first'));
  await page.getByRole('button', { name: 'Start the run' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toContainText(/Preparing|Running/);
  await expect(page.getByRole('progressbar', { name: 'Stages' })).toHaveAttribute('aria-valuetext', /hold/, {
    timeout: 20_000,
  });
  await expect(page.getByRole('region', { name: 'Latency heat map' }).locator('canvas')).toBeVisible();
  await expect(page.getByRole('region', { name: 'Limits' })).toContainText('Memory of the broker');
  await expect(page.getByRole('navigation', { name: 'Breadcrumb' })).toHaveText(/Benchmarks\s*\/\s*first$/);
  await accessible(page);

  await expect(page.getByRole('link', { name: 'Report', exact: true })).toBeVisible({ timeout: 40_000 });
  await expect(page.getByRole('heading', { level: 1 })).toContainText(/Passed|Not valid|Failed/);
  await accessible(page);
  const heat = page.getByRole('img', { name: /Latency heat map\. Most messages took/ });
  await heat.focus();
  await page.keyboard.press('ArrowLeft');
  await expect(page.getByRole('region', { name: 'Latency heat map' })).toContainText(
    /most .+ to .+, highest/,
  );
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'report.md' }).click(),
  ]);
  expect(file.suggestedFilename()).toMatch(/report\.md$/);
  await page.getByRole('button', { name: 'Pin as baseline' }).click();
  await expect(page.getByRole('button', { name: 'No longer the baseline' })).toBeVisible();
  expect(errors).toEqual([]);
});

test('a run is stopped, compared with another one, and deleted', async ({ page }) => {
  test.setTimeout(120_000);
  const errors = watched(page);
  await signIn(page, broker, '#/bench');
  await go(page, broker, own(TOML.replace('hold 5s', 'hold 5m'), '&name=second'));
  await page.getByRole('button', { name: 'Start the run' }).click();
  await expect(page.getByRole('progressbar', { name: 'Stages' })).toHaveAttribute('aria-valuetext', /hold/, {
    timeout: 20_000,
  });

  // It is changed while it goes on; each change is a mark.
  await page.getByRole('button', { name: '+10 %' }).click();
  const happened = page.getByRole('region', { name: 'What happened' });
  await expect(happened).toContainText(/rate 110.% of the planned one/);
  await page.getByRole('button', { name: 'Pause' }).click();
  await expect(happened).toContainText('paused');
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByRole('button', { name: '+1 min' }).click();
  await expect(happened).toContainText('hold extended by 1:00');
  await page.getByRole('button', { name: 'Note…' }).click();
  const note = page.getByRole('dialog', { name: 'Note what you did or saw' });
  await note.getByLabel('Note').fill('the fan is off');
  await accessible(page);
  await note.getByRole('button', { name: 'Keep the note' }).click();
  await expect(happened).toContainText('the fan is off');

  // Meanwhile no other run begins.
  const other = await page.context().newPage();
  await other.goto(`${broker.url}#/${own(TOML)}`);
  const start = other.getByRole('button', { name: 'Start the run' });
  await expect(other.getByRole('heading', { level: 1 })).toContainText(/Ready|cannot start/);
  if (await start.isEnabled()) {
    await start.click();
    await expect(other.locator('.toast.bad')).toBeVisible();
  }
  await other.close();

  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toContainText('Stopped', { timeout: 30_000 });

  await go(page, broker, 'bench');
  // A phone, too, shows what a run has measured.
  const size = page.viewportSize();
  await page.setViewportSize({ width: 400, height: 860 });
  await expect(page.getByRole('columnheader', { name: 'p99' })).toBeVisible();
  if (size) await page.setViewportSize(size);
  await page.getByRole('checkbox', { name: /Compare first/ }).check();
  await page.getByRole('checkbox', { name: /Compare second/ }).check();
  await accessible(page);
  await page.getByRole('link', { name: 'Compare 2 runs' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toContainText(
    /better|worse|No difference|cannot be compared|No winner/,
    { timeout: 20_000 },
  );
  await accessible(page);

  await go(page, broker, 'bench');
  await page.getByRole('link', { name: 'second' }).click();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete the run' }).click();
  await expect(page).toHaveURL(/#\/bench$/);
  await expect(page.getByRole('link', { name: 'second' })).toHaveCount(0);
  expect(errors).toEqual([]);
});

test('a run that is not there is told', async ({ page }) => {
  await signIn(page, broker, '#/bench/nothing-here');
  await expect(page.getByText('There is no such run.')).toBeVisible();
});

test('Home simulates 100 devices, says so, and stops them', async ({ page }) => {
  test.setTimeout(90_000);
  const errors = watched(page);
  const fresh = await Broker.start();
  try {
    await signIn(page, fresh);
    await page.getByRole('button', { name: 'Simulate 100 devices' }).click();
    await expect(page.getByText('A benchmark goes on:')).toBeVisible();
    await expect(page.getByRole('region', { name: 'Five figures' })).toBeVisible({ timeout: 20_000 });
    await accessible(page);
    await page.getByRole('link', { name: 'Show the run' }).click();
    await expect(page.getByRole('heading', { level: 1 })).toContainText(/Preparing|Running/);
    await page.goBack();
    await page.getByRole('button', { name: 'Stop it' }).click();
    await expect(page.getByText('A benchmark goes on:')).toBeHidden({ timeout: 30_000 });
    expect(errors).toEqual([]);
  } finally {
    await fresh.stop();
  }
});
