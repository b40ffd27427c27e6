import assert from 'node:assert/strict'
import { Agent, request } from 'node:http'
import { test } from 'node:test'
import fc from 'fast-check'
import { startLane } from '../corpus/lanes.ts'
import { fuzz } from './fuzzing.ts'

const pieces = [
  ...['/', '//', '\\', '/\\', '.', '..', '/./', '/../', '/.', '%2e', '%2f', '%5c', '%252f', '%00', '%0d%0a', '%09'],
  ...['\t', '\n', '\r', ' ', '\0', '\x01', '\x7f', '\u00a0', '\u2028', '\ufeff', '\u3000', '\u200b', '\ud800'],
  ...[
    'http:',
    'https:',
    'http://',
    'HTTPS://',
    'javascript:',
    'data:text/html,',
    'file://',
    'blob:',
    'ftp:',
    ':',
    '::',
  ],
  ...[
    'evil.example',
    'evil。example',
    'evıl.example',
    '／evil.example',
    '＼evil.example',
    '[::1]',
    '0x7f.1',
    '2130706433',
  ],
  ...['@', ':80', ':443', '?', '#', ';', '&', '=', 'user:pw@', 'app', 'x=1', '{host}', '{host}@', '@{host}', '.{host}'],
  ...['.gatehouse', '/.gatehouse/', '/.gatehouse/sign-out', '/.GATEHOUSE/callback', '%2egatehouse'],
] as const

const piece = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...pieces) },
  fc.string({ unit: 'binary', maxLength: 3 }),
)
const target = fc.array(piece, { maxLength: 8 }).map((parts) => parts.join(''))
const spelling = fc.constantFrom<(text: string) => string>(
  encodeURIComponent,
  // A link as a person types it. Characters that no URL can contain are encoded.
  (text) =>
    text.replaceAll(/[^\x21\x24\x27-\x2a\x2c-\x3b\x3d\x3f-\x7e]/gu, (character) => encodeURIComponent(character)),
)

test('A return-to target never leaves the origin, as a browser resolves it', async (t) => {
  const { world, host, cookie } = await startLane(t, {
    // All sign-ins come from one client, so the rate limit is high.
    settings: 'limits: { per_client: { sign_ins: 1000000/m } }',
  })
  const agent = new Agent({ keepAlive: true })
  t.after(() => agent.destroy())

  const { issuer } = world.provider
  const ways = ['sign-in?return_to=', `initiate-login?iss=${encodeURIComponent(issuer)}&target_link_uri=`]
  await fuzz(t, fc.tuple(target, spelling, fc.constantFrom(...ways)), async ([wanted, spell, way]) => {
    // No URL contains a lone surrogate: it arrives as U+FFFD.
    const text = Buffer.from(wanted.replaceAll('{host}', host)).toString('utf8')
    const asked = `/.gatehouse/${way}${spell(text)}`
    const location = await locationOf(`${world.url}${asked}`, cookie, agent)

    const landed = new URL(location, `${world.url}${asked}`)
    assert.equal(landed.origin, world.url)
    assert.doesNotMatch(landed.pathname, /^\/\.gatehouse(?:\/|$)/i)
    assert.match(location, /^\/(?![\\/])[\x21-\x5b\x5d-\x7e]*$/)
  })
})

/** A signed-in person is redirected to the target itself. */
function locationOf(url: string, cookie: string, agent: Agent): Promise<string> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    // The unchanged text, because a URL object would normalize it.
    const path = url.slice(url.indexOf('/', 'http://'.length))
    const sent = request({ agent, hostname, port, path, headers: { cookie, accept: 'text/html' } }, (response) => {
      response.resume()
      response.on('end', () => resolve(response.headers.location ?? `status ${response.statusCode}`))
    })
    sent.on('error', reject)
    sent.end()
  })
}
