import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { freePort } from '../support/free-port.ts'
import { until } from '../support/until.ts'
import {
  type Application,
  atSignIn,
  blockOf,
  dataFolder,
  endAtProvider,
  journeysWith,
  signIn,
  startGatewayFor,
  startProcess,
  startProgram,
  tabOf,
} from './application.ts'
import { installDebian } from './installed.ts'

function run(program: string, args: readonly string[], input = ''): void {
  const { status, stderr, stdout } = spawnSync(program, args, { encoding: 'utf8', input })
  assert.equal(status, 0, `${program}: ${stderr}${stdout}`)
}

/** Starts a MariaDB with an empty database. @returns its socket */
async function startMariaDb(t: TestContext): Promise<string> {
  const folder = dataFolder(t)
  const [data, socket] = [join(folder, 'data'), join(folder, 'socket')]
  const user = process.getuid?.() === 0 ? ['--user=root'] : []
  run('mariadb-install-db', ['--no-defaults', ...user, `--datadir=${data}`, '--auth-root-authentication-method=normal'])
  startProcess(t, [
    'mariadbd',
    '--no-defaults',
    ...user,
    `--datadir=${data}`,
    `--socket=${socket}`,
    '--skip-networking',
  ])
  const query = (sql: string) => spawnSync('mariadb', ['--no-defaults', `--socket=${socket}`, '-uroot', '-e', sql])
  await until('MariaDB responds', () => query('SELECT 1').status === 0)
  assert.equal(query('CREATE DATABASE wordpress').status, 0)
  return socket
}

/** @param plugin changes the plugin that signs people in */
async function startWordPress(t: TestContext, plugin = (text: string) => text): Promise<Application> {
  const socket = await startMariaDb(t)
  const program = join(dataFolder(t), 'wordpress')
  cpSync('/usr/share/wordpress', program, { recursive: true, dereference: true })
  // The address of the test is known only when the gateway runs.
  const settings = blockOf('wordpress', 'php', 1).replaceAll(
    "'https://wiki.example.com'",
    "'http://' . ($_SERVER['HTTP_HOST'] ?? 'localhost')",
  )
  writeFileSync(
    join(program, 'wp-config.php'),
    `<?php
define('DB_NAME', 'wordpress');
define('DB_USER', 'root');
define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:${socket}');
define('DISABLE_WP_CRON', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
define('WP_HTTP_BLOCK_EXTERNAL', true);
foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $name) {
    define("{$name}_KEY", "key of $name");
    define("{$name}_SALT", "salt of $name");
}
$table_prefix = 'wp_';
${settings}
if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
`,
  )
  run(
    'php',
    [],
    `<?php define('WP_INSTALLING', true); require '${program}/wp-load.php'; require ABSPATH . 'wp-admin/includes/upgrade.php';
    wp_install('Intranet', 'root', 'root@example.com', true, '', 'a password that nobody uses');`,
  )
  const plugins = join(program, 'wp-content', 'mu-plugins')
  mkdirSync(plugins, { recursive: true })
  writeFileSync(join(plugins, 'gatehouse.php'), plugin(blockOf('wordpress', 'php')))
  const address = `127.0.0.1:${await freePort()}`
  return startProgram(t, ['php', '-S', address, '-t', program], new URL(`http://${address}/readme.html`))
}

const greeting = (page: Page) => page.locator('#wp-admin-bar-my-account').innerText()

const install = () =>
  installDebian({
    wordpress: '/usr/share/wordpress/wp-load.php',
    'php-cli': '/usr/bin/php',
    'php-mysql': '/usr/share/doc/php-mysql',
    'mariadb-server': '/usr/sbin/mariadbd',
  })

journeysWith('WordPress', install, {
  'a person writes a post, and the next one in the same browser is somebody else': async (t, chromium) => {
    const world = await startGatewayFor(t, await startWordPress(t), 'wordpress')
    const { page, person } = await tabOf(t, chromium)
    await signIn(page, `${world.url}/wp-admin/`)
    assert.match(await greeting(page), /Howdy, Jane Doe/)
    await page.getByLabel('Title').first().fill('The printer on the second floor')
    await page.locator('#save-post').click()
    await page.getByRole('link', { name: 'The printer on the second floor' }).first().waitFor()

    await endAtProvider(world)
    await page.goto(`${world.url}/wp-admin/`)
    await atSignIn(page)
    await signIn(page, `${world.url}/wp-admin/`, 'Zoë Müller')

    assert.match(await greeting(page), /Howdy, Zoë Müller/)
    assert.deepEqual(
      (await person.context.cookies()).filter(({ name }) => /^(?:wordpress|wp)/.test(name)),
      [],
    )
  },

  'a plugin that trusts its own cookie does not greet the previous person': async (t, chromium) => {
    const trusting = (text: string) =>
      text.replace('wp_get_current_user()->user_login === $name', 'is_user_logged_in()')
    const world = await startGatewayFor(t, await startWordPress(t, trusting), 'wordpress')
    const { page } = await tabOf(t, chromium)
    await signIn(page, `${world.url}/wp-admin/`)
    assert.match(await greeting(page), /Howdy, Jane Doe/)

    await endAtProvider(world)
    await signIn(page, `${world.url}/wp-admin/`, 'Zoë Müller')

    assert.match(await greeting(page), /Howdy, Zoë Müller/)
  },

  'the link of the application signs out of everything': async (t, chromium) => {
    const world = await startGatewayFor(t, await startWordPress(t), 'wordpress')
    const { page } = await tabOf(t, chromium)
    await signIn(page, `${world.url}/wp-admin/`)

    await page.locator('#wp-admin-bar-my-account').hover()
    await page.locator('#wp-admin-bar-logout a').click()
    await page.waitForURL(`${world.url}/.gatehouse/signed-out`)

    await page.goto(`${world.url}/wp-admin/`)
    await atSignIn(page)
  },
})
