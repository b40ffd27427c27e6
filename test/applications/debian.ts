// Applications that Debian has and PHP serves. Each starts with its own files and database.
import { appendFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Application, copyWithLinked, dataFolder, run, type Scope, startMariaDb, startPhp } from './programs.ts'

const php = { 'php-cli': '/usr/bin/php' }
const mariaDb = { 'mariadb-server': '/usr/sbin/mariadbd' }

/** The packages that each needs, with a file of each package. */
export const packages = {
  dokuwiki: { dokuwiki: '/usr/share/dokuwiki/doku.php', ...php },
  mediawiki: { mediawiki: '/usr/share/mediawiki/index.php', ...php, 'php-sqlite3': '/usr/share/doc/php-sqlite3' },
  phpmyadmin: { phpmyadmin: '/usr/share/phpmyadmin/index.php', ...php, ...mariaDb },
  wordpress: {
    wordpress: '/usr/share/wordpress/wp-load.php',
    ...php,
    'php-mysql': '/usr/share/doc/php-mysql',
    ...mariaDb,
  },
}

/** The address that the browser asks for: that of the gateway is known only when it runs. */
export const requestedAddress = `'http://' . ($_SERVER['HTTP_HOST'] ?? 'localhost')`

/**
 * Starts a DokuWiki whose page `start` is there.
 * @param settings PHP for `local.php`
 * @param prepare writes further files
 */
export async function startDokuWiki(
  t: Scope,
  settings: string,
  prepare: (folders: { readonly program: string; readonly conf: string }) => void,
): Promise<Application> {
  const folder = dataFolder(t)
  const [program, conf, data] = [join(folder, 'dokuwiki'), join(folder, 'conf'), join(folder, 'data')]
  copyWithLinked('/usr/share/dokuwiki', program)
  copyWithLinked('/etc/dokuwiki', conf)
  copyWithLinked('/var/lib/dokuwiki/data', data)
  writeFileSync(join(program, 'inc', 'preload.php'), `<?php define('DOKU_CONF', '${conf}/');\n`)
  appendFileSync(join(conf, 'local.php'), `\n${settings}\n$conf['savedir'] = '${data}';\n`)
  writeFileSync(join(data, 'pages', 'start.txt'), '====== Intranet ======\n\nThe wiki of Example Ltd.\n')
  prepare({ program, conf })
  return startPhp(t, program, '/doku.php')
}

/**
 * Starts a MediaWiki.
 * @param settings PHP for `LocalSettings.php`
 * @param accounts passwords by name
 */
export async function startMediaWiki(
  t: Scope,
  settings: string,
  accounts: Readonly<Record<string, string>> = {},
): Promise<Application> {
  const folder = dataFolder(t)
  const [program, data] = [join(folder, 'mediawiki'), join(folder, 'data')]
  // A link that leads nowhere before MediaWiki is set up.
  const filter = (path: string) => !path.endsWith('/LocalSettings.php')
  cpSync('/usr/share/mediawiki', program, { recursive: true, dereference: true, filter })
  mkdirSync(data)
  const maintain = (script: string, ...args: readonly string[]) =>
    run(['php', join(program, 'maintenance', script), ...args])
  const options = ['--dbtype', 'sqlite', '--dbpath', data, '--scriptpath', '', '--server', 'http://localhost']
  maintain('install.php', ...options, '--pass', 'an unused password', 'Intranet', 'Root')
  appendFileSync(join(program, 'LocalSettings.php'), `\n${settings}`)
  for (const [name, password] of Object.entries(accounts)) maintain('createAndPromote.php', name, password)
  return startPhp(t, program, '/index.php')
}

interface PhpMyAdmin {
  /** SQL that creates the accounts of the database server. */
  readonly accounts: string
  /** `config.inc.php`, without the place of the database server. */
  readonly config: string
  /** `config.footer.inc.php`. */
  readonly footer?: string
}

/** Starts a phpMyAdmin, and a MariaDB with the database `shop`. */
export async function startPhpMyAdmin(t: Scope, { accounts, config, footer }: PhpMyAdmin): Promise<Application> {
  const socket = await startMariaDb(t, 'shop')
  run(['mariadb', '--no-defaults', `--socket=${socket}`, '-uroot'], { input: accounts })
  const folder = dataFolder(t)
  const [program, temporary] = [join(folder, 'phpmyadmin'), join(folder, 'tmp')]
  copyWithLinked('/usr/share/phpmyadmin', program)
  mkdirSync(temporary)
  const vendor = join(program, 'libraries', 'vendor_config.php')
  const text = readFileSync(vendor, 'utf8').replace('/etc/phpmyadmin/config.inc.php', join(program, 'config.inc.php'))
  writeFileSync(vendor, text.replace('/var/lib/phpmyadmin/tmp/', `${temporary}/`))
  writeFileSync(join(program, 'config.inc.php'), `${config}\n$cfg['Servers'][1]['socket'] = '${socket}';\n`)
  if (footer !== undefined) writeFileSync(join(program, 'config.footer.inc.php'), footer)
  return startPhp(t, program, '/favicon.ico')
}

interface WordPress {
  /** PHP for `wp-config.php`, without an opening tag. */
  readonly settings: string
  /** PHP that runs once, after the installation. */
  readonly afterwards?: string
  /** The PHP of each plugin, by the name of its file. */
  readonly plugins?: Readonly<Record<string, string>>
}

/** Starts a WordPress. */
export async function startWordPress(
  t: Scope,
  { settings, afterwards = '', plugins = {} }: WordPress,
): Promise<Application> {
  const socket = await startMariaDb(t, 'wordpress')
  const program = join(dataFolder(t), 'wordpress')
  copyWithLinked('/usr/share/wordpress', program)
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
  run(['php'], {
    input: `<?php define('WP_INSTALLING', true); require '${program}/wp-load.php'; require ABSPATH . 'wp-admin/includes/upgrade.php';
    wp_install('Intranet', 'root', 'root@example.com', true, '', 'a password that nobody uses'); ${afterwards}`,
  })
  const folder = join(program, 'wp-content', 'mu-plugins')
  mkdirSync(folder, { recursive: true })
  for (const [name, text] of Object.entries(plugins)) writeFileSync(join(folder, name), text)
  return startPhp(t, program, '/readme.html')
}
