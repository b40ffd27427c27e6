import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import manifest from '../../package.json' with { type: 'json' }
import { help, overview } from '../../src/cli/help.ts'
import { blocksOf, codeSpansOf, pages, type Page } from './markdown.ts'

const commands = new Set([...overview.matchAll(/^ {2}gatehouse ([\w-]+)/gm)].map(([, name = '']) => name))
const scripts = new Set(Object.keys(manifest.scripts))

/** The commands of a page: the lines of its shell blocks without comments, and the code spans. */
function typed(page: Page): string[] {
  const shell = blocksOf(page)
    .filter(({ language }) => language === 'sh' || language === 'console')
    .flatMap(({ language, text }) => {
      const lines = text.replaceAll(/\\\n\s*/g, ' ').split('\n')
      const given =
        language === 'sh' ? lines : lines.filter((line) => line.startsWith('$ ')).map((line) => line.slice(2))
      return given.map((line) => line.replace(/(^|\s)#.*$/, ''))
    })
  return [...shell, ...codeSpansOf(page).filter((span) => /^(gatehouse|npm|docker|kubectl) /.test(span))]
}

/** Returns the errors in a command line. */
function faults(line: string): string[] {
  const found: string[] = []
  // The container has the name of the program.
  const inside = line.replace(/^(?:docker exec \S+|kubectl exec .*? --) /, '')
  for (const [, call = ''] of inside.matchAll(/(?<![\w-])gatehouse(?: --)? ((?:[^|;&)'"]|'[^']*'|"[^"]*")*)/g)) {
    const name = call.split(' ').find((word) => /^[a-z]/.test(word)) ?? ''
    if (name === '' || call.startsWith('--') || call.startsWith('is ')) continue
    if (!commands.has(name)) found.push(`there is no command "${name}" (${line})`)
    else
      // What follows "--" belongs to another program.
      for (const [option] of call.replace(/ -- .*$/, '').matchAll(/(?<= )--[a-z-]+/g))
        if (!`${help[name]}${overview}`.includes(option)) found.push(`${name} has no ${option}`)
  }
  for (const [, script = ''] of line.matchAll(/\bnpm run (?:-s )?([\w:-]+)/g))
    if (!scripts.has(script)) found.push(`there is no script "${script}"`)
  return found
}

for (const page of pages)
  test(`The commands of ${page.path} exist`, () => {
    assert.deepEqual(typed(page).flatMap(faults), [])
  })

const sources = readdirSync(new URL('../../src', import.meta.url), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => readFileSync(new URL(`../../src/${name}`, import.meta.url), 'utf8'))
/** Texts in quotes in the sources: error codes and log messages. */
const quoted = new Set(
  sources.flatMap((source) =>
    [...source.matchAll(/'([\w.]+)'|\b(ERR_[A-Z_]+)\b/g)].map(([, word, code]) => word ?? code),
  ),
)
const settings = readFileSync(new URL('../../schemas/gateway.schema.json', import.meta.url), 'utf8')
const subjects =
  'access|config|frontchannel_logout|headers|limit|listener|log|logout_token|process|provider|request|session'
const message = new RegExp(`^(?:${subjects}|shutdown|sign_in|sign_out|store|tracing|upstream|worker)\\.[a-z_]+$`)

for (const page of pages.filter(({ path }) => path.startsWith('docs/')))
  test(`The error codes and log messages of ${page.path} exist`, () => {
    const missing = codeSpansOf(page)
      .filter((span) => /^ERR_[A-Z_]+$/.test(span) || message.test(span))
      .filter((span) => !quoted.has(span) && !settings.includes(`"${span.split('.').at(-1)}"`))

    assert.deepEqual(missing, [])
  })

/** Messages of Node.js, jose and other programs, and texts that are no messages. */
const ofOthers =
  /^(connect|getaddrinfo|self-signed|unable to|curl|gatehouse|missing required|unexpected|"exp" claim)\b|: /

test('The log lines that the page on troubleshooting quotes exist', () => {
  const said = sources.join('\n').replaceAll(/\\(['"`])/g, '$1')
  const page = pages.find(({ path }) => path === 'docs/troubleshooting.md') as Page
  const quotes = codeSpansOf(page).filter((span) => span.split(' ').length >= 4 && !ofOthers.test(span))

  // A part of the message is a value, so three words in a row must match.
  const unsaid = quotes.filter((span) => {
    const words = span.split(' ')
    return !words.some((_, at) => at + 3 <= words.length && said.includes(words.slice(at, at + 3).join(' ')))
  })

  assert.ok(quotes.length > 10, `${quotes.length} quotes`)
  assert.deepEqual(unsaid, [])
})

test('The test finds an unknown command, option and script', () => {
  assert.deepEqual(faults('gatehouse chekc --config FILE'), [
    'there is no command "chekc" (gatehouse chekc --config FILE)',
  ])
  assert.deepEqual(faults('gatehouse check --fromat json'), ['check has no --fromat'])
  assert.deepEqual(faults('npm run -s nothing -- check'), ['there is no script "nothing"'])
  assert.deepEqual(faults('npm run -s gatehouse -- chekc'), [
    'there is no command "chekc" (npm run -s gatehouse -- chekc)',
  ])
  assert.deepEqual(faults('kubectl exec x -c gatehouse -- gatehouse sessions lsit --sbu jane'), [
    'sessions has no --sbu',
  ])
  assert.deepEqual(faults('kubectl logs x | gatehouse explain --log - ID'), [])
})
