import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parse } from 'yaml'
import { Notes } from '../../packages/import/common/notes.ts'
import { outcomesFor } from '../../packages/import/common/outcomes.ts'
import { translatedFile } from '../../packages/import/common/translated-file.ts'
import { withSlash } from '../../packages/import/common/written-config.ts'

const config = {
  external_url: 'https://orders.example.com',
  upstreams: {
    app: {
      url: 'http://127.0.0.1:3000',
      rules: [
        { path: '/open/*', access: 'public' },
        { path: '/*', require: [{ claim: 'groups', any_of: ['staff'] }] },
      ],
    },
  },
}

test('A request that only this file admits keeps a test that fails, and is an open decision', () => {
  const from = new Notes()

  const { yaml, notes } = translatedFile(config, [{ method: 'GET', path: '/open/x', isAdmitted: false }], 'Other', from)

  const { upstreams } = parse(yaml) as { upstreams: { app: { tests: unknown } } }
  assert.deepEqual(upstreams.app.tests, [{ get: '/open/x', expect: 'sign_in' }])
  assert.deepEqual(
    notes.map(({ level }) => level),
    ['decide'],
  )
})

test('A request that only the other program admits is a comment, and a note counts it', () => {
  const from = new Notes()
  const outcomes = [
    { method: 'GET', path: '/', isAdmitted: false },
    { method: 'GET', path: '/', as: { sub: 'ada', groups: 'sales' }, isAdmitted: true },
    // The gateway serves this path itself.
    { method: 'GET', path: '/.gatehouse/session', isAdmitted: true },
  ]

  const { yaml, notes } = translatedFile(config, outcomes, 'Other', from)

  assert.match(
    yaml,
    /tests:\n +- \{ get: \/, expect: sign_in \}\n +# With Other, these requests pass:\n +# - \{ as: \{ sub: ada, groups: sales \}, get: \/, expect: pass \}\n/,
  )
  assert.match(notes[0]?.text ?? '', /^Other admits 1 of the 2 requests/)
})

test('A redirect of a folder to its slash has no test that would fail', () => {
  const from = new Notes()
  const upstreams = { app: { url: 'http://127.0.0.1:3000', path: '/a/', rules: [withSlash('/a/'), { path: '/*' }] } }

  const { yaml, notes } = translatedFile(
    { ...config, upstreams },
    [{ method: 'GET', path: '/a', isAdmitted: false }],
    'Other',
    from,
  )

  assert.doesNotMatch(yaml, /tests:/)
  assert.deepEqual(notes, [])
})

test('After a denial of all people, no test says that a request passes', () => {
  const from = new Notes()
  from.deny('option', 'unknown')

  const { yaml } = translatedFile(config, [{ method: 'GET', path: '/open/x', isAdmitted: true }], 'Other', from)

  assert.doesNotMatch(yaml, /expect: pass/)
})

test('The note about tests that were not run says the error', () => {
  const from = new Notes()
  const listening = { ...config, listen: '127.0.0.1:3000' }
  const { notes } = translatedFile(listening, [{ method: 'GET', path: '/', isAdmitted: false }], 'Other', from)
  assert.match(notes[0]?.text ?? '', /^they were not run, because this file has an error: upstreams\.app\.url: /)
})

test('Other methods and clients have tests where their decision is another', () => {
  const outcomes = outcomesFor(
    {
      paths: ['/', '/x'],
      methods: ['GET', 'POST', 'PUT'],
      people: [{ sub: 'ada' }, { sub: 'bob' }],
      networks: ['10.0.0.0/24'],
    },
    ({ method, path, from, as }) =>
      from !== undefined || (path === '/x' && method === 'POST' ? as?.['sub'] === 'bob' : as !== undefined),
  )

  assert.deepEqual(
    outcomes.map(({ method, path, from, as, isAdmitted }) =>
      [method, path, from ?? '', as?.['sub'] ?? '', isAdmitted].join(' '),
    ),
    [
      'GET /   false',
      'GET /  ada true',
      'GET / 10.0.0.9  true',
      'GET /x   false',
      'GET /x  ada true',
      'GET /x 10.0.0.9  true',
      'POST /x   false',
      'POST /x  bob true',
      'POST /x  ada false',
    ],
  )
})
