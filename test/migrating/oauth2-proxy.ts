import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { installGo } from '../applications/installed.ts'
import { dataFolder, startProgram } from '../applications/programs.ts'
import { imported } from '../support/imported.ts'
import { secrets } from '../support/world.ts'
import { comparePairs, reasonToSkip, startPeer, type Peer } from './compare.ts'
import { compareGenerated } from './generated.ts'
import { oauth2ProxyFile } from './oauth2-proxy-files.ts'
import { pairsOf } from './pairs.ts'

let program = ''
const skip = reasonToSkip(() => {
  const folder = installGo('oauth2-proxy', 'github.com/oauth2-proxy/oauth2-proxy/v7@v7.15.6')
  program = join(folder, 'oauth2-proxy')
})

/** Writes a configuration with secrets. @returns its path */
function fileWith(t: TestContext, theirs: string): string {
  const folder = dataFolder(t)
  const secret = join(folder, 'client_secret')
  const file = join(folder, 'oauth2-proxy.cfg')
  writeFileSync(secret, secrets.CLIENT_SECRET)
  writeFileSync(file, theirs.replaceAll('/run/secrets/client_secret', secret).replaceAll('…', 'x'.repeat(32)))
  return file
}

const oauth2Proxy: Peer = {
  name: 'oauth2-proxy',
  callback: '/oauth2/callback',
  forbidden: 403,
  skip,
  // GET= does not permit HEAD there, and a path with a semicolon is not public.
  differs: (method, path) => method === 'HEAD' || path.includes(';'),
  start: (t, theirs, url) => {
    const callback = new URL('/oauth2/callback', url).href
    // Without the page with a button, it redirects as Gatehouse does.
    const options = ['--cookie-secure=false', '--skip-provider-button', '--http-address', url.host]
    return startProgram(t, [program, '--config', fileWith(t, theirs), '--redirect-url', callback, ...options], url)
  },
  imported: async (t, theirs, url) => {
    const { out } = await imported('oauth2-proxy', fileWith(t, theirs), '--url', url)
    return out.replace(/^listen: .*$/m, `listen: ${new URL(url).host}`)
  },
}

const [typical, ...recipes] = pairsOf('oauth2-proxy.md', 'toml')
assert.ok(typical, 'the page has a typical configuration')
/** A recipe has only what differs: the rest is that of the typical configuration. */
const settings = typical.theirs.replaceAll(/^(?:email_domains|allowed_groups|skip_auth_\w+|api_routes) .*\n/gm, '')
comparePairs(oauth2Proxy, [typical, ...recipes.map((recipe) => ({ ...recipe, theirs: settings + recipe.theirs }))])

compareGenerated(
  oauth2Proxy,
  new Map([
    [
      'jane',
      { sub: 'jane', email: 'jane@example.com', email_verified: true, groups: ['admins', 'staff'], roles: ['ops'] },
    ],
    ['zoe', { sub: 'zoe', email: 'zoe@sub.example.com', groups: ['staff'], upn: 'zoe@example.com' }],
    [
      'bob',
      { sub: 'bob', email: 'bob@other.example', email_verified: false, groups: 'ops', preferred_username: 'bob' },
    ],
    [
      'ada',
      { sub: 'ada', email: 'ada@EXAMPLE.com', email_verified: true, realm: { roles: ['admins'] }, roles: 'admins' },
    ],
    ['eve', { sub: 'eve', email: 'eve@example.com@other.example', email_verified: true, groups: [] }],
    ['tom', { sub: 'tom', groups: ['admins'], email_verified: true }],
  ]),
  (choices) => oauth2ProxyFile(settings, choices),
)

test('oauth2-proxy: A route without ^ matches anywhere in the path', { skip }, async (t) => {
  const theirs = `${settings}email_domains = ["*"]\nskip_auth_routes = ["/static"]\n`
  const { side } = await startPeer(t, oauth2Proxy, { theirs, people: new Map(), signInAt: '/' })
  assert.equal(await side.ask(undefined, 'GET', '/admin/static'), 'pass')
  assert.equal(await side.ask(undefined, 'GET', '/admin'), 'sign_in')
})
