import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { parse } from 'yaml'
import schema from '../../schemas/gateway.schema.json' with { type: 'json' }
import { loadConfig } from '../../src/config/load.ts'
import { presetAsYaml, presets } from '../../src/config/presets.ts'
import { matchesAny } from '../../src/core/patterns.ts'
import { blocksOf, pages } from '../docs/markdown.ts'
import { kindOf, wholeFile } from '../docs/snippets.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'
import { environment } from './environment.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-presets-'))
after(() => rmSync(folder, { recursive: true }))

/** The upstream of a file whose one upstream has these settings. */
function upstreamWith(settings: string) {
  const file = join(folder, 'gateway.yaml')
  writeFileSync(file, wholeFile('upstream', settings))
  const loaded = loadConfig(file, environment)
  if (!loaded.ok) assert.fail(formatDiagnostics(loaded.diagnostics))
  return loaded.config.upstreams[0] ?? assert.fail()
}

test('The schema knows the same presets as the gateway', () => {
  assert.deepEqual(schema.definitions.upstream.properties.preset.enum, Object.keys(presets))
})

for (const [name, preset] of Object.entries(presets))
  test(`The preset ${name} is the settings that explain prints for it`, () => {
    const long = upstreamWith(presetAsYaml(name, preset))

    assert.deepEqual(upstreamWith(`preset: ${name}`), long)
  })

for (const { path, text } of pages.filter(({ path }) => /^docs\/applications\/(?!README)/.test(path)))
  test(`${path} has the settings of its preset, and the version that they were tried with`, () => {
    const name = path.replace(/^.*\/(.*)\.md$/, '$1')
    const [block] = blocksOf({ path, text }).filter((each) => each.language === 'yaml' && kindOf(each) === 'upstream')
    const { rules: _, ...settings } = parse(block?.text ?? '') as Readonly<Record<string, unknown>>

    assert.deepEqual(settings, presets[name]?.settings)
    assert.ok(text.includes(`Tried with ${presets[name]?.triedWith}`))
  })

const journeys = readdirSync(new URL('../applications/', import.meta.url))

for (const [name, { triedWith }] of Object.entries(presets))
  test(`The preset ${name} was tried with the version that it names, or it says that it is untried`, () => {
    const row = pages
      .find(({ path }) => path === 'docs/applications/README.md')
      ?.text.split('\n')
      .find((line) => line.includes(`| \`${name}\``))
    const file = `${name}.journey.ts`
    assert.ok(row?.includes(`| ${triedWith ?? '**untried**'} `), row)
    assert.equal(journeys.includes(file), triedWith !== undefined)
    if (triedWith === undefined) return

    const journey = readFileSync(new URL(`../applications/${file}`, import.meta.url), 'utf8')
    const versions = triedWith.replace(/ of Debian \d+/, '').match(/\d[\d.-]*/g) ?? []
    assert.notEqual(versions.length, 0)
    for (const version of versions)
      assert.match(
        journey,
        new RegExp(`(?:==|@|'(?:0\\.)*)${version.replaceAll('-', '').replaceAll('.', '\\.')}(?!\\d)`),
      )
  })

test('An untried preset says so when it is used', () => {
  const warningsOf = (name: string) => {
    const file = join(folder, 'gateway.yaml')
    writeFileSync(file, wholeFile('upstream', `preset: ${name}`))
    const loaded = loadConfig(file, environment)
    return loaded.ok ? formatDiagnostics(loaded.warnings) : assert.fail(formatDiagnostics(loaded.diagnostics))
  }

  assert.match(warningsOf('nexus'), /warning {2}upstreams\.\w+\.preset: is untried/)
  assert.doesNotMatch(warningsOf('tomcat'), /untried/)
})

/** Cookies that scripts of an application read or write: they must stay in the browser. */
const cookiesOfScripts: Readonly<Record<string, readonly string[]>> = {
  // Scripts of Airflow use localStorage. Since 3.1.1 no script reads `_token`, which is HttpOnly.
  airflow: [],
  // Cockpit, pkg/static/login.js and pkg/shell.
  cockpit: ['CockpitLang'],
  // Django, docs/howto/csrf: scripts copy this cookie to X-CSRFToken.
  django: ['csrftoken', 'django_language'],
  // DokuWiki, lib/scripts/cookie.js.
  dokuwiki: ['DOKU_PREFS'],
  // Grafana, public/app/core/services/context_srv.ts.
  grafana: ['grafana_session_expiry'],
  // Jenkins, war/src/main/webapp/scripts, and its plugin Timestamper.
  jenkins: ['iconSize', 'screenResolution', 'jenkins-timestamper', 'jenkins-timestamper-local'],
  // Jupyter: scripts copy this cookie to X-XSRFToken.
  jupyterhub: ['_xsrf'],
  jupyterlab: ['_xsrf'],
  // MediaWiki, resources/src: mw.cookie puts the prefix of the wiki before the names.
  mediawiki: ['wikimwuser-sessionId', 'wikihidetoc', 'wikimwclientpreferences', 'wikiVEE', 'wikichangeslist-state'],
  // Nexus: scripts copy this cookie to a header of the same name.
  nexus: ['NX-ANTI-CSRF-TOKEN'],
  'node-red': [],
  // phpMyAdmin, js/src/sql.js and js/src/functions.js.
  phpmyadmin: ['showThisQuery', 'showThisQueryObject', 'autoSavedSqlSort', 'autoSavedSql'],
  superset: [],
  tomcat: [],
  // WordPress, wp-includes/js/utils.js and wp-includes/js/autosave.js.
  wordpress: ['wp-settings-1', 'wp-settings-time-1', 'wp-saving-post'],
}

for (const name of Object.keys(presets))
  test(`The preset ${name} leaves cookies of scripts in the browser`, () => {
    const { sessionCookies } = upstreamWith(`preset: ${name}`)
    const cookies = cookiesOfScripts[name] ?? assert.fail(`Which cookies do scripts of ${name} use?`)

    assert.deepEqual(
      cookies.filter((cookie) => matchesAny(sessionCookies, cookie)),
      [],
    )
  })

test('A setting of the upstream wins over its preset; of headers and logout, each key by itself', () => {
  const { headers, logout, sessionCookies } = upstreamWith(`preset: django
headers: { X-Groups: roles, X-Email: email }
logout: { cookies: [theme] }
session_cookies: [other]`)
  const { headers: preset, logout: presetLogout } = upstreamWith('preset: django')

  assert.deepEqual(headers.map(({ name }) => name).toSorted(), ['X-Email', 'X-Groups', 'X-Remote-User'])
  assert.notDeepEqual(
    headers.find(({ name }) => name === 'X-Groups'),
    preset.find(({ name }) => name === 'X-Groups'),
  )
  assert.deepEqual(logout.paths, presetLogout.paths)
  assert.equal(logout.cookies[0]?.names.text, 'theme')
  assert.deepEqual(JSON.stringify(sessionCookies).includes('sessionid'), false)
})

test('An unknown preset is an error that lists the known ones', () => {
  const file = join(folder, 'gateway.yaml')
  writeFileSync(file, wholeFile('upstream', 'preset: wordpres'))
  const loaded = loadConfig(file, environment)

  assert.equal(loaded.ok, false)
  assert.match(formatDiagnostics(loaded.diagnostics), /preset: must be one of airflow,[^]*did you mean "wordpress"/)
})
