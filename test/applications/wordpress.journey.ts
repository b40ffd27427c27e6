import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import { packages, requestedAddress, startWordPress } from './debian.ts'
import { installDebian } from './installed.ts'
import { journeysOf, signedIn, type Subject } from './journeys.ts'
import { blockOf } from './pages.ts'
import type { Application } from './programs.ts'

/** Signs in with cookies of WordPress, and trusts them afterwards, like many plugins. */
const trustingPlugin = `<?php
add_action('init', function () {
    if (is_user_logged_in()) return;
    $name = $_SERVER['HTTP_X_REMOTE_USER'];
    $person = ['user_login' => $name, 'user_pass' => 'x', 'display_name' => $_SERVER['HTTP_X_NAME'], 'role' => 'author'];
    wp_set_auth_cookie(username_exists($name) ?: wp_insert_user($person));
    wp_redirect($_SERVER['REQUEST_URI']);
    exit;
}, 1);
`

// News need a connection to wordpress.org.
const withoutNews = `<?php
add_action('wp_dashboard_setup', fn() => remove_meta_box('dashboard_primary', 'dashboard', 'side'));
`

/** With the settings and a plugin of the page. */
function start(t: TestContext, plugin = blockOf('wordpress', 'php')): Promise<Application> {
  return startWordPress(t, {
    settings: blockOf('wordpress', 'php', 'WP_HOME').replaceAll("'https://wiki.example.com'", requestedAddress),
    plugins: { 'gatehouse.php': plugin, 'without-news.php': withoutNews },
  })
}

const subject: Subject = {
  name: 'WordPress',
  page: 'wordpress',
  install: () => installDebian(packages.wordpress, ['wordpress', '6.1']),
  start,
  home: '/wp-admin/',
  showsPerson: (page, person) => page.locator('#wp-admin-bar-my-account').getByText(`Howdy, ${person}`).waitFor(),
  use: async (page) => {
    await page.getByLabel('Title').first().fill('The printer on the second floor')
    await page.locator('#save-post').click()
    await page.getByRole('link', { name: 'The printer on the second floor' }).first().waitFor()
  },
  sessionCookies: /^(?:wordpress_|wp-postpass_|comment_author_)/,
  form: {
    fill: async (page, site, text) => {
      await page.goto(`${site.url}/wp-admin/profile.php`)
      await page.getByLabel('Biographical Info').fill(text)
    },
    send: (page) => page.getByRole('button', { name: 'Update Profile' }).click(),
    isSaved: async (page, site, text) => {
      await page.getByText('Profile updated.').waitFor()
      await page.goto(`${site.url}/wp-admin/profile.php`)
      assert.equal(await page.getByLabel('Biographical Info').inputValue(), text)
    },
  },
  signOut: async (page: Page) => {
    await page.locator('#wp-admin-bar-my-account').hover()
    await page.locator('#wp-admin-bar-logout a').click()
  },
  hasNotice: true,
}

journeysOf(subject, {
  'a plugin that trusts a cookie of WordPress does not greet the previous person': async (t) => {
    const trusting = { ...subject, start: (t: TestContext) => start(t, trustingPlugin) }
    const { site, page } = await signedIn(t, trusting)

    await site.endAtProvider('Jane Doe')
    await site.signIn(page, subject.home, 'Zoë Müller')

    await subject.showsPerson(page, 'Zoë Müller')
  },

  'a choice that a script saves in a cookie is remembered': async (t) => {
    const { site, page } = await signedIn(t, subject)
    await page.setViewportSize({ width: 1200, height: 800 })
    await page.getByRole('button', { name: 'Collapse Main menu' }).click()

    await page.goto(`${site.url}/wp-admin/profile.php`)

    assert.match((await page.locator('body').getAttribute('class')) ?? '', /\bfolded\b/)
  },

  'the REST API asks for the nonce of WordPress': async (t) => {
    const { page } = await signedIn(t, subject)
    const status = (headers: string) =>
      page.evaluate(
        `fetch('/?rest_route=/wp/v2/users/me', { headers: ${headers} }).then((response) => response.status)`,
      )

    assert.equal(await status('{}'), 401)
    assert.equal(await status(`{ 'x-wp-nonce': wpApiSettings.nonce }`), 200)
  },
})
